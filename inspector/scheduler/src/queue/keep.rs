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

use super::job::PassJob;
use super::known::Kept;
use super::turn::Turn;
use crate::placement::{Between, first_start, start_now, still_free};

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
        let there = self.books.reservation(job.id).is_some();
        if there && !self.carry.compress && kept.planned.start > self.now {
            self.carry.reservations += 1;
            self.result.kept.push(job.id);
            return true;
        }
        self.books.clear_reservation(job.id);
        if !self.compress(job, place, &kept) {
            // It can't be kept: what was planned behind it yields.
            if self.yielding(jobs, at, |_| true) || there {
                self.drop_known();
            }
            Arc::make_mut(&mut self.carry.memory).plans.remove(&job.id);
            self.decide(job, place);
        }
        true
    }

    /// Starts the job, moves its reservation to an earlier start, or makes the same again; returns false if none of that
    /// is possible.
    fn compress(&mut self, job: &PassJob, place: usize, kept: &Kept) -> bool {
        let (now, policy) = (self.now, self.config.node_policy);
        let memory = Arc::make_mut(&mut self.carry.memory);
        let request = memory.request(place);
        // What is known of equal requests is not true for this one, which may use its own reservation.
        if !memory.of(place).busy
            && let Ok(placement) = start_now(self.books, &request, now, policy, &mut self.work)
        {
            self.give_up(job.id);
            self.take(job.id, place, placement);
            return true;
        }
        let start = kept.planned.start;
        let between = Between { now, from: now, before: start };
        if start > now.saturating_add(1)
            && let Ok(planned) = first_start(self.books, &request, between, policy, &mut self.work)
        {
            self.drop_known();
            self.promise(job, place, planned);
            return true;
        }
        match still_free(self.books, &request, &kept.planned, now, policy) {
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
        match self.start(place) {
            Ok(placement) => self.take(job.id, place, placement),
            Err(_) if self.yielding(jobs, at, |other| other.priority < job.priority) => {
                self.drop_known();
                self.decide(job, place);
            }
            Err(behind) => self.reserve(job, place, behind),
        }
    }

    /// Takes the reservations of some of the jobs behind one out of the books, until it is their turn; returns whether
    /// there were any.
    fn yielding(&mut self, jobs: &[PassJob], at: usize, some: impl Fn(&PassJob) -> bool) -> bool {
        let mut any = false;
        // Priorities only decrease, so those that yield are the last ones.
        for other in jobs[at + 1..].iter().rev().take_while(|other| some(other)) {
            if self.books.reservation(other.id).is_some() {
                self.books.clear_reservation(other.id);
                any = true;
            }
        }
        any
    }

    /// Removes a reservation for good.
    fn give_up(&mut self, job: u32) {
        self.books.clear_reservation(job);
        Arc::make_mut(&mut self.carry.memory).plans.remove(&job);
        self.drop_known();
    }

    /// Something that was reserved is no longer: what failed in this pass may succeed.
    fn drop_known(&mut self) {
        Arc::make_mut(&mut self.carry.memory).end();
    }
}
