//! What Pods were told, and are to be told.

use crate::job::ReasonClass;

/// What a Pod's PodScheduled condition says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) condition: &'static str,
    pub(super) class: ReasonClass,
    pub(super) wanted: Option<u32>,
}

/// What a Pod's condition was last made to say.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) said: Said,
    pub(super) at: i64,
}

/// What a job's Pods are to be told.
#[derive(Clone, Debug)]
pub(super) struct Saying {
    pub(super) said: Said,
    pub(super) since: i64,
    /// Its owner and PodGroup know.
    pub(super) announced: bool,
}
