//! Used if first fit fails for several shapes: a complete search over the ways to fill the nodes, within a counted
//! budget.
//!
//! Only fillings with no room for another required slot need to be tried: taking a slot back from a later node never
//! hurts. Nodes that hold their maximum of every shape at once have only one such filling and come first. A state
//! (position in the list, remaining slots) that failed once is not tried again.

use std::collections::{BTreeMap, BTreeSet};

use super::filling::{Filling, Taken, Work, clash, take};
use super::plan::Plan;
use crate::constraint::HostPort;
use crate::inventory::NodeId;

/// Maximum number of shapes: the number of fillings grows with each. With more shapes, only first fit is used.
pub(super) const MOST_SHAPES: usize = 6;
/// Maximum number of fillings examined, in addition to twice the number of nodes.
const BUDGET: u64 = 5_000;

/// A node with room for at least one slot.
pub(super) struct Candidate {
    pub(super) node: NodeId,
    pub(super) available: Vec<u64>,
    /// Capacity in slots for each shape alone.
    pub(super) capacities: Filling,
}

/// The fillings of one candidate, and the current position.
pub(super) struct Frame {
    pub(super) fillings: Vec<Filling>,
    pub(super) next: usize,
    pub(super) wanted: Filling,
}

/// Iterates over the candidates, uncontested ones first.
pub(super) struct Search<'a> {
    pub(super) plan: &'a Plan<'a>,
    candidates: Vec<Candidate>,
    /// The original positions of the candidates.
    order: BTreeMap<NodeId, usize>,
    /// From each position in the list on: slots of each shape, and amounts of each kind.
    pub(super) rest: Vec<(Vec<u64>, Vec<u128>)>,
    /// Remaining budget of fillings.
    pub(super) left: u64,
}

/// Fillings of the candidates that place every slot, in the candidates' order.
pub(super) fn search(plan: &Plan<'_>, candidates: Vec<Candidate>, work: &mut Work) -> Option<Taken> {
    let mut search = Search::new(plan, candidates);
    let budget = search.left;
    let found = search.run();
    work.visited += budget - search.left;
    let mut found = found?;
    search.put_in_order(&mut found);
    Some(found)
}

/// Whether the node can't hold its maximum of every shape at once.
fn contested(plan: &Plan<'_>, candidate: &Candidate) -> bool {
    let mut available = candidate.available.clone();
    let mut ports: Vec<&HostPort> = Vec::new();
    for (at, shape) in plan.shapes.iter().enumerate() {
        let count = candidate.capacities[at];
        if count == 0 {
            continue;
        }
        if clash(&ports, shape.ports) || shape.fits(&available, count) < count {
            return true;
        }
        take(plan, &mut available, at, count);
        ports.extend(shape.ports);
    }
    false
}

fn sums_from(plan: &Plan<'_>, candidates: &[Candidate]) -> Vec<(Vec<u64>, Vec<u128>)> {
    let mut sums = (vec![0_u64; plan.shapes.len()], vec![0_u128; plan.kinds.len()]);
    let mut rest = Vec::with_capacity(candidates.len());
    for candidate in candidates.iter().rev() {
        for (sum, capacity) in sums.0.iter_mut().zip(&candidate.capacities) {
            *sum += u64::from(*capacity);
        }
        for (sum, available) in sums.1.iter_mut().zip(&candidate.available) {
            *sum += u128::from(*available);
        }
        rest.push(sums.clone());
    }
    rest.reverse();
    rest
}

impl<'a> Search<'a> {
    pub(super) fn new(plan: &'a Plan<'a>, mut candidates: Vec<Candidate>) -> Self {
        let order = candidates.iter().enumerate().map(|(at, candidate)| (candidate.node, at)).collect();
        candidates.sort_by_key(|candidate| contested(plan, candidate));
        let rest = sums_from(plan, &candidates);
        let left = BUDGET + 2 * candidates.len() as u64;
        Self { plan, candidates, order, rest, left }
    }

    /// Sorts nodes in the original order of the candidates.
    pub(super) fn put_in_order(&self, taken: &mut Taken) {
        taken.sort_by_key(|(node, _)| self.order.get(node).copied());
    }

    fn run(&mut self) -> Option<Taken> {
        let wanted: Filling = self.plan.shapes.iter().map(|shape| shape.count).collect();
        if !self.possible(0, &wanted) {
            return None;
        }
        let mut failed = BTreeSet::new();
        let mut stack = vec![self.frame(0, wanted)];
        while let Some(frame) = stack.last_mut() {
            let Some(filling) = frame.fillings.get(frame.next) else {
                let depth = stack.len() - 1;
                if let Some(frame) = stack.pop() {
                    failed.insert((depth, frame.wanted));
                }
                continue;
            };
            frame.next += 1;
            let wanted: Filling =
                frame.wanted.iter().zip(filling).map(|(want, count)| want - count).collect();
            if wanted.iter().all(|count| *count == 0) {
                return Some(self.chosen(&stack));
            }
            if self.left == 0 {
                return None;
            }
            let state = (stack.len(), wanted);
            if self.possible(state.0, &state.1) && !failed.contains(&state) {
                let frame = self.frame(state.0, state.1);
                stack.push(frame);
            }
        }
        None
    }

    /// The current fillings of the frames.
    pub(super) fn chosen(&self, stack: &[Frame]) -> Taken {
        let last = |(frame, candidate): (&Frame, &Candidate)| {
            (candidate.node, frame.fillings[frame.next.saturating_sub(1)].clone())
        };
        stack
            .iter()
            .zip(&self.candidates)
            .map(last)
            .filter(|(_, filling)| filling.iter().any(|count| *count > 0))
            .collect()
    }

    /// Whether the remaining candidates could hold the required slots, checked by shape and by kind.
    fn possible(&self, from: usize, wanted: &[u32]) -> bool {
        let Some((slots, quantities)) = self.rest.get(from) else { return false };
        if wanted.iter().zip(slots).any(|(want, have)| u64::from(*want) > *have) {
            return false;
        }
        let mut sums = vec![0_u128; quantities.len()];
        for (shape, count) in self.plan.shapes.iter().zip(wanted) {
            for (kind, need) in &shape.needs {
                sums[*kind] += u128::from(*need) * u128::from(*count);
            }
        }
        sums.iter().zip(quantities).all(|(want, have)| want <= have)
    }

    pub(super) fn frame(&mut self, at: usize, wanted: Filling) -> Frame {
        let mut fillings = Fillings {
            plan: self.plan,
            candidate: &self.candidates[at],
            wanted: &wanted,
            filling: vec![0; wanted.len()],
            found: Vec::new(),
            left: &mut self.left,
        };
        let mut available = fillings.candidate.available.clone();
        fillings.descend(0, &mut available, &mut Vec::new());
        let fillings = fillings.found;
        Frame { fillings, next: 0, wanted }
    }
}

/// Lists the fillings of one node.
struct Fillings<'a> {
    plan: &'a Plan<'a>,
    candidate: &'a Candidate,
    wanted: &'a [u32],
    filling: Filling,
    found: Vec<Filling>,
    left: &'a mut u64,
}

impl<'a> Fillings<'a> {
    fn limit(&self, at: usize) -> u32 {
        self.candidate.capacities[at].min(self.wanted[at])
    }

    /// Continues with the shape at `at`; recursion depth is the number of shapes, at most [`MOST_SHAPES`].
    fn descend(&mut self, at: usize, available: &mut Vec<u64>, ports: &mut Vec<&'a HostPort>) {
        if *self.left == 0 {
            return;
        }
        let plan = self.plan;
        let Some(shape) = plan.shapes.get(at) else {
            *self.left -= 1;
            let room = |(other, shape): (usize, &super::plan::PlannedShape<'_>)| {
                self.filling[other] < self.limit(other)
                    && !clash(ports, shape.ports)
                    && shape.fits(available, 1) > 0
            };
            if !plan.shapes.iter().enumerate().any(room) {
                self.found.push(self.filling.clone());
            }
            return;
        };
        let limit = self.limit(at);
        let most = if limit == 0 || clash(ports, shape.ports) { 0 } else { shape.fits(available, limit) };
        for count in (0..=most).rev() {
            if *self.left == 0 {
                return;
            }
            let (before, port_count) = (available.clone(), ports.len());
            take(plan, available, at, count);
            if count > 0 {
                ports.extend(shape.ports);
            }
            self.filling[at] = count;
            self.descend(at + 1, available, ports);
            self.filling[at] = 0;
            *available = before;
            ports.truncate(port_count);
        }
    }
}
