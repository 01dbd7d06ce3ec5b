//! Goes through planned ends in order of time until enough has been released for a request.
//!
//! For nodes without reservations what a node takes grows with each end, so a running sum for each list of nodes
//! tells when a start is worth an exact search. A node with reservations is asked at each of its own changes.

use std::collections::BTreeSet;

use super::Planned;
use super::lens::Lens;
use super::plan::Plan;
use super::search::{Work, place_in};
use crate::inventory::{NodeId, planned_end};
use crate::request::Request;

/// Shapes that are counted while time goes on: enough to tell when an exact search is worth it.
const COUNTED: usize = 64;
/// Exact searches that may fail before some times are passed over: sums can be enough for several shapes long before
/// their slots really fit.
const SEARCHES: u32 = 64;

/// A node that is not looked at.
const NOWHERE: u32 = u32::MAX;

/// One node while time goes on; its numbers lie in the sweep's vectors.
struct Runner {
    id: NodeId,
    group: usize,
    reserved: bool,
    /// The same node in another list.
    next: u32,
}

pub(super) struct Sweep<'a> {
    plan: &'a Plan<'a>,
    request: &'a Request,
    now: i64,
    counted: usize,
    /// Place in `runners` by node id; of a node in several lists the last one.
    places: Vec<u32>,
    runners: Vec<Runner>,
    /// What is left of each of the plan's kinds when holders have left, runner by runner; below 0 for a deficit.
    balances: Vec<i128>,
    /// What each takes of each counted shape, runner by runner.
    capacities: Vec<u32>,
    /// Slots of each counted shape that the nodes of a list take, by list.
    sums: Vec<Vec<u64>>,
    /// Changes of nodes with reservations: time and place in `runners`, in order.
    changes: Vec<(i64, u32)>,
    /// Lists that changed since they were searched.
    changed: BTreeSet<usize>,
    /// Exact searches that failed, and how many times are passed over before the next.
    failed: u32,
    pass_over: u64,
    available: Vec<u64>,
}

impl<'a> Sweep<'a> {
    pub(super) fn new(plan: &'a Plan<'a>, request: &'a Request, now: i64) -> Self {
        let lists = plan.group_count();
        let counted = plan.shapes.len().min(COUNTED);
        let mut sweep = Self {
            plan,
            request,
            now,
            counted,
            places: Vec::new(),
            runners: Vec::new(),
            balances: Vec::new(),
            capacities: Vec::new(),
            sums: vec![vec![0; counted]; lists],
            changes: Vec::new(),
            changed: BTreeSet::new(),
            failed: 0,
            pass_over: 0,
            available: Vec::new(),
        };
        for group in 0..lists {
            for id in plan.group(group).map_or(&[][..], |(_, nodes)| nodes) {
                sweep.enter(group, *id);
            }
        }
        sweep.changes.sort_unstable();
        sweep.changes.dedup();
        sweep
    }

    fn enter(&mut self, group: usize, id: NodeId) {
        let (plan, inventory) = (self.plan, self.plan.inventory);
        let Some(book) = inventory.book(id) else { return };
        let lens = self.lens(self.now);
        if !plan.shapes.iter().any(|shape| lens.admits(shape, id)) {
            return;
        }
        let Ok(place) = u32::try_from(self.runners.len()) else { return };
        if self.places.len() <= id as usize {
            self.places.resize(id as usize + 1, NOWHERE);
        }
        let next = std::mem::replace(&mut self.places[id as usize], place);
        self.balances.extend(plan.kinds.iter().map(|kind| book.balance(*kind)));
        self.capacities.resize(self.capacities.len() + self.counted, 0);
        let reserved = inventory.reserved_on(id);
        self.runners.push(Runner { id, group, reserved: !reserved.is_empty(), next });
        if !reserved.is_empty() {
            let length = self.request.end(self.now).map(|end| end - self.now);
            let ends = book.holds.iter().filter(|(_, held)| held.hold.until.is_some());
            let ends = ends.map(|(_, held)| planned_end(held.hold.until, self.now));
            let promised = reserved.iter().flat_map(|reservation| {
                // From this second on a start would still be running when the reservation begins.
                let meets = |length| reservation.start.saturating_sub(length).saturating_add(1);
                [Some(reservation.end), length.map(meets)].into_iter().flatten()
            });
            let now = self.now;
            let times = ends.chain(promised).filter(|at| now < *at && *at < i64::MAX);
            self.changes.extend(times.map(|at| (at, place)));
        }
        self.recount(place, self.now);
    }

    fn lens(&self, start: i64) -> Lens<'a> {
        let end = self.request.end(start).unwrap_or(i64::MAX);
        Lens::window(self.plan.inventory, self.now, start, end)
    }

    /// Counts anew what the node takes of a start at that time.
    fn recount(&mut self, place: u32, start: i64) {
        let (plan, lens) = (self.plan, self.lens(start));
        let place = place as usize;
        let runner = &self.runners[place];
        if runner.reserved {
            lens.available(runner.id, &plan.kinds, &mut self.available);
        } else {
            let balances = &self.balances[place * plan.kinds.len()..][..plan.kinds.len()];
            self.available.clear();
            self.available.extend(balances.iter().map(|left| u64::try_from(*left).unwrap_or(0)));
        }
        let capacities = &mut self.capacities[place * self.counted..][..self.counted];
        let sums = &mut self.sums[runner.group];
        for ((shape, before), sum) in plan.shapes.iter().zip(capacities).zip(sums) {
            let capacity = lens.capacity(shape, runner.id, &self.available);
            *sum = *sum - u64::from(*before) + u64::from(capacity);
            *before = capacity;
        }
    }

    pub(super) fn run(mut self, work: &mut Work) -> Option<Planned> {
        let inventory = self.plan.inventory;
        let overrun = self.now.saturating_add(1);
        let mut ends = inventory.ends().peekable();
        let changes = std::mem::take(&mut self.changes);
        let mut changes = changes.into_iter().peekable();
        let mut touched = Vec::new();
        loop {
            let next_end = ends.peek().map(|(until, ..)| (*until).max(overrun));
            let next_change = changes.peek().map(|(at, _)| *at);
            let time = [next_end, next_change].into_iter().flatten().min()?;
            touched.clear();
            while let Some((_, id, needs)) = ends.next_if(|(until, ..)| (*until).max(overrun) == time) {
                work.visited += 1;
                self.leave(id, needs, &mut touched);
            }
            while let Some((_, place)) = changes.next_if(|(at, _)| *at == time) {
                work.visited += 1;
                touched.push(place);
            }
            touched.sort_unstable();
            touched.dedup();
            for place in &touched {
                self.recount(*place, time);
                self.changed.insert(self.runners[*place as usize].group);
            }
            let last = ends.peek().is_none() && changes.peek().is_none();
            if self.pass_over > 0 && !last {
                self.pass_over -= 1;
            } else if let Some(planned) = self.attempt(time, work) {
                return Some(planned);
            }
        }
    }

    /// Takes a holder away; puts the places where the node is looked at into `touched`.
    fn leave(&mut self, id: NodeId, needs: &[(u32, u64)], touched: &mut Vec<u32>) {
        let kinds = &self.plan.kinds;
        let mut place = self.places.get(id as usize).copied().unwrap_or(NOWHERE);
        while place != NOWHERE {
            let balances = &mut self.balances[place as usize * kinds.len()..][..kinds.len()];
            for (kind, quantity) in needs {
                if let Some(at) = kinds.iter().position(|wanted| wanted == kind) {
                    balances[at] += i128::from(*quantity);
                }
            }
            touched.push(place);
            place = self.runners[place as usize].next;
        }
    }

    /// An exact search in the lists that changed and could be enough.
    fn attempt(&mut self, time: i64, work: &mut Work) -> Option<Planned> {
        let lens = self.lens(time);
        let enough = |group: &usize| {
            let mut sums = self.plan.shapes.iter().zip(&self.sums[*group]);
            sums.all(|(shape, sum)| u64::from(shape.count) <= *sum)
        };
        let mut groups: Vec<usize> = std::mem::take(&mut self.changed).into_iter().filter(enough).collect();
        if groups.is_empty() {
            return None;
        }
        if self.plan.policy == super::NodePolicy::High {
            groups.reverse();
        }
        let found = groups.iter().find_map(|group| place_in(self.plan, &lens, *group, work));
        if found.is_none() {
            self.failed += 1;
            self.pass_over = (1 << self.failed.saturating_sub(SEARCHES).min(20)) - 1;
        }
        Some(Planned { start: time, end: self.request.end(time), placement: found? })
    }
}
