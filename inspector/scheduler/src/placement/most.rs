//! Maximizes the number of slots, for a request with a minimum.
//!
//! First fit is tried first, starting with the hardest shapes; if it leaves slots over, first fit starting with the
//! easiest, and then the ways to fill the nodes, as long as their upper bound exceeds the best result so far. Among
//! equal numbers, slots of earlier shapes are preferred, so the result does not depend on the search order. As in
//! [`super::alternatives`], fillings with room for another required slot need not be tried, and the budget is counted.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::alternatives::{Candidate, MOST_SHAPES, Search};
use super::availability::Availability;
use super::filling::{Filling, Taken, Work, first_fit};
use super::plan::Plan;
use crate::inventory::NodeId;

/// With more shapes than this, most of which have no room, only first fit is used.
const KEPT: usize = 64;

/// The value of a result: slots, and slots of each shape in the request's order.
type Worth = (u64, Vec<u32>);

/// The best result so far.
struct Best {
    worth: Worth,
    taken: Taken,
}

impl Best {
    fn offer(&mut self, plan: &Plan<'_>, taken: Taken) {
        let worth = worth(plan, &sums(plan, &taken));
        if worth > self.worth {
            *self = Self { worth, taken };
        }
    }
}

/// Slots of each shape of the plan.
pub(super) fn sums(plan: &Plan<'_>, taken: &Taken) -> Filling {
    let mut sums = vec![0; plan.shapes.len()];
    for (_, filling) in taken {
        for (sum, count) in sums.iter_mut().zip(filling) {
            *sum += count;
        }
    }
    sums
}

fn worth(plan: &Plan<'_>, placed: &[u32]) -> Worth {
    let mut by_index: Vec<(u32, u32)> =
        plan.shapes.iter().zip(placed).map(|(shape, count)| (shape.index, *count)).collect();
    by_index.sort_unstable();
    (slots(placed), by_index.into_iter().map(|(_, count)| count).collect())
}

fn slots(placed: &[u32]) -> u64 {
    placed.iter().copied().map(u64::from).sum()
}

/// Whether one result is preferred to another: more slots, or equally many with more of the earlier shapes.
pub(super) fn better(plan: &Plan<'_>, a: &Taken, b: &Taken) -> Ordering {
    worth(plan, &sums(plan, a)).cmp(&worth(plan, &sums(plan, b)))
}

/// The maximum that fits, if first fit took `taken` and left slots over.
pub(super) fn most(
    plan: &Plan<'_>,
    availability: &Availability<'_>,
    nodes: impl Iterator<Item = NodeId>,
    taken: Taken,
    work: &mut Work,
) -> Taken {
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut live = vec![false; plan.shapes.len()];
    let mut wanted: Filling = plan.shapes.iter().map(|shape| shape.count).collect();
    let mut easiest = Taken::new();
    let mut available = Vec::with_capacity(plan.kinds.len());
    for node in nodes {
        work.visited += plan.shapes.len() as u64;
        if !plan.shapes.iter().any(|shape| availability.admits(shape, node)) {
            continue;
        }
        availability.available(node, &plan.kinds, &mut available);
        let capacities: Filling =
            plan.shapes.iter().map(|shape| availability.capacity(shape, node, &available)).collect();
        if capacities.iter().all(|capacity| *capacity == 0) {
            continue;
        }
        for (live, capacity) in live.iter_mut().zip(&capacities) {
            *live |= *capacity > 0;
        }
        if plan.shapes.len() <= KEPT {
            candidates.push(Candidate { node, available: available.clone(), capacities: capacities.clone() });
        }
        let order = (0..plan.shapes.len()).rev();
        let filling = first_fit(plan, order, &mut available, &capacities, &wanted);
        if filling.iter().any(|count| *count > 0) {
            for (wanted, count) in wanted.iter_mut().zip(&filling) {
                *wanted -= count;
            }
            easiest.push((node, filling));
        }
    }
    let mut best = Best { worth: worth(plan, &sums(plan, &taken)), taken };
    // If only one shape has room, first fit places the maximum.
    let live = live.iter().filter(|live| **live).count();
    if live > 1 {
        best.offer(plan, easiest);
        if live <= MOST_SHAPES && plan.shapes.len() <= KEPT {
            search(plan, candidates, &mut best, work);
        }
    }
    best.taken
}

/// Iterates over the fillings of the candidates as long as their upper bound exceeds the best result.
fn search(plan: &Plan<'_>, candidates: Vec<Candidate>, best: &mut Best, work: &mut Work) {
    let mut search = Search::new(plan, candidates);
    let budget = search.left;
    let wanted: Filling = plan.shapes.iter().map(|shape| shape.count).collect();
    let mut entered = BTreeSet::new();
    let mut stack = Vec::new();
    if search.promise(0, &wanted) > best.worth {
        stack.push(search.frame(0, wanted));
    }
    while let Some(frame) = stack.last_mut() {
        let Some(filling) = frame.fillings.get(frame.next) else {
            stack.pop();
            continue;
        };
        frame.next += 1;
        let wanted: Filling = frame.wanted.iter().zip(filling).map(|(want, count)| want - count).collect();
        let placed: Filling =
            plan.shapes.iter().zip(&wanted).map(|(shape, left)| shape.count - left).collect();
        if worth(plan, &placed) > best.worth {
            best.offer(plan, search.chosen(&stack));
        }
        if search.left == 0 {
            break;
        }
        let state = (stack.len(), wanted);
        if search.promise(state.0, &state.1) > best.worth && entered.insert(state.clone()) {
            let frame = search.frame(state.0, state.1);
            stack.push(frame);
        }
    }
    work.visited += budget - search.left;
    search.put_in_order(&mut best.taken);
}

impl Search<'_> {
    /// Upper bound of the value of any continuation from here, computed by shape and by kind.
    fn promise(&self, from: usize, wanted: &[u32]) -> Worth {
        let plan = self.plan;
        let none = (vec![0; plan.shapes.len()], vec![0; plan.kinds.len()]);
        let (rooms, quantities) = self.rest.get(from).unwrap_or(&none);
        let placed: Filling =
            plan.shapes.iter().zip(wanted).map(|(shape, left)| shape.count - left).collect();
        let more: Filling = wanted
            .iter()
            .zip(rooms)
            .map(|(want, room)| (*want).min(u32::try_from(*room).unwrap_or(u32::MAX)))
            .collect();
        let all: Filling = placed.iter().zip(&more).map(|(placed, more)| placed + more).collect();
        let (sum, by_shape) = worth(plan, &all);
        let by_kind = (0..plan.kinds.len()).map(|kind| by_kind(plan, kind, quantities[kind], &more)).min();
        (by_kind.map_or(sum, |by_kind| sum.min(slots(&placed) + by_kind)), by_shape)
    }
}

/// Number of slots for which an amount of one kind suffices, smallest needs first.
fn by_kind(plan: &Plan<'_>, kind: usize, mut quantity: u128, wanted: &[u32]) -> u64 {
    let need = |shape: &super::plan::PlannedShape<'_>| {
        shape.needs.iter().find(|(at, _)| *at == kind).map_or(0, |(_, need)| *need)
    };
    let mut needs: Vec<(u64, u32)> = plan.shapes.iter().map(need).zip(wanted.iter().copied()).collect();
    needs.sort_unstable();
    let mut sum = 0;
    for (need, wanted) in needs {
        let fit = if need == 0 {
            u64::from(wanted)
        } else {
            u64::from(wanted).min(u64::try_from(quantity / u128::from(need)).unwrap_or(u64::MAX))
        };
        quantity -= u128::from(need) * u128::from(fit);
        sum += fit;
    }
    sum
}
