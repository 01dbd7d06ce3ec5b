//! Several queues over one inventory that lives on: every pass, which goes on from what the last one knew and may be
//! cut into slices, decides what a pass from scratch decides.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::*;
use super::random::{Decisions, config, definition, inventory, request, start};
use super::refused;
use crate::inventory::{Allocation, AllocationKind, Inventory};
use crate::request::Request;
use crate::testing::{hold, node, sound};

/// What happens between two passes. Numbers pick one of those that there are.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Release(usize),
    /// In place, to another size.
    Resize(usize, u64),
    Retime(usize, Option<i64>),
    Move(usize, usize),
    /// Seen where it was put.
    Arrive(usize),
    Take(usize, u64, Option<i64>),
    Node(usize, u64, bool),
    RemoveNode(usize),
    Withdraw(usize),
}

/// Jobs that come (which request, which queue, whether before those that wait), what else happens, seconds that pass,
/// and how much a slice may look at.
pub(super) type Round = (Vec<(usize, usize, bool)>, Vec<Change>, i64, u64);

fn change() -> impl Strategy<Value = Change> {
    let at = || 0..40_usize;
    let until = || prop::option::weighted(0.7, 0_i64..60);
    prop_oneof![
        2 => at().prop_map(Change::Release),
        2 => (at(), 0..6_u64).prop_map(|(at, cpu)| Change::Resize(at, cpu)),
        2 => (at(), until()).prop_map(|(at, until)| Change::Retime(at, until)),
        1 => (at(), at()).prop_map(|(at, on)| Change::Move(at, on)),
        2 => at().prop_map(Change::Arrive),
        2 => (at(), 0..5_u64, until()).prop_map(|(on, cpu, until)| Change::Take(on, cpu, until)),
        1 => (at(), 1..9_u64, any::<bool>()).prop_map(|(at, cpu, cordoned)| Change::Node(at, cpu, cordoned)),
        1 => at().prop_map(Change::RemoveNode),
        1 => at().prop_map(Change::Withdraw),
    ]
}

pub(super) fn round() -> impl Strategy<Value = Round> {
    let arriving = prop::collection::vec((0..6_usize, 0..3_usize, prop::bool::weighted(0.2)), 0..6);
    // Often nothing happens, so that what is remembered is used.
    let changes = prop_oneof![2 => Just(vec![]), 3 => prop::collection::vec(change(), 1..4)];
    let budget = prop_oneof![Just(u64::MAX), 1..40_u64];
    (arriving, changes, prop_oneof![Just(0_i64), 1_i64..12], budget)
}

pub(super) struct World {
    pub(super) books: Inventory,
    pub(super) now: i64,
    pub(super) queues: Vec<QueueConfig>,
    pub(super) waiting: Vec<Vec<PassJob>>,
    pub(super) memory: Vec<Arc<KnownFailures>>,
    pub(super) next: u32,
}

impl World {
    fn holder(&self, at: usize, kind: Option<AllocationKind>) -> Option<(Arc<str>, Arc<str>, Allocation)> {
        let some: Vec<_> =
            self.books.holdings().filter(|(_, _, hold)| kind.is_none_or(|kind| hold.kind == kind)).collect();
        let (holder, node, hold) = *some.get(at % some.len().max(1))?;
        Some((holder.clone(), node.clone(), hold.clone()))
    }

    fn node_name(at: usize) -> String {
        format!("n{}", at % 8)
    }

    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Release(at) => {
                self.holder(*at, None).map(|(holder, ..)| self.books.release(&holder));
            }
            Change::Resize(at, cpu) => {
                if let Some((holder, node, share)) = self.holder(*at, None) {
                    let needs = hold(&format!("cpu={cpu}"), None).needs;
                    self.books.hold(holder, &node, Allocation { needs, ..share });
                }
            }
            Change::Retime(at, until) => {
                let until = until.map(|until| until + self.now - 5);
                self.holder(*at, None).map(|(holder, ..)| self.books.retime(&holder, until));
            }
            Change::Move(at, on) => {
                if let Some((holder, _, share)) = self.holder(*at, None) {
                    self.books.hold(holder, &Self::node_name(*on), share);
                }
            }
            Change::Arrive(at) => self.arrive(*at),
            Change::Take(on, cpu, until) => {
                self.next += 1;
                let share = hold(&format!("cpu={cpu}"), until.map(|until| until + self.now));
                self.books.hold(format!("late{}", self.next).into(), &Self::node_name(*on), share);
            }
            Change::Node(at, cpu, cordoned) => {
                let text = format!("cpu={cpu} gpu={} rack:r{}", cpu / 2, at % 3);
                let mut spec = node(&Self::node_name(*at), &text);
                spec.unschedulable = *cordoned;
                self.books.set_node(spec);
            }
            Change::RemoveNode(at) => self.books.remove_node(&Self::node_name(*at)),
            Change::Withdraw(at) => {
                let queue = at % self.waiting.len();
                if !self.waiting[queue].is_empty() {
                    let job = at % self.waiting[queue].len();
                    self.waiting[queue].remove(job);
                }
            }
        }
    }

    fn arrive(&mut self, at: usize) {
        if let Some((holder, node, share)) = self.holder(at, Some(AllocationKind::Assumed)) {
            self.books.hold(
                holder,
                &node,
                Allocation { kind: AllocationKind::Bound, from: self.now, ..share },
            );
        }
    }

    /// One pass over all queues, in slices.
    fn pass(&mut self, budget: u64) -> Vec<Decisions> {
        self.books.clear_reservations();
        self.pass_on(budget, false)
    }

    /// The same with the reservations that there are.
    pub(super) fn pass_on(&mut self, budget: u64, changed: bool) -> Vec<Decisions> {
        let mut all = Vec::new();
        for queue in 0..self.queues.len() {
            // The definition does not rearrange anything.
            let known = Carry::remembering(self.memory[queue].clone());
            let mut carry = Some(Carry { in_vain: u32::MAX, ..known.changed(changed) });
            let jobs = self.waiting[queue].clone();
            let mut decisions = Decisions::default();
            while let Some(before) = carry {
                let config = &self.queues[queue];
                let result = pass(&mut self.books, config, &jobs, self.now, budget, Some(before));
                for (id, placement) in &result.started {
                    let job = jobs.iter().find(|job| job.id == *id).unwrap();
                    start(&mut self.books, job, config, placement, self.now);
                }
                if !result.started.is_empty() {
                    self.arrive(result.started.len());
                }
                decisions.refused.extend(refused(&result, &jobs));
                decisions.started.extend(result.started);
                decisions.reserved.extend(result.reserved);
                decisions.tried += result.tried;
                decisions.look_again |= result.look_again;
                carry = result.carry;
                if carry.is_none() {
                    self.memory[queue] = result.memory;
                }
            }
            all.push(decisions);
        }
        all
    }

    /// The same from scratch.
    fn definition(&self) -> Vec<Decisions> {
        let mut books = self.books.clone();
        books.clear_reservations();
        let queues = self.queues.iter().zip(&self.waiting);
        queues.map(|(config, jobs)| definition(&mut books, config, jobs, self.now)).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn a_pass_that_remembers_decides_what_one_from_scratch_decides(
        books in inventory(),
        queues in prop::collection::vec(config(), 1..4),
        distinct in prop::collection::vec(request(), 1..6),
        rounds in prop::collection::vec(round(), 2..8),
    ) {
        let waiting = vec![Vec::new(); queues.len()];
        let memory = vec![Arc::default(); queues.len()];
        let mut world = World { books, now: 0, queues, waiting, memory, next: 0 };
        for (arriving, changes, seconds, budget) in rounds {
            world.now += seconds;
            world.books.prolong(world.now);
            for change in &changes {
                world.apply(change);
            }
            for (pick, queue, first) in arriving {
                world.next += 1;
                let request: Arc<Request> = Arc::new(distinct[pick % distinct.len()].clone());
                let queue = queue % world.queues.len();
                let at = if first { 0 } else { world.waiting[queue].len() };
                world.waiting[queue].insert(at, PassJob { id: world.next, priority: 0, request });
            }
            let wanted = world.definition();
            let decided = world.pass(budget);
            sound(&world.books);
            for (waiting, decided) in world.waiting.iter_mut().zip(&decided) {
                waiting.retain(|job| decided.started.iter().all(|(id, _)| *id != job.id));
            }
            for (decided, wanted) in decided.into_iter().zip(wanted) {
                prop_assert_eq!(decided.agrees(wanted), Ok(()));
            }
        }
    }
}
