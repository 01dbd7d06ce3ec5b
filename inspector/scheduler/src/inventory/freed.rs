//! Where something was freed lately, so that what was found wanting before only has to be looked at there.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Inventory;
use super::id::NodeId;

/// Number of nodes remembered, each as often as something was freed on it.
const MOST: usize = 1_024;

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct Freed {
    /// Generations ([`Inventory::freed_generation`]) in order, with the nodes on which something was freed.
    nodes: Arc<VecDeque<(u64, NodeId)>>,
    /// The nodes of all later generations are known.
    since: u64,
}

impl Inventory {
    /// Records that something was freed on a node, or that the node has changed.
    pub(super) fn free_on(&mut self, id: NodeId) {
        self.freed += 1;
        let Freed { nodes, since } = &mut self.freed_on;
        let nodes = Arc::make_mut(nodes);
        if nodes.len() >= MOST
            && let Some((generation, _)) = nodes.pop_front()
        {
            *since = generation;
        }
        nodes.push_back((self.freed, id));
    }

    /// Records that a holder has left a node that nothing was freed on: another one is to hold the same. If it does not,
    /// that is known as soon as anything is freed.
    pub(super) fn free_on_later(&mut self, id: NodeId) {
        self.free_on(id);
        self.freed -= 1;
    }

    /// Records that there may be more room on any node.
    pub(super) fn free_anywhere(&mut self) {
        self.freed += 1;
        self.freed_on = Freed { nodes: Arc::default(), since: self.freed };
    }

    /// The nodes on which there may be more room than as of a generation, with repetitions: all others have at most what
    /// they had. None if that was too long ago.
    pub(crate) fn freed_since(&self, generation: u64) -> Option<impl Iterator<Item = NodeId>> {
        let Freed { nodes, since } = &self.freed_on;
        (generation >= *since).then(|| {
            let first = nodes.partition_point(|(of, _)| *of <= generation);
            nodes.range(first..).map(|(_, id)| *id)
        })
    }
}
