//! Kept reservations survive a restart: each is stored in the status of a Pod of its job, and read from there when the first
//! pass begins.
//!
//! That pass leaves all of them as they were told, so that it decides what was decided before. Only if a job without one
//! starts, something has happened in the meantime: then the schedule is compressed at once, otherwise by the next pass, a few
//! seconds later.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::Effect;
use crate::inventory::Inventory;
use crate::job::{Job, JobId, JobState};
use crate::model::{PodSpec, ReservationRecord};
use crate::queue::{self, Carry, PassJob, PassResult, QueueConfig};
use crate::request::{Placement, Planned, Slot};
use crate::state::State;
use crate::state::pass_state::Lineup;

impl State {
    /// Queues that keep reservations are to begin with those that are stored.
    pub(super) fn expect_stored(&mut self) {
        let queues = self.settings.queues.iter().enumerate();
        self.pass.unrestored = queues.filter(|(_, queue)| queue.keeps()).map(|(index, _)| index).collect();
    }

    /// Stores the reservation of a waiting job, or removes the stored one if it has none. One Pod has it.
    pub(super) fn store_reservation(&mut self, job: &Job) {
        if !job.state.waiting() {
            return;
        }
        let mut wanted = self.reservation_record(job).map(Arc::new);
        let pods = job.pods.iter().filter_map(|uid| self.delivered.pod(uid));
        let mut waiting = pods.filter(|pod| waits(pod) && self.is_ours(pod));
        // Those that have one come first: they keep it, or lose it.
        let Some(first) = waiting.next() else { return };
        let mut keepers: Vec<_> = waiting.filter(|pod| pod.reserved.is_some()).collect();
        if first.reserved.is_some() || keepers.is_empty() {
            keepers.insert(0, first);
        }
        for pod in keepers {
            let reservation = wanted.take();
            if !same(pod.reserved.as_deref(), reservation.as_deref()) {
                self.work.effects.push(Effect::Reserved { pod: pod.object(), reservation });
            }
        }
    }

    fn reservation_record(&self, job: &Job) -> Option<ReservationRecord> {
        let queue = self.settings.queues.iter().find(|queue| queue.name == job.queue)?;
        let kept = queue.keeps() && job.state == JobState::Reserved;
        let promise = self.inventory.reservation(job.id.0).filter(|_| kept)?;
        let slots = promise.placement.slots.iter();
        Some(ReservationRecord {
            at: self.now,
            start: promise.start,
            assumed: promise.start_assumed,
            domain: promise.placement.domain.clone(),
            slots: slots.map(|slot| (slot.shape, slot.node.clone(), slot.count)).collect(),
        })
    }

    /// The latest stored reservation of each of these jobs, by ID.
    fn stored_reservations(&self, jobs: &[PassJob]) -> BTreeMap<u32, Planned> {
        let stored = |job: &PassJob| {
            let pods = self.jobs.get(JobId(job.id))?.pods.iter().filter_map(|uid| self.delivered.pod(uid));
            let records = pods.filter(|pod| waits(pod)).filter_map(|pod| pod.reserved.as_deref());
            Some((job.id, planned(records.max_by_key(|record| record.at)?, job)))
        };
        jobs.iter().filter_map(stored).collect()
    }

    /// The pass of a queue over its jobs, or a slice of it, which begins with the stored reservations if these have not been
    /// read.
    pub(super) fn pass_over(
        &mut self,
        (index, config): (usize, &QueueConfig),
        lineup: &Lineup,
        carry: Carry,
        budget: u64,
    ) -> PassResult {
        let pass = |inventory: &mut Inventory, carry: Carry, budget| {
            queue::pass(inventory, config, &lineup.jobs, self.now, budget, Some(carry))
        };
        if self.pass.unrestored.remove(&index).is_none() {
            return pass(&mut self.inventory, carry, budget);
        }
        let stored = self.stored_reservations(&lineup.jobs);
        if stored.is_empty() {
            return pass(&mut self.inventory, carry.restoring(Arc::default()), budget);
        }
        self.pass.restored = true;
        let carry = carry.restoring(Arc::new(stored));
        let before = self.inventory.clone();
        // Those with a reservation are not searched for.
        let result = pass(&mut self.inventory, carry.clone().changed(false), u64::MAX);
        if result.started.is_empty() {
            return result;
        }
        self.inventory = before;
        pass(&mut self.inventory, carry.changed(true), budget)
    }
}

fn waits(pod: &PodSpec) -> bool {
    pod.node.is_none() && !pod.deleting && !pod.phase.ended()
}

fn planned(record: &ReservationRecord, job: &PassJob) -> Planned {
    let slot = |(shape, node, count): &(u32, Arc<str>, u32)| Slot {
        shape: *shape,
        node: node.clone(),
        count: *count,
    };
    let placement =
        Placement { slots: record.slots.iter().map(slot).collect(), domain: record.domain.clone() };
    Planned { start: record.start, end: job.request.end(record.start), placement, assumed: record.assumed }
}

/// Whether both are of the same start on the same nodes.
fn same(stored: Option<&ReservationRecord>, wanted: Option<&ReservationRecord>) -> bool {
    match (stored, wanted) {
        (Some(a), Some(b)) => {
            (a.start, a.assumed) == (b.start, b.assumed) && a.domain == b.domain && a.slots == b.slots
        }
        (a, b) => a.is_none() && b.is_none(),
    }
}
