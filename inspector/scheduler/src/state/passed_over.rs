//! Tells jobs why a pass has passed them over: once, as long as it is for the same reason.

use fluxion_api::reason::Fact;

use crate::job::{JobId, JobState, Reason, ReasonClass};
use crate::queue::{PassJob, PassResult, Refusal};
use crate::state::State;
use crate::state::pass_state::PassedOver;
use crate::state::reasons::Explained;

impl State {
    /// Tells the jobs that a pass has refused. What each of them was told before is updated; jobs and refusals are in the
    /// same order.
    pub(super) fn tell_refused(
        &mut self,
        jobs: &[PassJob],
        told: &mut [PassedOver],
        result: &mut PassResult,
    ) {
        let mut explained = Explained::default();
        let refused = std::mem::take(&mut result.refused);
        let count = refused.len();
        let waits_from = result.rest.map_or(jobs.len(), |rest| rest.from);
        let mut considered = jobs.iter().zip(told.iter_mut()).take(waits_from);
        for (at, (id, refusal)) in refused.into_iter().enumerate() {
            let told = considered.by_ref().find_map(|(job, told)| {
                if job.id != id {
                    *told = PassedOver::Unknown;
                }
                (job.id == id).then_some(told)
            });
            self.tell_one(JobId(id), refusal, at, told, &mut explained);
        }
        considered.for_each(|(_, told)| *told = PassedOver::Unknown);
        let Some(rest) = result.rest else { return };
        for (at, told) in told.iter_mut().enumerate().skip(rest.from) {
            let refusal = rest.refusal(at);
            if *told != PassedOver::from(&refusal) {
                self.tell_one(
                    JobId(jobs[at].id),
                    refusal,
                    count + at - rest.from,
                    Some(told),
                    &mut explained,
                );
            }
        }
    }

    fn tell_one(
        &mut self,
        id: JobId,
        refusal: Refusal,
        at: usize,
        told: Option<&mut PassedOver>,
        explained: &mut Explained,
    ) {
        let new = PassedOver::from(&refusal);
        let known = new != PassedOver::Unknown && told.as_ref().is_some_and(|told| **told == new);
        let same_graph = self.pass.told_of == self.inventory.graph_generation();
        let known = known && (same_graph || new != PassedOver::Busy);
        // The conditions of the first ones also depend on their positions.
        if at < self.settings.unschedulable_max || !(known || self.is_told(id, &refusal)) {
            self.refuse(id, refusal.clone(), explained);
        }
        if let Some(told) = told.filter(|_| !known) {
            *told = if self.is_told(id, &refusal) { new } else { PassedOver::Unknown };
        }
    }

    /// Whether a job waits for the same reason as before. Numbers and times in it may differ: they are those of when it was
    /// told.
    fn is_told(&self, id: JobId, refusal: &Refusal) -> bool {
        let Some(job) = self.jobs.get(id) else { return false };
        let Some(reason) = job.reason.as_ref().filter(|_| job.state == JobState::Pending) else {
            return false;
        };
        let same_graph = self.pass.told_of == self.inventory.graph_generation();
        let fact = reason.facts.first();
        match refusal {
            Refusal::Busy => {
                same_graph
                    && matches!(reason.class, ReasonClass::Busy | ReasonClass::NodesDown)
                    && job.waits_for.is_empty()
            }
            Refusal::BehindReservation { jobs } => {
                matches!(fact, Some(Fact::WouldDelay { .. }))
                    && job.waits_for.iter().map(|other| other.0).eq(jobs.iter().copied())
            }
            Refusal::Order => matches!(fact, Some(Fact::BehindEarlierJobs)) && job.waits_for.is_empty(),
            Refusal::DepthReached => matches!(fact, Some(Fact::BeyondQueueDepth)) && job.waits_for.is_empty(),
            Refusal::NoEstimate { .. } => false,
        }
    }

    fn refuse(&mut self, id: JobId, refusal: Refusal, explained: &mut Explained) {
        let Some(job) = self.jobs.get(id).cloned() else { return };
        let mut waits_for = Vec::new();
        let reason = match refusal {
            Refusal::Busy => self.busy(&job, explained),
            Refusal::NoEstimate { holders, jobs } => {
                waits_for = self.jobs_of(holders.iter());
                let others = jobs.into_iter().map(JobId).filter(|job| !waits_for.contains(job));
                let others: Vec<JobId> = others.collect();
                waits_for.extend(others);
                self.busy(&job, explained)
            }
            Refusal::BehindReservation { jobs } => {
                waits_for.extend(jobs.into_iter().map(JobId));
                let jobs = self.job_names(&job, &waits_for);
                Reason::new(ReasonClass::QueueOrder, Fact::WouldDelay { jobs })
            }
            Refusal::Order => Reason::new(ReasonClass::QueueOrder, Fact::BehindEarlierJobs),
            Refusal::DepthReached => Reason::new(ReasonClass::QueueOrder, Fact::BeyondQueueDepth),
        };
        // Where a volume failed before is avoided, which alone explains little.
        let failed = job.binds.why.iter().filter(|why| matches!(why, Fact::VolumeFailed { .. }));
        let facts = reason.facts.iter().chain(failed).cloned().collect();
        if let Some(job) = self.jobs.get_mut(id) {
            job.waits_for = waits_for;
        }
        self.settle(id, JobState::Pending, Some(Reason { facts, ..reason }), false);
    }
}
