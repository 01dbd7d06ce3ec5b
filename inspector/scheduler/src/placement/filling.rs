//! Slots per node, and the work of finding them.

use super::plan::Plan;
use super::roomy::Seen;
use crate::constraint::HostPort;
use crate::inventory::NodeId;

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
