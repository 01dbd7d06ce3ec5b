//! What a gang asks for, and where it lies. A request is a jobspec with slots that stay within one node, a constraint for each shape, several shapes
//! at once and one topology level that all share.
//!
//! Requests are ordered and compared by value, so that equal ones are recognised and answered once.

use std::sync::Arc;

use crate::constraint::{HostPort, NodeConstraint};
use crate::resources::{OutOfRange, ResourceList};

/// Slots that are alike: each lies within one node, several may share a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// How many slots; 0 asks for nothing.
    pub count: u32,
    /// What each slot needs, `pods` included.
    pub needs: Arc<ResourceList>,
    /// Where each may lie.
    pub constraint: Arc<NodeConstraint>,
    /// The host ports that each takes, so two of a kind never share a node.
    pub ports: Arc<[HostPort]>,
}

/// Slots that start together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// The shapes; all of their slots are wanted.
    pub shapes: Vec<Shape>,
    /// So many slots, whichever, are enough for a start: the most that fit are taken, and of as many those of earlier
    /// shapes. None: all of them.
    pub minimum: Option<u32>,
    /// A node label: all slots lie on nodes that have the same value of it.
    pub level: Option<Arc<str>>,
    /// The value of that label, where it is given: late members join the domain of the others.
    pub domain: Option<Arc<str>>,
    /// Seconds that the slots are held; none means without end.
    pub duration: Option<i64>,
}

/// Slots of one shape on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Index into the request's shapes.
    pub shape: u32,
    /// The node.
    pub node: Arc<str>,
    /// How many of them; at least 1.
    pub count: u32,
}

/// Where the slots of a request lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// By node in order of the search, then by shape.
    pub slots: Vec<Slot>,
    /// The domain that all share, where the request asks for a level.
    pub domain: Option<Arc<str>>,
}

/// A placement with its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Epoch seconds.
    pub start: i64,
    /// When it ends; none without a time limit.
    pub end: Option<i64>,
    /// Where.
    pub placement: Placement,
    /// The start rests on an end that is only assumed.
    pub assumed: bool,
}

impl Request {
    /// Slots in all.
    pub fn slots(&self) -> u64 {
        self.shapes.iter().map(|shape| u64::from(shape.count)).sum()
    }

    /// Slots that are enough for a start.
    pub fn needed(&self) -> u64 {
        self.minimum.map_or_else(|| self.slots(), u64::from)
    }

    /// What all slots need together.
    pub fn total(&self) -> Result<ResourceList, OutOfRange> {
        self.shapes.iter().try_fold(ResourceList::new(), |sum, shape| {
            sum.checked_add(&shape.needs.checked_mul(u64::from(shape.count))?)
        })
    }

    /// When slots that start at `start` (epoch seconds) are planned to end; `None` is never.
    pub fn end(&self, start: i64) -> Option<i64> {
        // A sum beyond the calendar is no end at all.
        self.duration.and_then(|seconds| start.checked_add(seconds.max(1))).filter(|end| *end < i64::MAX)
    }
}
