//! What a holder has on a node, and until when.

use std::sync::Arc;

use crate::constraint::{HostPort, Peer};
use crate::resources::ResourceList;

/// Why something is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AllocationKind {
    /// Bound by us.
    Bound,
    /// Decided by us, but not yet observed as bound.
    Assumed,
    /// Bound by another scheduler.
    Foreign,
    /// Reserved for a nominated Pod of another scheduler that is not bound yet.
    Nominated,
    /// Reserved for the replacement of a lost member of a started gang.
    Kept,
}

/// The share of one holder on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The amounts.
    pub needs: Arc<ResourceList>,
    /// Its host ports.
    pub ports: Arc<[HostPort]>,
    /// Start time, epoch seconds.
    pub from: i64,
    /// Planned end, epoch seconds; none if unknown. Passing it does not free anything.
    pub until: Option<i64>,
    /// The end is unknown: `until` is assumed, and whenever it has passed, the holder is assumed to stay for twice as
    /// long since `from`.
    pub end_assumed: bool,
    /// Why it is held.
    pub kind: AllocationKind,
    /// It never leaves the node (Pods of a `DaemonSet`, static Pods): jobs can't wait for its end.
    pub permanent: bool,
    /// Its job, if it is one of ours.
    pub job: Option<u32>,
    /// The Pod as seen by others' constraints; none for holders that are not Pods.
    pub peer: Option<Arc<Peer>>,
}

/// When something is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    /// Epoch seconds.
    pub at: i64,
    /// It is assumed: the holder, or a job that is waited for, has no time limit.
    pub assumed: bool,
}

/// Whether at most kind and start time differ.
pub(super) fn same_share(a: &Allocation, b: &Allocation) -> bool {
    a.needs == b.needs
        && a.ports == b.ports
        && (a.until, a.end_assumed) == (b.until, b.end_assumed)
        && a.permanent == b.permanent
}

/// The assumed end of something that started at `from`, as of `now`: `length` seconds later (at least 1), doubled as
/// often as it has passed.
pub fn assumed_end(from: i64, length: i64, now: i64) -> i64 {
    let (from, now) = (i128::from(from), i128::from(now));
    let mut length = i128::from(length.max(1));
    while from + length <= now {
        length *= 2;
    }
    // The end of time is not a planned end.
    i64::try_from(from + length).unwrap_or(i64::MAX).min(i64::MAX - 1)
}

/// When something that starts at `start` and is planned to end at `end` is released, and whether that is assumed, if
/// jobs without an end are assumed to take `length` seconds.
pub fn planned_or_assumed(
    end: Option<i64>,
    start: i64,
    length: Option<i64>,
    now: i64,
) -> (Option<i64>, bool) {
    match (end, length) {
        (None, Some(length)) => (Some(assumed_end(start, length, now)), true),
        (end, _) => (end, false),
    }
}

/// The planned end of a holder: one past its planned end is planned to end one second from now.
pub(crate) fn planned_end(until: Option<i64>, now: i64) -> i64 {
    until.map_or(i64::MAX, |until| until.max(now.saturating_add(1)))
}
