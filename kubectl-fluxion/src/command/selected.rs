//! Filters jobs of a list and prints their names.

use fluxion_api::FluxionJob;

use crate::cli::Listing;
use crate::failure::Failure;
use crate::output;
use crate::render::Columns;

/// Whether to show the job.
pub(super) fn wanted(job: &FluxionJob, listing: &Listing, columns: Columns) -> bool {
    // Users write `job` or `Job`; a selector would take only one of them.
    if listing.kind.as_ref().is_some_and(|kind| !kind.eq_ignore_ascii_case(&job.spec.group.kind)) {
        return false;
    }
    if listing.state.is_empty() {
        return columns == Columns::Jobs || job.is_queued();
    }
    listing.state.contains(&job.status.state)
}

/// Prints `KIND/NAME`, one per line, with the namespace for all namespaces.
pub(super) fn write_names(jobs: &[FluxionJob], all_namespaces: bool) -> Result<(), Failure> {
    output::names(jobs.iter().map(|job| {
        let mut reference = job.reference();
        if !all_namespaces {
            reference.namespace = None;
        }
        reference
    }))
}
