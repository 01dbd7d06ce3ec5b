//! What nodes take: counts of slots, and the work of finding them.

use super::plan::Plan;
use crate::constraint::HostPort;
use crate::inventory::NodeId;

/// Counted work, and where to begin.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    /// Nodes (once for each shape) and alternatives looked at so far.
    pub(crate) visited: u64,
    /// Nodes at the beginning of the list that are known to take nothing of this request.
    pub(crate) skip: usize,
    /// The place in the list of the first node that could take something; what lies before it could not.
    pub(crate) first: usize,
}

/// What one node takes: a count for each shape of the plan.
pub(super) type Filling = Vec<u32>;

/// Nodes with what each takes.
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

/// Takes slots that were computed to fit.
pub(super) fn take(plan: &Plan<'_>, available: &mut [u64], at: usize, count: u32) {
    for (kind, need) in &plan.shapes[at].needs {
        available[*kind] -= need * u64::from(count);
    }
}
