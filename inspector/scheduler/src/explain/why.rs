//! Why a request does not start, as data. Jobs and holders appear as ids only.

use std::sync::Arc;

use crate::constraint::{Exclusion, HostPort};
use crate::inventory::Release;
use crate::resources::ResourceList;

/// Why a node takes no slot of a shape.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeReason {
    /// The constraint or the node's state keeps it away.
    Excluded(Exclusion),
    /// No term of the required node affinity matches.
    Affinity {
        /// The terms, in words.
        wanted: Arc<str>,
    },
    /// The node has none of the resource.
    Missing {
        /// The resource.
        resource: Arc<str>,
    },
    /// The node would be too small even when empty.
    TooSmall {
        /// The resource.
        resource: Arc<str>,
    },
    /// The node has enough, but does not let Pods have as much even when empty.
    Withheld {
        /// The resource.
        resource: Arc<str>,
    },
    /// Others hold it.
    Busy {
        /// The resource.
        resource: Arc<str>,
    },
    /// A host port is taken.
    PortTaken {
        /// The first of the shape's ports that clashes.
        port: HostPort,
    },
    /// It is promised to jobs that wait.
    Reserved,
}

/// Nodes with the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// The reason.
    pub reason: NodeReason,
    /// How many nodes.
    pub nodes: usize,
    /// For a resource: how much one slot needs.
    pub need: u64,
    /// For a resource: the most that one of these nodes has, free for `Busy`, when empty for `TooSmall` and
    /// `Withheld`.
    pub largest: u64,
    /// For `Busy`: when the first of these nodes is planned to have room, if any.
    pub soonest: Option<Release>,
    /// For `Busy`: how many of these nodes have no planned end that makes room.
    pub endless: usize,
    /// For `Reserved`: whose reservations (at most 16).
    pub jobs: Vec<u32>,
}

/// The node that lacks least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearestMiss {
    /// The node.
    pub node: Arc<str>,
    /// What it lacks: resource, need of one slot, free.
    pub lacks: Vec<(Arc<str>, u64, u64)>,
    /// A host port that is taken there.
    pub port: Option<HostPort>,
}

/// Why one shape does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeWhy {
    /// Index into the request's shapes.
    pub shape: u32,
    /// Slots wanted.
    pub wanted: u32,
    /// What one slot needs.
    pub needs: Arc<ResourceList>,
    /// Nodes that take at least one slot.
    pub fitting: usize,
    /// Slots that these take, at most as many as are wanted.
    pub room: u32,
    /// The other nodes by reason, the most frequent first.
    pub counts: Vec<Count>,
    /// The node that lacks least, among those that are not excluded.
    pub nearest: Option<NearestMiss>,
}

/// What the gang as a whole is short of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GangWhy {
    /// Slots wanted together.
    pub wanted: u64,
    /// Slots that these are any of: as many, or more where fewer than all are enough.
    pub of: u64,
    /// Slots that find room together: in the best domain where there is a level.
    pub room: u64,
    /// The level, where one is asked for.
    pub level: Option<Arc<str>>,
    /// The domain with most room, or the one that is asked for.
    pub best: Option<Arc<str>>,
    /// What the nodes that take some run out of.
    pub short: Option<Short>,
}

/// What runs out first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Short {
    /// A resource.
    Resource(Arc<str>),
    /// A host port, which each node has once.
    Port(HostPort),
}

/// Why a request does not start, or never can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhyNot {
    /// It could not even start if all that can leave were gone and all that passes had passed.
    pub never: bool,
    /// Nodes there are.
    pub nodes: usize,
    /// Shape by shape; of very many only the hardest to place.
    pub shapes: Vec<ShapeWhy>,
    /// Shapes that were not looked at.
    pub left_out: usize,
    /// The gang as a whole; none where it does fit.
    pub gang: Option<GangWhy>,
    /// It would start but for what these jobs are promised.
    pub behind: Vec<u32>,
    /// It would fit, now or at the last planned end, if the nodes that are down for the time being took work.
    pub down: bool,
    /// No start can be planned.
    pub no_estimate: bool,
    /// Holders without a planned end, where no planned start is possible.
    pub no_end: Vec<Arc<str>>,
    /// Jobs that are about to hold, or are promised, something without an end, where no planned start is possible.
    pub no_end_jobs: Vec<u32>,
}
