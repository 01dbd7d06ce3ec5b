//! Converts the engine's enums to those of the API. The matches are exhaustive, so that new variants are not missed.

use fluxion_api as api;
use fluxion_scheduler::state::{JobState, ReasonClass};

use crate::engine::Role;

/// The state of a job.
pub fn state(state: JobState) -> api::JobState {
    match state {
        JobState::Gathering => api::JobState::Gathering,
        JobState::Pending => api::JobState::Pending,
        JobState::Reserved => api::JobState::Reserved,
        JobState::Unsatisfiable => api::JobState::Unsatisfiable,
        JobState::Binding => api::JobState::Binding,
        JobState::Running => api::JobState::Running,
        JobState::Suspended => api::JobState::Suspended,
        JobState::Releasing => api::JobState::Releasing,
        JobState::Completed => api::JobState::Completed,
        JobState::Failed => api::JobState::Failed,
        JobState::Cancelled => api::JobState::Cancelled,
    }
}

/// The class of a reason.
pub fn class(class: ReasonClass) -> api::ReasonClass {
    match class {
        ReasonClass::Gathering => api::ReasonClass::Gathering,
        ReasonClass::GroupNotFound => api::ReasonClass::GroupNotFound,
        ReasonClass::SizesDisagree => api::ReasonClass::SizesDisagree,
        ReasonClass::InvalidRequest => api::ReasonClass::InvalidRequest,
        ReasonClass::QueueOrder => api::ReasonClass::QueueOrder,
        ReasonClass::Reserved => api::ReasonClass::Reserved,
        ReasonClass::Busy => api::ReasonClass::Busy,
        ReasonClass::ConstraintNotMet => api::ReasonClass::ConstraintNotMet,
        ReasonClass::NodesDown => api::ReasonClass::NodesDown,
        ReasonClass::Unsatisfiable => api::ReasonClass::Unsatisfiable,
        ReasonClass::UnsupportedConstraint => api::ReasonClass::UnsupportedConstraint,
        ReasonClass::Gated => api::ReasonClass::Gated,
        ReasonClass::Held => api::ReasonClass::Held,
        ReasonClass::BindFailed => api::ReasonClass::BindFailed,
        ReasonClass::DeadlineBeforeStart => api::ReasonClass::DeadlineBeforeStart,
        ReasonClass::DeadlineExceeded => api::ReasonClass::DeadlineExceeded,
        ReasonClass::PodFailed => api::ReasonClass::PodFailed,
        ReasonClass::Disrupted => api::ReasonClass::Disrupted,
        ReasonClass::Cancelled => api::ReasonClass::Cancelled,
    }
}

/// The role of this server.
pub fn role(role: Role) -> api::Role {
    match role {
        Role::Leader => api::Role::Leader,
        Role::Follower => api::Role::Follower,
        Role::Standalone => api::Role::Standalone,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn the_engine_and_the_api_use_the_same_words() {
        for word in api::JobState::ALL {
            let ours: JobState = from_value(json!(word)).unwrap();
            assert_eq!((&state(ours), word.as_str()), (word, ours.as_str()));
        }
        for word in api::ReasonClass::ALL {
            let ours: ReasonClass = from_value(json!(word)).unwrap();
            assert_eq!((&class(ours), word.as_str()), (word, ours.as_str()));
        }
    }
}
