//! Job names.

use fluxion_scheduler::state::{Job, State};

/// `NAMESPACE/KIND/NAME`, followed by the start of the UID if two jobs have the same name.
pub fn full_name(state: &State, job: &Job) -> String {
    format!("{}/{}", job.key.namespace, short_name(state, job))
}

/// `KIND/NAME`, followed by the start of the UID if two jobs have the same name.
pub fn short_name(state: &State, job: &Job) -> String {
    let name = state.object_name(job);
    // The kind may hold dots (its API group), so the name is what stands behind the whole of it.
    match name.strip_prefix(&*job.key.kind).and_then(|rest| rest.strip_prefix('.')) {
        Some(rest) => format!("{}/{rest}", job.key.kind),
        None => name,
    }
}
