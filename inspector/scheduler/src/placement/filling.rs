//! Slots per node, and the work of finding them.

use super::plan::Plan;
use crate::constraint::HostPort;
use crate::inventory::NodeId;

/// Maximum number of nodes with room that are remembered.
pub(super) const MOST_SEEN: usize = 128;

/// Nodes with room for a slot that a search came across.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    nodes: Vec<NodeId>,
    /// The search has looked at all nodes.
    whole: bool,
}

impl Seen {
    /// A search begins.
    pub(super) fn begin(&mut self) {
        self.nodes.clear();
        self.whole = false;
    }

    pub(super) fn note(&mut self, id: NodeId) {
        if self.nodes.len() <= MOST_SEEN {
            self.nodes.push(id);
        }
    }

    /// It has looked at all nodes.
    pub(super) fn end(&mut self) {
        self.whole = true;
    }

    /// All nodes with room; none if some are not known.
    pub(super) fn take_all(&mut self) -> Option<Vec<NodeId>> {
        let all = std::mem::take(&mut self.whole) && self.nodes.len() <= MOST_SEEN;
        all.then(|| std::mem::take(&mut self.nodes))
    }
}

/// Counted work, and where to start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    /// Number of nodes (once per shape) and alternatives examined.
    pub(crate) visited: u64,
    /// Nodes at the start of the list that are known to have no room for this request.
    pub(crate) skip: usize,
    /// Position in the list of the first node that may have room.
    pub(crate) first: usize,
    /// What the last search came across.
    pub(super) seen: Seen,
}

/// Slots on one node: a count for each shape of the plan.
pub(super) type Filling = Vec<u32>;

/// Nodes with their slots.
pub(super) type Taken = Vec<(NodeId, Filling)>;

/// As many slots as fit, shape by shape in this order.
pub(super) fn first_fit(
    plan: &Plan<'_>,
    order: impl Iterator<Item = usize>,
    available: &mut [u64],
    capacities: &[u32],
    wanted: &[u32],
) -> Filling {
    let mut filling = vec![0; plan.shapes.len()];
    let mut ports: Vec<&HostPort> = Vec::new();
    for at in order {
        let shape = &plan.shapes[at];
        let most = capacities[at].min(wanted[at]);
        if most > 0 && !clash(&ports, shape.ports) {
            let count = shape.fits(available, most);
            take(plan, available, at, count);
            filling[at] = count;
            if count > 0 {
                ports.extend(shape.ports);
            }
        }
    }
    filling
}

pub(super) fn clash(taken: &[&HostPort], wanted: &[HostPort]) -> bool {
    taken.iter().any(|a| wanted.iter().any(|b| a.clashes(b)))
}

/// Allocates slots that are known to fit.
pub(super) fn take(plan: &Plan<'_>, available: &mut [u64], at: usize, count: u32) {
    for (kind, need) in &plan.shapes[at].needs {
        available[*kind] -= need * u64::from(count);
    }
}
