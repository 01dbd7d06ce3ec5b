//! When a job is planned to release its resources, and whether that is only assumed.

use crate::inventory::{Release, planned_or_assumed};
use crate::job::Job;
use crate::model::{PodSpec, SharedStr};
use crate::state::State;
use crate::state::pod::planned_release;

impl State {
    /// Assumed duration in seconds for jobs of a queue. Pods of others are treated as in the first queue.
    fn assumed_duration(&self, queue: Option<&SharedStr>) -> Option<i64> {
        let queues = &self.settings.queues;
        let named = queue.and_then(|queue| queues.iter().find(|config| config.name == *queue));
        named.or(queues.first())?.assumed_duration
    }

    /// When a Pod that has been on its node since `since` is planned to leave it, and whether that is assumed.
    /// Permanent Pods stay.
    pub(super) fn release_of_pod(&self, pod: &PodSpec, since: i64, permanent: bool) -> (Option<i64>, bool) {
        let queue = self.belonging.job_of(&pod.uid).and_then(|id| self.jobs.get(id)).map(|job| &job.queue);
        let length =
            if permanent { None } else { self.assumed_duration(queue.filter(|_| self.is_ours(pod))) };
        planned_or_assumed(planned_release(pod), since, length, self.now)
    }

    /// The same for a member being bound.
    pub(super) fn release_of_member(&self, job: &Job, start: i64, end: Option<i64>) -> (Option<i64>, bool) {
        planned_or_assumed(end, start, self.assumed_duration(Some(&job.queue)), self.now)
    }

    /// Updates the planned end of members that were observed before the queue of their job was known.
    pub(super) fn time_members(&mut self, job: &Job) {
        for uid in &job.pods {
            let Some(pod) = self.delivered.pod(uid).filter(|pod| pod.node.is_some()).cloned() else {
                continue;
            };
            let Some((_, hold)) = self.inventory.holding(uid) else { continue };
            if hold.until.is_some() && !hold.end_assumed {
                continue;
            }
            let (until, assumed) = self.release_of_pod(&pod, hold.from, hold.permanent);
            self.inventory.retime_as(uid, until, assumed);
        }
    }

    /// When the job releases its current or planned resources; none if unknown.
    pub fn release_of(&self, job: &Job) -> Option<Release> {
        if let Some(at) = job.planned_end {
            return Some(Release { at, assumed: false });
        }
        if let Some(reservation) = self.inventory.reservation(job.id.0) {
            return reservation.end.map(|at| Release { at, assumed: reservation.end_assumed });
        }
        let holds = job.pods.iter().filter_map(|uid| self.inventory.holding(uid));
        let mut last = None;
        for (_, hold) in holds {
            // A job with a permanent member has no end.
            last = last.max(Some(hold.until?));
        }
        last.map(|at| Release { at, assumed: true })
    }
}
