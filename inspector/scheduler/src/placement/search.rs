//! First fit, node by node: the whole search for one shape, and the first attempt for several.

use std::sync::Arc;

use super::alternatives::{self, Candidate};
use super::availability::Availability;
use super::constrained::{self, Attempt};
use super::filling::{Filling, Taken, Work, first_fit};
use super::most::{better, most, sums};
use super::order;
use super::plan::{Plan, PlannedShape};
use super::policy::NodePolicy;
use super::rules::Rules;
use super::scored;
use crate::inventory::NodeId;
use crate::request::{Placement, Slot};

/// A placement of all slots, or of as many as possible if there is a minimum; or `None`.
pub(crate) fn place(plan: &Plan<'_>, availability: &Availability<'_>, work: &mut Work) -> Option<Placement> {
    work.first = work.skip;
    work.seen.begin();
    if plan.shapes.is_empty() {
        return Some(Placement::default());
    }
    if lacks_resources(plan) {
        return None;
    }
    place_in(plan, availability, plan.group_order(), work)
}

/// The nodes of the result of [`place`], with their slots.
pub(super) fn fillings(plan: &Plan<'_>, availability: &Availability<'_>, work: &mut Work) -> Option<Taken> {
    work.first = work.skip;
    work.seen.begin();
    if lacks_resources(plan) {
        return None;
    }
    find_in(plan, availability, plan.group_order(), work).map(|(_, taken)| taken)
}

/// All slots are required, and some need resources that no node ever had.
fn lacks_resources(plan: &Plan<'_>) -> bool {
    plan.minimum.is_none() && plan.shapes.iter().any(|shape| shape.impossible)
}

/// Whether each of these nodes still has room for its slots of the plan's only shape.
pub(super) fn still_takes(
    plan: &Plan<'_>,
    availability: &Availability<'_>,
    taken: &Taken,
    work: &mut Work,
) -> bool {
    let [shape] = plan.shapes.as_slice() else { return false };
    let mut available = Vec::with_capacity(plan.kinds.len());
    taken.iter().all(|(node, filling)| {
        work.visited += 1;
        availability.available(*node, &plan.kinds, &mut available);
        filling.first().is_some_and(|count| *count <= availability.capacity(shape, *node, &available))
    })
}

/// Whether there is room for a placement of the plan's request on its nodes, and they are still of its domain.
pub(super) fn still_holds(plan: &Plan<'_>, availability: &Availability<'_>, placed: &Placement) -> bool {
    let members = placed.domain.as_ref().map(|domain| {
        let named = |group: &usize| plan.group(*group).is_some_and(|(name, _)| name == Some(domain));
        (0..plan.group_count())
            .find(named)
            .and_then(|group| plan.group(group))
            .map_or(&[][..], |(_, nodes)| nodes)
    });
    let mut available = Vec::with_capacity(plan.kinds.len());
    // The slots of a node are contiguous.
    placed.slots.chunk_by(|a, b| a.node == b.node).all(|slots| {
        let Some(id) = slots.first().and_then(|slot| plan.inventory.id(&slot.node)) else { return false };
        if members.is_some_and(|members| !members.contains(&id)) {
            return false;
        }
        availability.available(id, &plan.kinds, &mut available);
        let count = |shape: &PlannedShape<'_>| {
            slots.iter().find(|slot| slot.shape == shape.index).map_or(0, |slot| slot.count)
        };
        let wanted: Filling = plan.shapes.iter().map(count).collect();
        let capacities: Filling =
            plan.shapes.iter().map(|s| availability.capacity(s, id, &available)).collect();
        first_fit(plan, 0..plan.shapes.len(), &mut available, &capacities, &wanted) == wanted
    })
}

/// A placement within one of these node lists of the plan, or `None`: in the first with room for all slots; if there
/// is a minimum, in the one with the most room.
pub(crate) fn place_in(
    plan: &Plan<'_>,
    availability: &Availability<'_>,
    groups: impl Iterator<Item = usize>,
    work: &mut Work,
) -> Option<Placement> {
    let (group, taken) = find_in(plan, availability, groups, work)?;
    let taken = scored::prefer(plan, availability, group, taken, work);
    Some(placement(plan, group, taken))
}

/// The nodes of the result of [`place_in`], with their slots, and their list.
fn find_in(
    plan: &Plan<'_>,
    availability: &Availability<'_>,
    groups: impl Iterator<Item = usize>,
    work: &mut Work,
) -> Option<(usize, Taken)> {
    let mut found: Option<(usize, Taken)> = None;
    let rules = Rules::new(plan, availability);
    for group in groups {
        let taken = match &rules {
            None => fill_group(plan, availability, group, work),
            Some(rules) => constrained(plan, availability, rules, group, work)
                .filter(|outcome| outcome.placed)
                .map(|outcome| outcome.taken),
        };
        let Some(taken) = taken else { continue };
        let count = plan.minimum.map(|minimum| (u64::from(minimum), slots(&taken)));
        if count.is_some_and(|(minimum, count)| count < minimum) {
            continue;
        }
        let all = count.is_none_or(|(_, count)| count == plan.slots());
        if found.as_ref().is_none_or(|(_, before)| better(plan, &taken, before).is_gt()) {
            found = Some((group, taken));
        }
        if all {
            break;
        }
    }
    found
}

/// What the nodes of one of the plan's lists take, by name, in the policy's order.
pub(super) fn placement(plan: &Plan<'_>, group: usize, mut taken: Taken) -> Placement {
    taken.sort_by_key(|(node, _)| order::rank(plan.inventory, plan.policy, *node));
    let mut slots = Vec::with_capacity(taken.len());
    for (node, filling) in &taken {
        let name = plan.inventory.name(*node);
        let mut here: Vec<_> = filling
            .iter()
            .zip(&plan.shapes)
            .filter(|(count, _)| **count > 0)
            .map(|(count, shape)| Slot { shape: shape.index, node: Arc::clone(&name), count: *count })
            .collect();
        here.sort_by_key(|slot| slot.shape);
        slots.append(&mut here);
    }
    Placement { slots, domain: plan.group(group).and_then(|(domain, _)| domain.cloned()) }
}

fn slots(taken: &Taken) -> u64 {
    taken.iter().flat_map(|(_, filling)| filling).copied().map(u64::from).sum()
}

/// The slots on the nodes of one list: all or nothing; or as many as possible if there is a minimum.
fn fill_group(
    plan: &Plan<'_>,
    availability: &Availability<'_>,
    group: usize,
    work: &mut Work,
) -> Option<Taken> {
    let (domain, nodes) = plan.group(group)?;
    let skip = if domain.is_none() { work.skip } else { 0 };
    let soon = order::promised_soonest(plan, availability, plan.is_partial().then_some(nodes));
    let others = (skip..nodes.len())
        .map(|at| (at, nodes[if plan.policy == NodePolicy::High { nodes.len() - 1 - at } else { at }]))
        .filter(|(_, id)| soon.is_empty() || plan.inventory.reserved_on(*id).is_empty());
    let order = soon.iter().map(|id| (None, *id)).chain(others.map(|(at, id)| (Some(at), id)));
    let taken = fill_or_most(plan, availability, order, work)?;
    if plan.minimum.is_none_or(|minimum| u64::from(minimum) <= slots(&taken))
        && let Some(order) = order::free_last(plan, availability, nodes)
        && let Some(timely) = fill_or_most(plan, availability, order.iter().map(|id| (None, *id)), work)
        && better(plan, &timely, &taken).is_ge()
    {
        return Some(timely);
    }
    Some(taken)
}

/// As [`fill_group`], under constraints between Pods. For a planned start, the order of time is tried first.
fn constrained(
    plan: &Plan<'_>,
    availability: &Availability<'_>,
    rules: &Rules,
    group: usize,
    work: &mut Work,
) -> Option<Attempt> {
    let (domain, nodes) = plan.group(group)?;
    let order = order::free_last(plan, availability, nodes).unwrap_or_else(|| {
        let skip = if domain.is_none() { work.skip } else { 0 };
        let mut order = order::promised_soonest(plan, availability, domain.is_some().then_some(nodes));
        let soon = !order.is_empty();
        let rest = nodes.get(skip.min(nodes.len())..).unwrap_or_default();
        let others =
            (0..rest.len())
                .map(|at| {
                    if plan.policy == NodePolicy::High {
                        nodes[nodes.len() - 1 - skip - at]
                    } else {
                        rest[at]
                    }
                })
                .filter(|id| !soon || plan.inventory.reserved_on(*id).is_empty());
        order.extend(others);
        order
    });
    Some(constrained::search(plan, availability, rules.clone(), &order, work))
}

fn fill_or_most(
    plan: &Plan<'_>,
    availability: &Availability<'_>,
    nodes: impl Iterator<Item = (Option<usize>, NodeId)> + Clone,
    work: &mut Work,
) -> Option<Taken> {
    match (fill(plan, availability, nodes.clone(), work), plan.minimum) {
        (Ok(taken), _) => Some(taken),
        (Err(_), None) => None,
        (Err(taken), Some(_)) => Some(most(plan, availability, nodes.map(|(_, id)| id), taken, work)),
    }
}

/// Room in one of the plan's node lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room {
    /// Slots of each shape of the plan.
    pub(crate) slots: Vec<u32>,
    /// There may be more: a search under constraints between Pods ended by its budget.
    pub(crate) cut: bool,
}

/// The room in one of the plan's node lists for each shape of the plan: according to first fit, or the maximum if
/// there is a minimum; under constraints between Pods, what their search placed.
pub(crate) fn room(
    plan: &Plan<'_>,
    availability: &Availability<'_>,
    rules: Option<&Rules>,
    group: usize,
) -> Room {
    if let Some(rules) = rules {
        let outcome = constrained(plan, availability, rules, group, &mut Work::default());
        let cut = outcome.as_ref().is_some_and(|outcome| outcome.cut);
        return Room { slots: sums(plan, &outcome.map(|outcome| outcome.taken).unwrap_or_default()), cut };
    }
    Room { slots: unconstrained_room(plan, availability, group), cut: false }
}

fn unconstrained_room(plan: &Plan<'_>, availability: &Availability<'_>, group: usize) -> Vec<u32> {
    if plan.minimum.is_some() {
        let taken = fill_group(plan, availability, group, &mut Work::default());
        return sums(plan, &taken.unwrap_or_default());
    }
    let mut wanted: Filling = plan.shapes.iter().map(|shape| shape.count).collect();
    let mut placed = vec![0; wanted.len()];
    let mut available = Vec::new();
    for node in plan.group(group).map_or(&[][..], |(_, nodes)| nodes) {
        availability.available(*node, &plan.kinds, &mut available);
        let capacities: Filling =
            plan.shapes.iter().map(|s| availability.capacity(s, *node, &available)).collect();
        for (at, count) in first_fit(plan, 0..plan.shapes.len(), &mut available, &capacities, &wanted)
            .into_iter()
            .enumerate()
        {
            wanted[at] -= count;
            placed[at] += count;
        }
    }
    placed
}

/// A filling that places all slots; or the first fit if there is none. The nodes come with their
/// positions in the list, unless others may precede them next time.
fn fill(
    plan: &Plan<'_>,
    availability: &Availability<'_>,
    nodes: impl Iterator<Item = (Option<usize>, NodeId)>,
    work: &mut Work,
) -> Result<Taken, Taken> {
    let branching = plan.minimum.is_none() && (2..=alternatives::MOST_SHAPES).contains(&plan.shapes.len());
    let mut wanted: Filling = plan.shapes.iter().map(|shape| shape.count).collect();
    let mut taken = Vec::new();
    let mut candidates = Vec::new();
    let mut available = Vec::with_capacity(plan.kinds.len());
    let mut capacities = Filling::new();
    work.first = usize::MAX;
    work.seen.begin();
    for (at, node) in nodes {
        work.visited += plan.shapes.len() as u64;
        if !plan.shapes.iter().any(|shape| availability.admits(shape, node)) {
            continue;
        }
        let exact = availability.at_most(node, &plan.kinds, &mut available);
        if plan.shapes.iter().all(|shape| shape.fits(&available, 1) == 0) {
            continue;
        }
        if !exact {
            availability.available(node, &plan.kinds, &mut available);
        }
        capacities.clear();
        capacities.extend(plan.shapes.iter().map(|shape| availability.capacity(shape, node, &available)));
        if capacities.iter().all(|capacity| *capacity == 0) {
            continue;
        }
        if let Some(at) = at {
            work.first = work.first.min(at);
        }
        work.seen.note(node);
        if branching {
            candidates.push(Candidate { node, available: available.clone(), capacities: capacities.clone() });
        }
        let filling = first_fit(plan, 0..plan.shapes.len(), &mut available, &capacities, &wanted);
        if filling.iter().any(|count| *count > 0) {
            for (wanted, count) in wanted.iter_mut().zip(&filling) {
                *wanted -= count;
            }
            taken.push((node, filling));
            if wanted.iter().all(|wanted| *wanted == 0) {
                // Those that were not looked at may take something.
                work.first = if work.first == usize::MAX { work.skip } else { work.first };
                return Ok(taken);
            }
        }
    }
    work.seen.end();
    if branching { alternatives::search(plan, candidates, work).ok_or(taken) } else { Err(taken) }
}
