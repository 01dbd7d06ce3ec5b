//! What is promised to jobs that wait.

use super::id::{NodeId, Quantities};
use crate::constraint::HostPort;
use crate::request::Placement;

/// A planned start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// What is planned where.
    pub placement: Placement,
    /// From when, epoch seconds.
    pub start: i64,
    /// Until when, epoch seconds; none for a job without a time limit.
    pub end: Option<i64>,
    /// The start rests on an end that is assumed.
    pub start_assumed: bool,
    /// The end is assumed, or follows from such a start.
    pub end_assumed: bool,
    /// The nodes' ids, to clear them by.
    pub(super) nodes: Vec<NodeId>,
}

/// One job's reserved share of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeReservation {
    pub(crate) job: u32,
    pub(crate) start: i64,
    /// `i64::MAX` for no end.
    pub(crate) end: i64,
    pub(crate) needs: Quantities,
    pub(crate) ports: Vec<HostPort>,
    /// The end is assumed.
    pub(crate) assumed: bool,
}
