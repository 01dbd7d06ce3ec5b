//! Reservations of waiting jobs.

use std::sync::Arc;

use super::id::{NodeId, Quantities};
use crate::constraint::{HostPort, Peer};
use crate::request::Placement;

/// A planned start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The planned placement.
    pub placement: Placement,
    /// Start, epoch seconds.
    pub start: i64,
    /// End, epoch seconds; none for a job without a time limit.
    pub end: Option<i64>,
    /// The start depends on an assumed end.
    pub start_assumed: bool,
    /// The end is assumed, or depends on such a start.
    pub end_assumed: bool,
    /// IDs of the nodes, used to remove the reservation.
    pub(super) nodes: Vec<NodeId>,
}

/// A job's reserved share of one node.
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
    /// Its Pods as seen by others' constraints, and their number.
    pub(crate) peer: Option<Arc<Peer>>,
    pub(crate) count: u32,
}
