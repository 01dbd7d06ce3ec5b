//! Reported and pending Pod conditions.

use crate::job::ReasonClass;

/// The content of a Pod's `PodScheduled` condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) condition: &'static str,
    pub(super) class: ReasonClass,
    pub(super) wanted: Option<u32>,
}

/// The last written condition of a Pod.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) said: Said,
    pub(super) at: i64,
}

/// The condition to be reported for a job's Pods.
#[derive(Clone, Debug)]
pub(super) struct Saying {
    pub(super) said: Said,
    pub(super) since: i64,
    /// Its owner and PodGroup have been informed.
    pub(super) announced: bool,
}
