//! `reservations`: planned starts.

use fluxion_api::client::Selection;
use fluxion_api::{Exit, FluxionJob};

use super::options::options;
use super::selected::write_names;
use crate::cli::{Format, Scope};
use crate::connect::Server;
use crate::failure::Failure;
use crate::{lookup, output, render};

/// Lists the jobs that have a planned start and have not started, soonest first.
pub(super) async fn run(server: &Server, scope: &Scope, format: Format) -> Result<Exit, Failure> {
    let selection = Selection { namespace: lookup::namespaces(server, scope), ..Selection::default() };
    let all_namespaces = selection.namespace.is_none();
    let mut list = server.client.list::<FluxionJob>(&selection).await?;
    let start = |job: &FluxionJob| {
        let status = &job.status;
        status.reservation.as_ref().map(|it| it.start.clone()).or_else(|| status.planned_start.clone())
    };
    list.items.retain(|job| job.is_queued() && start(job).is_some());
    list.items
        .sort_by_cached_key(|job| (start(job).as_deref().and_then(render::parse), job.metadata.name.clone()));
    match format {
        Format::Json | Format::Yaml => output::document(&list, format)?,
        Format::Name => write_names(&list.items, all_namespaces)?,
        Format::Table | Format::Wide if list.items.is_empty() => output::note("no jobs with a planned start"),
        Format::Table | Format::Wide => {
            let options = options(format, true, all_namespaces);
            output::write(&render::reservations(&list.items, &options))?;
        }
    }
    Ok(Exit::Done)
}
