//! How the binding of a gang goes.

use fluxion_api::reason::Fact;

use crate::model::PodSpec;

/// What became of a job's bindings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Binds {
    /// Members that had to start together the last time.
    pub size: Option<u32>,
    /// How the last one failed.
    pub why: Option<Fact>,
    /// The start that all members were bound for; it is never half-bound again.
    pub(crate) complete: Option<i64>,
    /// Members that were bound for this start, or an earlier one, are let go.
    pub(crate) let_go: Option<i64>,
    /// How often in a row the gang was given up, and until when it waits therefore.
    pub(crate) given_up: u32,
    pub(crate) paused_until: Option<i64>,
    /// The deadline is over, and the gang is held.
    pub(crate) held: bool,
}

impl Binds {
    pub(crate) fn paused(&self, now: i64) -> bool {
        self.paused_until.is_some_and(|until| until > now)
    }

    /// The Pod was bound for a start that was given up.
    pub(crate) fn gave_up(&self, pod: &PodSpec) -> bool {
        pod.record.as_ref().is_some_and(|record| Some(record.start) <= self.let_go)
    }
}
