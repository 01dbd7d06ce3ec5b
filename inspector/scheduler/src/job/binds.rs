//! The state of a gang's bindings.

use std::sync::Arc;

use fluxion_api::reason::Fact;

use crate::model::{PodSpec, SharedStr};

/// The results of a job's bindings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Binds {
    /// Number of members that had to start together the last time.
    pub size: Option<u32>,
    /// How the last one failed.
    pub why: Option<Fact>,
    /// Which volumes are waited for.
    pub volumes: Option<Fact>,
    /// The start for which all members were bound; it no longer counts as partially bound.
    pub(crate) complete: Option<i64>,
    /// Members bound for this start, or an earlier one, are released.
    pub(crate) let_go: Option<i64>,
    /// How often in a row the gang was released, and until when it is not retried.
    pub(crate) given_up: u32,
    pub(crate) paused_until: Option<i64>,
    /// The deadline has expired, and the gang is held.
    pub(crate) held: bool,
}

/// Resources reserved for the Pods of a resumed job, until they are placed.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// In the inventory.
    pub(crate) holders: Arc<[SharedStr]>,
    /// When they are released, epoch seconds.
    pub(crate) until: i64,
}

impl Binds {
    pub(crate) fn paused(&self, now: i64) -> bool {
        self.paused_until.is_some_and(|until| until > now)
    }

    /// Whether the Pod was bound for a start that was abandoned.
    pub(crate) fn gave_up(&self, pod: &PodSpec) -> bool {
        pod.record.as_ref().is_some_and(|record| Some(record.start) <= self.let_go)
    }
}
