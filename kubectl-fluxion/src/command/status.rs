//! `status`: a summary on one screen.

use fluxion_api::client::{Client, Error, Selection};
use fluxion_api::{Exit, FluxionNode, FluxionQueue};

use super::options::options;
use crate::cli::Format;
use crate::connect::Server;
use crate::failure::Failure;
use crate::output;
use crate::render::{self, StatusReport};

/// Gets the report and prints it.
pub(super) async fn run(server: &Server, format: Format) -> Result<Exit, Failure> {
    let report = report(&server.client).await?;
    match format {
        Format::Json | Format::Yaml => output::document(&report, format)?,
        Format::Name => output::names([&report.server])?,
        Format::Table | Format::Wide => {
            output::write(&render::status(&report, &options(format, true, false)))?;
        }
    }
    Ok(Exit::Done)
}

/// Gets the report of a server, without the audit if it is not available.
pub async fn report(client: &Client) -> Result<StatusReport, Error> {
    let all = Selection::default();
    let (queues, nodes, audit) =
        futures::join!(client.list::<FluxionQueue>(&all), client.list::<FluxionNode>(&all), client.audit());
    let (queues, nodes) = (queues?, nodes?);
    // Not everybody may see the audit, and the rest is worth showing without it.
    let findings = audit.ok().map(|audit| audit.findings);
    Ok(StatusReport::new(&client.server(), &queues.metadata, &nodes.items, queues.items, findings))
}
