//! Why a request does not start, as data. Jobs and holders are only identified by IDs.

use std::sync::Arc;

use crate::constraint::{Exclusion, HostPort};
use crate::inventory::Release;
use crate::placement::Denied;
use crate::resources::ResourceList;

/// Why a node has no room for a slot of a shape.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeReason {
    /// The constraint or the node's state excludes it.
    Excluded(Exclusion),
    /// No term of the required node affinity matches.
    Affinity {
        /// The terms, as text.
        wanted: Arc<str>,
    },
    /// The node has none of the resource.
    Missing {
        /// The resource.
        resource: Arc<str>,
    },
    /// The node is too small even when empty.
    TooSmall {
        /// The resource.
        resource: Arc<str>,
    },
    /// The node has enough, but not all of it is allocatable.
    Withheld {
        /// The resource.
        resource: Arc<str>,
    },
    /// In use by others.
    Busy {
        /// The resource.
        resource: Arc<str>,
    },
    /// A host port is in use.
    PortTaken {
        /// The first of the shape's ports that is in use.
        port: HostPort,
    },
    /// Reserved for waiting jobs.
    Reserved,
    /// A constraint between Pods.
    Denied(Denied),
}

/// Nodes with the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// The reason.
    pub reason: NodeReason,
    /// Number of nodes.
    pub nodes: usize,
    /// For a resource: the amount needed by one slot.
    pub need: u64,
    /// For a resource: the maximum of these nodes: free for `Busy`, when empty for `TooSmall` and `Withheld`.
    pub largest: u64,
    /// For `Busy`: when the first of these nodes is planned to have room, if any.
    pub soonest: Option<Release>,
    /// For `Busy`: number of these nodes without a planned end that frees enough.
    pub endless: usize,
    /// For `Reserved`: the jobs with the reservations (at most 16).
    pub jobs: Vec<u32>,
}

/// The node that lacks the least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearestMiss {
    /// The node.
    pub node: Arc<str>,
    /// What it lacks: resource, amount needed by one slot, free amount.
    pub lacks: Vec<(Arc<str>, u64, u64)>,
    /// A host port that is in use on the node.
    pub port: Option<HostPort>,
}

/// Why one shape does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeWhy {
    /// Index into the request's shapes.
    pub shape: u32,
    /// Number of slots required.
    pub wanted: u32,
    /// Resources needed by one slot.
    pub needs: Arc<ResourceList>,
    /// Number of nodes with room for at least one slot.
    pub fitting: usize,
    /// Room on these in slots, at most the number required.
    pub room: u32,
    /// The other nodes by reason, the most frequent first.
    pub counts: Vec<Count>,
    /// The node that lacks the least, among eligible nodes.
    pub nearest: Option<NearestMiss>,
}

/// What the gang as a whole is lacking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GangWhy {
    /// Number of slots required together.
    pub wanted: u64,
    /// Number of slots they are selected from: the same, or more if there is a minimum.
    pub of: u64,
    /// Number of slots with room together: in the best domain if there is a level.
    pub room: u64,
    /// The level, if one is requested.
    pub level: Option<Arc<str>>,
    /// The domain with the most room, or the requested one.
    pub best: Option<Arc<str>>,
    /// What the nodes with room for some slots are lacking.
    pub short: Option<Short>,
    /// Constraints between Pods limit the room.
    pub constrained: bool,
    /// There may be more room: the search under such constraints ended by its budget.
    pub cut: bool,
}

/// What is exhausted first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Short {
    /// A resource.
    Resource(Arc<str>),
    /// A host port, which exists once per node.
    Port(HostPort),
}

/// Why a request does not start, or never can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhyNot {
    /// It could not start even if everything that can end had ended, including temporary conditions.
    pub never: bool,
    /// Number of nodes.
    pub nodes: usize,
    /// By shape; if there are many, only those that are hardest to place.
    pub shapes: Vec<ShapeWhy>,
    /// Number of shapes that were not examined.
    pub left_out: usize,
    /// The gang as a whole; none if it fits.
    pub gang: Option<GangWhy>,
    /// It would start if these jobs had no reservations.
    pub behind: Vec<u32>,
    /// It would fit, now or at the last planned end, if the nodes that are temporarily unavailable were available.
    pub down: bool,
    /// No start can be planned.
    pub no_estimate: bool,
    /// Holders without a planned end, if no start can be planned.
    pub no_end: Vec<Arc<str>>,
    /// Jobs being bound or with a reservation without a planned end, if no start can be planned.
    pub no_end_jobs: Vec<u32>,
}
