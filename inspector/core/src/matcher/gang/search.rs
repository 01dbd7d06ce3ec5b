//! First fit, node by node: the whole search for one shape, and the first attempt for several.

use std::sync::Arc;

use super::alternatives::{self, Candidate};
use super::lens::Lens;
use super::plan::Plan;
use super::{NodePolicy, Placement, Slot};
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

/// A placement of all slots, or `None`.
pub(crate) fn place(plan: &Plan<'_>, lens: &Lens<'_>, work: &mut Work) -> Option<Placement> {
    work.first = work.skip;
    if plan.shapes.iter().any(|shape| shape.impossible) {
        return None;
    }
    if plan.shapes.is_empty() {
        return Some(Placement::default());
    }
    plan.group_order().find_map(|group| place_in(plan, lens, group, work))
}

/// A placement of all slots within one of the plan's node lists, or `None`.
pub(crate) fn place_in(plan: &Plan<'_>, lens: &Lens<'_>, group: usize, work: &mut Work) -> Option<Placement> {
    let (domain, nodes) = plan.group(group)?;
    let skip = if domain.is_none() { work.skip } else { 0 };
    let taken = if plan.policy == NodePolicy::High {
        fill(plan, lens, nodes.iter().rev().copied(), skip, work)
    } else {
        fill(plan, lens, nodes.iter().copied(), skip, work)
    }?;
    let mut slots = Vec::with_capacity(taken.len());
    for (node, filling) in taken {
        let name = plan.inventory.name(node);
        let mut here: Vec<_> = filling
            .iter()
            .zip(&plan.shapes)
            .filter(|(count, _)| **count > 0)
            .map(|(count, shape)| Slot { shape: shape.index, node: Arc::clone(&name), count: *count })
            .collect();
        here.sort_by_key(|slot| slot.shape);
        slots.append(&mut here);
    }
    Some(Placement { slots, domain: domain.cloned() })
}

/// How many slots of each shape (of the plan) first fit places in one of the plan's node lists.
pub(crate) fn room(plan: &Plan<'_>, lens: &Lens<'_>, group: usize) -> Vec<u32> {
    let mut wanted: Filling = plan.shapes.iter().map(|shape| shape.count).collect();
    let mut placed = vec![0; wanted.len()];
    let mut available = Vec::new();
    for node in plan.group(group).map_or(&[][..], |(_, nodes)| nodes) {
        lens.available(*node, &plan.kinds, &mut available);
        let capacities: Filling = plan.shapes.iter().map(|s| lens.capacity(s, *node, &available)).collect();
        for (at, count) in first_fit(plan, &mut available, &capacities, &wanted).into_iter().enumerate() {
            wanted[at] -= count;
            placed[at] += count;
        }
    }
    placed
}

fn fill(
    plan: &Plan<'_>,
    lens: &Lens<'_>,
    nodes: impl Iterator<Item = NodeId>,
    skip: usize,
    work: &mut Work,
) -> Option<Vec<(NodeId, Filling)>> {
    let branching = (2..=alternatives::MOST_SHAPES).contains(&plan.shapes.len());
    let mut wanted: Filling = plan.shapes.iter().map(|shape| shape.count).collect();
    let mut taken = Vec::new();
    let mut candidates = Vec::new();
    let mut available = Vec::with_capacity(plan.kinds.len());
    let mut capacities = Filling::new();
    let mut met = false;
    work.first = usize::MAX;
    for (at, node) in nodes.enumerate().skip(skip) {
        work.visited += plan.shapes.len() as u64;
        if !plan.shapes.iter().any(|shape| lens.admits(shape, node)) {
            continue;
        }
        lens.available(node, &plan.kinds, &mut available);
        capacities.clear();
        capacities.extend(plan.shapes.iter().map(|shape| lens.capacity(shape, node, &available)));
        if capacities.iter().all(|capacity| *capacity == 0) {
            continue;
        }
        if !met {
            met = true;
            work.first = at;
        }
        if branching {
            candidates.push(Candidate { node, available: available.clone(), capacities: capacities.clone() });
        }
        let filling = first_fit(plan, &mut available, &capacities, &wanted);
        if filling.iter().any(|count| *count > 0) {
            for (wanted, count) in wanted.iter_mut().zip(&filling) {
                *wanted -= count;
            }
            taken.push((node, filling));
            if wanted.iter().all(|wanted| *wanted == 0) {
                return Some(taken);
            }
        }
    }
    if branching { alternatives::search(plan, candidates, work) } else { None }
}

/// As many slots as fit, shape by shape in the plan's order.
pub(super) fn first_fit(
    plan: &Plan<'_>,
    available: &mut [u64],
    capacities: &[u32],
    wanted: &[u32],
) -> Filling {
    let mut filling = vec![0; plan.shapes.len()];
    let mut ports: Vec<&HostPort> = Vec::new();
    for (at, shape) in plan.shapes.iter().enumerate() {
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
