//! `explain`: why a job is in its current state.

use fluxion_api::client::Error;
use fluxion_api::{Exit, FluxionExplanation, JobRef};

use super::options::options;
use crate::cli::{Format, Scope};
use crate::connect::Server;
use crate::failure::Failure;
use crate::{lookup, output, render};

/// Finds the job, gets its explanation and prints it.
pub(super) async fn run(
    server: &Server,
    scope: &Scope,
    job: &JobRef,
    format: Format,
) -> Result<Exit, Failure> {
    let job = lookup::find_anywhere(server, scope, job).await?;
    let reference = job.reference();
    let own = reference.namespace.clone().unwrap_or_default();
    let answer = match server.client.explain(&own, &job.metadata.name).await {
        Ok(answer) => answer,
        // The job went between the two questions, or the server explains only through the job itself.
        Err(Error::NotFound { .. }) => {
            FluxionExplanation { metadata: job.metadata.clone(), job, ..Default::default() }
        }
        Err(error) => return Err(error.into()),
    };
    match format {
        Format::Json | Format::Yaml => output::document(&answer, format)?,
        Format::Name => output::names([reference])?,
        Format::Table | Format::Wide => {
            output::write(&render::explain(&answer, &options(format, true, true)))?;
        }
    }
    Ok(Exit::Done)
}
