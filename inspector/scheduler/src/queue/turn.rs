//! A pass in progress: what it decides for one job, and what it then knows and holds.

use std::sync::Arc;

use super::QueueConfig;
use super::job::{Carry, PassJob, PassResult, Refusal, Rest, start_holder};
use super::known::{Failed, Kept};
use crate::inventory::{Allocation, AllocationKind, Inventory, planned_or_assumed};
use crate::placement::{Between, Blocked, Plan, Work, first_start, in_the_way, start_now};
use crate::request::{Placement, Planned, Request, Slot};

/// How long it takes, in seconds; none for no limit.
pub(super) fn length(request: &Request) -> Option<i64> {
    request.duration.map(|seconds| seconds.max(1))
}

/// A pass in progress, or a slice of it.
pub(super) struct Turn<'a> {
    pub(super) inventory: &'a mut Inventory,
    pub(super) config: &'a QueueConfig,
    pub(super) now: i64,
    pub(super) carry: Carry,
    pub(super) work: Work,
    pub(super) result: PassResult,
    /// What the started jobs hold until the pass is over.
    holders: Vec<Arc<str>>,
}

impl<'a> Turn<'a> {
    pub(super) fn new(inventory: &'a mut Inventory, config: &'a QueueConfig, now: i64, carry: Carry) -> Self {
        Self {
            inventory,
            config,
            now,
            carry,
            work: Work::default(),
            result: PassResult::default(),
            holders: Vec::new(),
        }
    }

    /// The place of a job's request among those known.
    pub(super) fn place(&mut self, job: &PassJob) -> usize {
        Arc::make_mut(&mut self.carry.memory).place(&job.request, self.config.default_duration)
    }

    /// Starts a job without a reservation, or makes one, or refuses both.
    pub(super) fn decide(&mut self, job: &PassJob, place: usize) {
        let may_reserve = self.carry.reservations < self.config.reservations();
        if (may_reserve || self.carry.silent) && !self.may_start(place) {
            if !may_reserve {
                return self.reserve(job, place, Vec::new());
            }
            if let Ok(planned) = self.plan(place) {
                return self.promise(job, place, planned);
            }
        }
        match self.start(place) {
            Ok(placement) => self.take(job.id, place, placement),
            Err(behind) => self.reserve(job, place, behind),
        }
    }

    /// Makes a reservation for a job that does not start now, if there may be another one.
    pub(super) fn reserve(&mut self, job: &PassJob, place: usize, behind: Vec<u32>) {
        if self.carry.reservations >= self.config.reservations() {
            let refusal = if behind.is_empty() {
                Refusal::Busy
            } else {
                self.result.behind = true;
                Refusal::BehindReservation { jobs: behind }
            };
            self.carry.blocked = self.config.policy == super::QueuePolicy::Fcfs;
            self.result.refused.push((job.id, refusal));
            return;
        }
        match self.plan(place) {
            Ok(planned) => self.promise(job, place, planned),
            Err(_) if !behind.is_empty() => {
                self.carry.counted -= 1;
                self.result.behind = true;
                self.result.refused.push((job.id, Refusal::BehindReservation { jobs: behind }));
            }
            Err(why) => {
                self.carry.counted -= 1;
                let refusal = Refusal::NoEstimate { holders: why.no_end, jobs: why.no_end_jobs };
                self.result.refused.push((job.id, refusal));
            }
        }
    }

    /// Whether there may be enough in total for an immediate start.
    pub(super) fn may_start(&mut self, place: usize) -> bool {
        let memory = Arc::make_mut(&mut self.carry.memory);
        if memory.of(place).busy {
            return false;
        }
        let wants = memory.wants(place, self.inventory);
        if self.inventory.lacks(&wants) {
            memory.of(place).busy = true;
            return false;
        }
        let end = memory.known_request(place).end(self.now).unwrap_or(i64::MAX);
        self.inventory.may_start(&wants, self.now, end)
    }

    /// An immediate start, unless an equal request is known to fail; or the jobs that only block it by their
    /// reservations.
    pub(super) fn start(&mut self, place: usize) -> Result<Placement, Vec<u32>> {
        let decided = (self.carry.started, self.carry.reservations);
        let (now, policy, inventory) = (self.now, self.config.node_policy, &*self.inventory);
        let memory = Arc::make_mut(&mut self.carry.memory);
        let request = memory.request(place);
        let known = memory.of(place);
        // Others that have started since may be what it waits for.
        let awaits = request.awaits_others();
        if known.busy && !awaits {
            return Err(Vec::new());
        }
        if let Some(failed) = known.failed.as_ref().filter(|failed| failed.decided == decided) {
            return Err(failed.start.behind.clone());
        }
        let plan = Plan::new(inventory, &request, policy);
        let nodes = known.roomy.as_mut().and_then(|roomy| roomy.nodes_now(&plan, now, &mut self.work));
        let narrow = nodes.map(<[_]>::to_vec);
        let plan = match &narrow {
            None => {
                known.roomy = None;
                plan
            }
            Some(nodes) if nodes.is_empty() && !awaits => {
                known.busy = true;
                return Err(Vec::new());
            }
            Some(nodes) => plan.among(nodes),
        };
        if let Some(failed) = known.failed.as_mut().filter(|failed| failed.now == now)
            && failed.start.look_again(&plan, now, &mut self.work)
        {
            failed.decided = decided;
            known.busy = failed.start.behind.is_empty() && !awaits;
            return Err(failed.start.behind.clone());
        }
        self.work.skip = if narrow.is_none() { known.skip } else { 0 };
        let outcome = start_now(&plan, &request, now, &mut self.work);
        if narrow.is_none() {
            known.skip = if request.level.is_none() { self.work.first } else { 0 };
        }
        self.work.skip = 0;
        outcome.map_err(|mut start| {
            let behind = start.behind.clone();
            known.busy = behind.is_empty() && !awaits;
            known.roomy = start.roomy.take().or(known.roomy.take());
            known.failed = Some(Failed { start, now, decided });
            behind
        })
    }

    /// A planned start, unless an equal request is known to have none.
    pub(super) fn plan(&mut self, place: usize) -> Result<Planned, Blocked> {
        let (now, policy, inventory) = (self.now, self.config.node_policy, &*self.inventory);
        let memory = Arc::make_mut(&mut self.carry.memory);
        let request = memory.request(place);
        let wants = memory.wants(place, inventory);
        let known = memory.of(place);
        if request.awaits_others() {
            let between = Between { now, from: now, before: i64::MAX };
            return first_start(inventory, &request, between, policy, &mut self.work);
        }
        if let Some(failure) = &known.no_estimate {
            return Err(failure.clone());
        }
        let outcome = if known.hopeless {
            // Different jobs may be in the way by now.
            Err(in_the_way(&Plan::new(inventory, &request, policy), now))
        } else {
            let from = known.not_before.max(now.saturating_add(1));
            let from = match inventory.not_before(&wants, (from, i64::MAX), length(&request)) {
                // It says why.
                i64::MAX => from,
                from => from,
            };
            let between = Between { now, from, before: i64::MAX };
            first_start(inventory, &request, between, policy, &mut self.work)
        };
        match &outcome {
            Ok(planned) => known.not_before = planned.start,
            Err(failure) => {
                known.no_estimate = Some(failure.clone());
                known.hopeless |= inventory.reservations().next().is_none();
            }
        }
        outcome
    }

    /// Makes a reservation.
    pub(super) fn promise(&mut self, job: &PassJob, place: usize, planned: Planned) {
        self.book(job, place, &planned);
        self.result.reserved.push((job.id, planned));
    }

    /// Enters a reservation.
    pub(super) fn book(&mut self, job: &PassJob, place: usize, planned: &Planned) {
        let memory = Arc::make_mut(&mut self.carry.memory);
        let whole = memory.request(place);
        self.inventory.promise(job.id, &whole, planned, self.config.assumed_duration);
        self.carry.reservations += 1;
        if self.config.keeps() {
            let (request, planned) = (job.request.clone(), Arc::new(planned.clone()));
            memory.plans.insert(job.id, Kept { request, whole, priority: job.priority, planned });
        }
    }

    /// Starts a job: holds its slots until the pass is over.
    pub(super) fn take(&mut self, job: u32, place: usize, placement: Placement) {
        let request = self.carry.memory.request(place);
        let (until, end_assumed) =
            planned_or_assumed(request.end(self.now), self.now, self.config.assumed_duration, self.now);
        // Where others have constraints on them, Pods are counted.
        let each = |slot: &Slot| {
            let single = request.shapes.get(slot.shape as usize).is_some_and(|shape| shape.peer.is_some());
            if single {
                vec![Slot { count: 1, ..slot.clone() }; slot.count as usize]
            } else {
                vec![slot.clone()]
            }
        };
        for (index, slot) in placement.slots.iter().flat_map(each).enumerate() {
            let Some(shape) = request.shapes.get(slot.shape as usize) else { continue };
            let needs = shape
                .needs
                .checked_mul(u64::from(slot.count))
                .expect("slots that were placed on one node fit into what it offers");
            let hold = Allocation {
                needs: Arc::new(needs),
                ports: shape.ports.clone(),
                from: self.now,
                until,
                end_assumed,
                kind: AllocationKind::Assumed,
                permanent: false,
                job: Some(job),
                peer: shape.peer.clone(),
            };
            let holder = start_holder(job, index);
            self.inventory.hold(holder.clone(), &slot.node, hold);
            self.holders.push(holder);
        }
        self.carry.started += 1;
        self.result.outdated |= self.result.behind;
        self.result.started.push((job, placement));
    }

    /// Leaves the jobs from a position on, out of so many, waiting for their turn.
    pub(super) fn leave(&mut self, jobs: usize, from: usize) {
        if !self.carry.silent {
            let within = self.config.queue_depth.saturating_sub(self.carry.counted).min(jobs - from);
            self.carry.counted += within;
            self.result.tried += within;
            self.result.rest = Some(Rest { from, beyond: from + within });
        }
    }

    /// Ends the pass, or a slice of it after which `more` is to be done.
    pub(super) fn finish(mut self, more: bool) -> PassResult {
        for holder in self.holders.iter().filter(|_| !self.carry.holds) {
            self.inventory.withdraw(holder);
        }
        self.result.visited = self.work.visited;
        if !more && self.config.keeps() && self.carry.compress {
            self.inventory.all_kept(self.now);
        }
        if more {
            self.result.carry = Some(self.carry);
        } else {
            self.result.tally = self.carry.tally();
            self.result.memory = self.carry.abandon();
        }
        self.result
    }
}
