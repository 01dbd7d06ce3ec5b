//! The earliest start of a request: planned ends are gone through in order of time until enough has been released.
//!
//! For nodes without reservations what a node takes grows with each end, so a running sum per domain tells when a
//! start is worth an exact search. A node with reservations is asked at each of its own changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::lens::Lens;
use super::plan::Plan;
use super::search::{Work, place, place_in};
use super::{Failure, NodePolicy, Placement, Planned, try_now};
use crate::inventory::{Inventory, NodeId, planned_end};
use crate::request::Request;

/// Holders and jobs that are named as standing in the way, at most.
const NAMED: usize = 16;
/// Shapes that are counted while time goes on: enough to tell when an exact search is worth it.
const COUNTED: usize = 64;

/// The earliest start at which the request fits for as long as it runs, between the reservations there are. Fails
/// when no planned end makes room for it: [`Failure::no_end`] names who has none.
pub fn earliest(
    inventory: &Inventory,
    request: &Request,
    now: i64,
    policy: NodePolicy,
) -> Result<Planned, Failure> {
    let mut work = Work::default();
    match try_now(inventory, request, now, policy, &mut work) {
        Ok(placement) => Ok(Planned { start: now, end: request.end(now), placement }),
        Err(_) => first_start(inventory, request, now, policy, &mut work),
    }
}

/// As [`earliest`], for a request that is known not to start now.
pub(crate) fn first_start(
    inventory: &Inventory,
    request: &Request,
    now: i64,
    policy: NodePolicy,
    work: &mut Work,
) -> Result<Planned, Failure> {
    let plan = Plan::new(inventory, request, policy);
    let mut sweep_work = Work { visited: work.visited, ..Work::default() };
    let planned = if place(&plan, &Lens::late_unreserved(inventory, now), &mut sweep_work).is_some() {
        Sweep::new(&plan, request, now).run(&mut sweep_work)
    } else {
        None
    };
    work.visited = sweep_work.visited;
    planned.ok_or_else(|| in_the_way(&plan, now))
}

/// Jobs that the nodes of a placement are promised to, by id.
pub(super) fn promised_to(inventory: &Inventory, placement: &Placement) -> Vec<u32> {
    let nodes = placement.slots.iter().filter_map(|slot| inventory.id(&slot.node));
    let mut jobs: Vec<u32> =
        nodes.flat_map(|id| inventory.reserved_on(id)).map(|reservation| reservation.job).collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs.truncate(NAMED);
    jobs
}

/// Who has no planned end on nodes that would take more without them.
pub(crate) fn in_the_way(plan: &Plan<'_>, now: i64) -> Failure {
    let inventory = plan.inventory;
    let (late, most) = (Lens::late(inventory, now), Lens::most(inventory));
    let mut failure = Failure::default();
    let (mut at_most, mut at_last) = (Vec::new(), Vec::new());
    let nodes = plan.group_order().filter_map(|group| plan.group(group)).flat_map(|(_, nodes)| nodes);
    for id in nodes.copied() {
        most.available(id, &plan.kinds, &mut at_most);
        late.available(id, &plan.kinds, &mut at_last);
        let blocked = plan.shapes.iter().find(|shape| {
            late.admits(shape, id) && most.capacity(shape, id, &at_most) > late.capacity(shape, id, &at_last)
        });
        let (Some(shape), Some(book)) = (blocked, inventory.book(id)) else { continue };
        let wants = |kind: u32| shape.needs.iter().any(|(at, _)| plan.kinds[*at] == kind);
        for (holder, held) in &book.holds {
            let hold = &held.hold;
            let uses = held.needs.iter().any(|(kind, _)| wants(*kind));
            if hold.until.is_none() && !hold.permanent && uses && failure.no_end.len() < NAMED {
                failure.no_end.push(holder.clone());
            }
        }
        for reservation in inventory.reserved_on(id) {
            let named = failure.no_end_jobs.contains(&reservation.job);
            if reservation.end == i64::MAX && !named && failure.no_end_jobs.len() < NAMED {
                failure.no_end_jobs.push(reservation.job);
            }
        }
        if failure.no_end.len() == NAMED {
            break;
        }
    }
    failure.no_end_jobs.sort_unstable();
    failure
}

/// One node while time goes on.
struct Runner {
    group: usize,
    /// What is left of each kind when holders have left; below 0 for a deficit.
    balance: Vec<i128>,
    capacities: Vec<u32>,
}

/// Exact searches that may fail before some times are passed over: sums can be enough for several shapes long before
/// their slots really fit.
const SEARCHES: u32 = 64;

struct Sweep<'a> {
    plan: &'a Plan<'a>,
    request: &'a Request,
    now: i64,
    runners: BTreeMap<NodeId, Runner>,
    /// Slots of each shape that the nodes of a list take, by list.
    sums: Vec<Vec<u64>>,
    /// Changes of nodes with reservations: time and node, in order.
    changes: Vec<(i64, NodeId)>,
    /// Lists that changed since they were searched.
    changed: BTreeSet<usize>,
    /// Exact searches that failed, and how many times are passed over before the next.
    failed: u32,
    pass_over: u64,
}

impl<'a> Sweep<'a> {
    fn new(plan: &'a Plan<'a>, request: &'a Request, now: i64) -> Self {
        let lists = plan.group_count();
        let mut sweep = Self {
            plan,
            request,
            now,
            runners: BTreeMap::new(),
            sums: vec![vec![0; plan.shapes.len().min(COUNTED)]; lists],
            changes: Vec::new(),
            changed: BTreeSet::new(),
            failed: 0,
            pass_over: 0,
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
        let balance = plan.kinds.iter().map(|kind| book.balance(*kind)).collect();
        self.runners
            .insert(id, Runner { group, balance, capacities: vec![0; plan.shapes.len().min(COUNTED)] });
        let reserved = inventory.reserved_on(id);
        if !reserved.is_empty() {
            let length = self.request.end(self.now).map(|end| end - self.now);
            let mut times: Vec<i64> = book
                .holds
                .iter()
                .filter(|(_, held)| held.hold.until.is_some())
                .map(|(_, held)| planned_end(held.hold.until, self.now))
                .collect();
            for reservation in reserved {
                times.push(reservation.end);
                // From this second on a start would still be running when the reservation begins.
                times.extend(length.map(|length| reservation.start.saturating_sub(length).saturating_add(1)));
            }
            let now = self.now;
            self.changes
                .extend(times.into_iter().filter(|at| now < *at && *at < i64::MAX).map(|at| (at, id)));
        }
        self.recount(id, self.now);
    }

    fn lens(&self, start: i64) -> Lens<'a> {
        let end = self.request.end(start).unwrap_or(i64::MAX);
        Lens::window(self.plan.inventory, self.now, start, end)
    }

    /// Counts anew what the node takes of a start at that time.
    fn recount(&mut self, id: NodeId, start: i64) {
        let (plan, lens) = (self.plan, self.lens(start));
        let Some(runner) = self.runners.get_mut(&id) else { return };
        let mut available = Vec::with_capacity(plan.kinds.len());
        if plan.inventory.reserved_on(id).is_empty() {
            available.extend(runner.balance.iter().map(|left| u64::try_from(*left).unwrap_or(0)));
        } else {
            lens.available(id, &plan.kinds, &mut available);
        }
        for (at, shape) in plan.shapes.iter().enumerate().take(COUNTED) {
            let capacity = lens.capacity(shape, id, &available);
            let sum = &mut self.sums[runner.group][at];
            *sum = *sum - u64::from(runner.capacities[at]) + u64::from(capacity);
            runner.capacities[at] = capacity;
        }
    }

    fn run(mut self, work: &mut Work) -> Option<Planned> {
        let inventory = self.plan.inventory;
        let overrun = self.now.saturating_add(1);
        let mut ends = inventory.ends().peekable();
        let changes = std::mem::take(&mut self.changes);
        let mut changes = changes.into_iter().peekable();
        loop {
            let next_end = ends.peek().map(|(until, _, _)| (*until).max(overrun));
            let next_change = changes.peek().map(|(at, _)| *at);
            let time = [next_end, next_change].into_iter().flatten().min()?;
            let mut touched = Vec::new();
            while let Some((_, id, holder)) = ends.next_if(|(until, _, _)| (*until).max(overrun) == time) {
                work.visited += 1;
                self.leave(*id, holder);
                touched.push(*id);
            }
            while let Some((_, id)) = changes.next_if(|(at, _)| *at == time) {
                work.visited += 1;
                touched.push(id);
            }
            touched.sort_unstable();
            touched.dedup();
            for id in &touched {
                self.recount(*id, time);
            }
            self.changed
                .extend(touched.iter().filter_map(|id| self.runners.get(id)).map(|runner| runner.group));
            let last = ends.peek().is_none() && changes.peek().is_none();
            if self.pass_over > 0 && !last {
                self.pass_over -= 1;
            } else if let Some(planned) = self.attempt(time, work) {
                return Some(planned);
            }
        }
    }

    fn leave(&mut self, id: NodeId, holder: &Arc<str>) {
        let plan = self.plan;
        let Some(runner) = self.runners.get_mut(&id) else { return };
        let Some(held) = plan.inventory.book(id).and_then(|book| book.find(holder)) else { return };
        for (kind, quantity) in held.needs.iter() {
            if let Some(at) = plan.kinds.iter().position(|wanted| wanted == kind) {
                runner.balance[at] += i128::from(*quantity);
            }
        }
    }

    /// An exact search in the lists that changed and could be enough.
    fn attempt(&mut self, time: i64, work: &mut Work) -> Option<Planned> {
        let lens = self.lens(time);
        let changed = std::mem::take(&mut self.changed);
        let enough = |group: &usize| {
            let mut sums = self.plan.shapes.iter().zip(&self.sums[*group]);
            changed.contains(group) && sums.all(|(shape, sum)| u64::from(shape.count) <= *sum)
        };
        let groups: Vec<usize> = self.plan.group_order().filter(enough).collect();
        let found = groups.iter().find_map(|group| place_in(self.plan, &lens, *group, work));
        if found.is_none() && !groups.is_empty() {
            self.failed += 1;
            self.pass_over = (1 << self.failed.saturating_sub(SEARCHES).min(20)) - 1;
        }
        let placement = found?;
        Some(Planned { start: time, end: self.request.end(time), placement })
    }
}
