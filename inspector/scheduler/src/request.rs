//! Requests of gangs, and placements. A request is a jobspec with slots within one node, a constraint for each shape,
//! several shapes at once, and one topology level for all.
//!
//! Requests are ordered and compared by value, so that equal ones are only evaluated once.

use std::sync::Arc;

use crate::constraint::{HostPort, NodeConstraint, Peer, Preferences};
use crate::resources::{OutOfRange, ResourceList};

/// Equal slots: each is within one node, several may share a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// Number of slots; 0 requests nothing.
    pub count: u32,
    /// Resources of each slot, including `pods`.
    pub needs: Arc<ResourceList>,
    /// Constraint of each slot.
    pub constraint: Arc<NodeConstraint>,
    /// Host ports of each slot, so two slots with the same ones never share a node.
    pub ports: Arc<[HostPort]>,
    /// Each slot's Pod, if it has constraints on other Pods or others may have some on it.
    pub peer: Option<Arc<Peer>>,
    /// Which nodes are preferred; none if all are alike. Not part of jobspecs.
    pub preferences: Option<Arc<Preferences>>,
}

/// Slots that start together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// The shapes; all of their slots are requested.
    pub shapes: Vec<Shape>,
    /// Minimum number of slots to start: as many as fit are allocated, preferring earlier shapes. None: all of them.
    pub minimum: Option<u32>,
    /// A node label: all slots are on nodes with the same value of it.
    pub level: Option<Arc<str>>,
    /// The value of that label, if specified: members that join later use the domain of the others.
    pub domain: Option<Arc<str>>,
    /// Duration in seconds; none for no limit.
    pub duration: Option<i64>,
}

/// Slots of one shape on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Index into the request's shapes.
    pub shape: u32,
    /// The node.
    pub node: Arc<str>,
    /// Number of slots; at least 1.
    pub count: u32,
}

/// The nodes for the slots of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// By node in search order, then by shape.
    pub slots: Vec<Slot>,
    /// The shared domain, if the request has a level.
    pub domain: Option<Arc<str>>,
}

/// A placement with its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Epoch seconds.
    pub start: i64,
    /// Its end; none without a time limit.
    pub end: Option<i64>,
    /// The placement.
    pub placement: Placement,
    /// The start depends on an assumed end.
    pub assumed: bool,
}

impl Request {
    /// Total number of slots.
    pub fn slots(&self) -> u64 {
        self.shapes.iter().map(|shape| u64::from(shape.count)).sum()
    }

    /// Minimum number of slots to start.
    pub fn needed(&self) -> u64 {
        self.minimum.map_or_else(|| self.slots(), u64::from)
    }

    /// Total resources of all slots.
    pub fn total(&self) -> Result<ResourceList, OutOfRange> {
        self.shapes.iter().try_fold(ResourceList::new(), |sum, shape| {
            sum.checked_add(&shape.needs.checked_mul(u64::from(shape.count))?)
        })
    }

    /// Whether it may be allowed to start because others have started, regardless of free resources.
    pub(crate) fn awaits_others(&self) -> bool {
        let terms = self.shapes.iter().filter_map(|shape| shape.peer.as_ref()?.terms.as_ref());
        terms.into_iter().any(|terms| terms.awaits_others())
    }

    /// Planned end of slots that start at `start` (epoch seconds); `None` for no end.
    pub fn end(&self, start: i64) -> Option<i64> {
        // A sum beyond the calendar means no end.
        self.duration.and_then(|seconds| start.checked_add(seconds.max(1))).filter(|end| *end < i64::MAX)
    }
}
