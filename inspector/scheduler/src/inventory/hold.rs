//! What a holder has of a node, and until when.

use std::sync::Arc;

use crate::constraint::HostPort;
use crate::resources::ResourceList;

/// Why something is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AllocationKind {
    /// Bound by us.
    Bound,
    /// Decided by us, not seen bound yet.
    Assumed,
    /// Bound by somebody else.
    Foreign,
    /// Kept free for a Pod of somebody else that is not bound yet.
    Nominated,
    /// Kept free for the replacement of a member that a started gang lost.
    Kept,
}

/// One holder's share of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// How much.
    pub needs: Arc<ResourceList>,
    /// Host ports that it occupies.
    pub ports: Arc<[HostPort]>,
    /// Since when, epoch seconds.
    pub from: i64,
    /// When it is planned to be released, epoch seconds; none means no end is known. Passing it frees nothing.
    pub until: Option<i64>,
    /// Nobody said when it ends: `until` is assumed, and once it has passed, the holder is assumed to stay as long
    /// again as it has been there since `from`.
    pub end_assumed: bool,
    /// Why it is held.
    pub kind: AllocationKind,
    /// It never leaves the node (Pods of a `DaemonSet`, static Pods): no job can wait for its end.
    pub permanent: bool,
    /// The job that it belongs to, if one of ours.
    pub job: Option<u32>,
}

/// When something is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    /// Epoch seconds.
    pub at: i64,
    /// Nobody said so: who holds it, or who is waited for, has no time limit.
    pub assumed: bool,
}

/// Whether only the kind or the beginning differ.
pub(super) fn same_share(a: &Allocation, b: &Allocation) -> bool {
    a.needs == b.needs
        && a.ports == b.ports
        && (a.until, a.end_assumed) == (b.until, b.end_assumed)
        && a.permanent == b.permanent
}

/// When something that began at `from` is assumed to end, seen from `now`: after `length` seconds (at least 1), and once
/// that has passed, after as long again as it has been there by then, and so on.
pub fn assumed_end(from: i64, length: i64, now: i64) -> i64 {
    let (from, now) = (i128::from(from), i128::from(now));
    let mut length = i128::from(length.max(1));
    while from + length <= now {
        length *= 2;
    }
    // The end of time is no planned end.
    i64::try_from(from + length).unwrap_or(i64::MAX).min(i64::MAX - 1)
}

/// When something that starts at `start` and is planned to end at `end` is given back, and whether that is assumed,
/// where jobs without an end are assumed to take `length` seconds.
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

/// When a holder is planned to leave: one past its planned end is planned to leave a second from now.
pub(crate) fn planned_end(until: Option<i64>, now: i64) -> i64 {
    until.map_or(i64::MAX, |until| until.max(now.saturating_add(1)))
}
