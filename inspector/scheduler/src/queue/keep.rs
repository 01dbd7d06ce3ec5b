//! Reservations that are kept from one pass to the next.
//!
//! Each job with a reservation is considered in queue order, as if only its own reservation did not exist: it starts if
//! it can, or else its reservation is moved to the earliest start; if that is not before the one it has, it stays as it
//! is (compression). Without a reason to expect anything of that, it is not looked at.
//!
//! Only where a reservation can't be kept, because its nodes are lost or held for longer, are the reservations of all
//! jobs behind it given up too, so that they don't block what was planned before them. The same applies to the
//! reservations of jobs with a lower priority than one that does not start. Each of these jobs keeps its reservation if
//! it is still free when it is its turn.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::job::{PassJob, Refusal};
use super::known::Kept;
use super::turn::{Turn, length};
use crate::placement::{Between, Plan, first_start, start_now, still_free};
use crate::request::Planned;

impl Turn<'_> {
    /// Forgets the reservations of jobs that no longer wait.
    pub(super) fn forget_others(&mut self, jobs: &[PassJob]) {
        let plans = &self.carry.memory.plans;
        if jobs.iter().filter(|job| plans.contains_key(&job.id)).count() == plans.len() {
            return;
        }
        let waiting: BTreeSet<u32> = jobs.iter().map(|job| job.id).collect();
        let gone: Vec<u32> = plans.keys().copied().filter(|id| !waiting.contains(id)).collect();
        for id in gone {
            self.give_up(id);
            self.carry.compress = true;
        }
    }

    /// Decides for a job with a reservation; returns false if it has none, or one for something else.
    pub(super) fn keep(&mut self, jobs: &[PassJob], at: usize, place: usize) -> bool {
        let job = &jobs[at];
        let Some(kept) = self.carry.memory.plans.get(&job.id).cloned() else { return false };
        if job.priority > kept.priority
            || !(Arc::ptr_eq(&job.request, &kept.request) || job.request == kept.request)
        {
            self.give_up(job.id);
            return false;
        }
        // It counted against the queue's depth when it got its reservation.
        self.carry.counted += 1;
        self.result.tried += 1;
        let there = self.inventory.reservation(job.id).is_some();
        if there && !self.carry.compress && kept.planned.start > self.now {
            self.carry.reservations += 1;
            self.result.kept.push(job.id);
            return true;
        }
        if there && self.stays(place, &kept) {
            self.carry.reservations += 1;
            self.result.kept.push(job.id);
            return true;
        }
        self.inventory.clear_reservation(job.id);
        if !self.compress(job, place, &kept) {
            // It can't be kept: what was planned behind it yields.
            if self.yielding(jobs, at, |_| true) || there {
                self.drop_known();
            }
            Arc::make_mut(&mut self.carry.memory).plans.remove(&job.id);
            // From here on, it is one as any other.
            if self.carry.counted > self.config.queue_depth {
                self.carry.counted -= 1;
                self.result.tried -= 1;
                self.result.look_again |= self.carry.started > 0;
                self.result.refused.push((job.id, Refusal::DepthReached));
                return true;
            }
            self.decide(job, place);
        }
        true
    }

    /// Whether a reservation certainly stays as it is: nothing but early ends has happened, and there is not enough in total
    /// for an earlier start.
    fn stays(&mut self, place: usize, kept: &Kept) -> bool {
        let planned = &kept.planned;
        let Some(end) = planned.end.filter(|_| planned.start > self.now && !planned.assumed) else {
            return false;
        };
        let memory = Arc::make_mut(&mut self.carry.memory);
        let wants = memory.wants(place, self.inventory);
        let length = length(memory.known_request(place));
        self.carry.only_freed
            && !wants.is_empty()
            && self.inventory.none_before(&wants, self.now, (planned.start, end), length)
    }

    /// Starts the job, moves its reservation to an earlier start, or makes the same again; returns false if none of that
    /// is possible.
    fn compress(&mut self, job: &PassJob, place: usize, kept: &Kept) -> bool {
        let (now, policy) = (self.now, self.config.node_policy);
        let request = self.carry.memory.request(place);
        // What is known of equal requests is not true for this one, which may use its own reservation.
        if self.may_start(place) {
            let plan = Plan::new(self.inventory, &request, policy);
            let placement = match start_now(&plan, &request, now, &mut self.work) {
                Ok(placement) => Some(placement),
                Err(_) => self.rearrange(job, place, now).map(|planned| planned.placement),
            };
            if let Some(placement) = placement {
                self.give_up(job.id);
                self.take(job.id, place, placement);
                return true;
            }
        }
        let before = kept.planned.start;
        let from = self.not_before(place, before);
        if from < before {
            let between = Between { now, from, before };
            let found = first_start(self.inventory, &request, between, policy, &mut self.work).ok();
            if let Some(planned) = self.or_rearranged(job, place, from, found) {
                self.drop_known();
                self.promise(job, place, planned);
                return true;
            }
        }
        let until = request.end(before).unwrap_or(i64::MAX);
        match still_free(self.inventory, &request, (&kept.planned, until), now, policy) {
            Some(planned) => {
                self.promise(job, place, planned);
                true
            }
            None => false,
        }
    }

    /// Decides for a job without a reservation: jobs with a lower priority don't keep theirs if that lets it start, or
    /// start earlier.
    pub(super) fn decide_first(&mut self, jobs: &[PassJob], at: usize, place: usize) {
        let job = &jobs[at];
        if self.may_start(place) {
            let placement = match self.start(place) {
                Ok(placement) => Some(placement),
                Err(_) => self.rearrange(job, place, self.now).map(|planned| planned.placement),
            };
            if let Some(placement) = placement {
                return self.take(job.id, place, placement);
            }
        }
        if self.yielding(jobs, at, |other| other.priority < job.priority) {
            self.drop_known();
        } else if self.carry.reservations < self.config.reservations()
            && let Ok(planned) = self.plan(place)
        {
            let from = self.not_before(place, planned.start);
            if let Some(planned) = self.or_rearranged(job, place, from, Some(planned)) {
                return self.promise(job, place, planned);
            }
        }
        self.decide(job, place);
    }

    /// A time later than now before which there is not enough in total for the request; `before` if there is none earlier
    /// than that.
    fn not_before(&mut self, place: usize, before: i64) -> i64 {
        let memory = Arc::make_mut(&mut self.carry.memory);
        let wants = memory.wants(place, self.inventory);
        let from = self.now.saturating_add(1);
        if before <= from {
            return before;
        }
        self.inventory.not_before(&wants, (from, before), length(&memory.request(place)))
    }

    /// What was found, unless reservations can be rearranged for a start at the first time at which there is enough in
    /// total.
    fn or_rearranged(
        &mut self,
        job: &PassJob,
        place: usize,
        first: i64,
        found: Option<Planned>,
    ) -> Option<Planned> {
        if found.as_ref().is_some_and(|planned| planned.start <= first) {
            return found;
        }
        self.rearrange(job, place, first).or(found)
    }

    /// Takes the reservations of some of the jobs behind one out of the inventory, until it is their turn; returns whether
    /// there were any.
    fn yielding(&mut self, jobs: &[PassJob], at: usize, some: impl Fn(&PassJob) -> bool) -> bool {
        let mut any = false;
        // Priorities only decrease, so those that yield are the last ones.
        for other in jobs[at + 1..].iter().rev().take_while(|other| some(other)) {
            if self.inventory.reservation(other.id).is_some() {
                self.inventory.clear_reservation(other.id);
                any = true;
            }
        }
        any
    }

    /// Removes a reservation for good.
    fn give_up(&mut self, job: u32) {
        self.inventory.clear_reservation(job);
        Arc::make_mut(&mut self.carry.memory).plans.remove(&job);
        self.drop_known();
    }

    /// Something that was reserved is no longer: what failed in this pass may succeed.
    fn drop_known(&mut self) {
        Arc::make_mut(&mut self.carry.memory).end();
    }
}
