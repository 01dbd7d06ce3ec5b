//! The domain of each node in a topology: by the value of a label.

use std::sync::Arc;

use super::id::NodeId;

/// No domain: the node does not have the label.
pub(super) const NONE: u32 = u32::MAX;

/// Domains of one label, numbered from 0.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Topology {
    /// By node ID.
    pub(super) of: Vec<u32>,
    /// Number of domains.
    pub(crate) domains: usize,
    /// Every domain has one node.
    pub(crate) singles: bool,
}

/// Topologies by label, with the generation of the graph for which they were computed.
pub(super) type TopologyCache = imbl::OrdMap<Arc<str>, (u64, Arc<Topology>)>;

impl Topology {
    /// The node's domain, if it has one.
    pub(crate) fn of(&self, id: NodeId) -> Option<usize> {
        self.of.get(id as usize).copied().filter(|domain| *domain != NONE).map(|domain| domain as usize)
    }
}
