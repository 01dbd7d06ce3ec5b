//! Why a job ended, as text and as data.

use std::sync::Arc;

use fluxion_api::reason::Fact;

use crate::job::{ExitCause, Job, JobId, JobState, Reason, ReasonClass};
use crate::marks;
use crate::model::{OwnerDetail, Phase, PodSpec};
use crate::state::State;

/// The reason of a cancelled job, with the user if known.
pub(super) fn cancelled(job: &Job) -> Reason {
    let by = job.cancelled_by.as_ref().map(ToString::to_string);
    Reason::new(ReasonClass::Cancelled, Fact::Cancelled { by })
}

/// A disruption ended the members (reason of a `DisruptionTarget` condition).
pub(super) fn disrupted(why: &str) -> Reason {
    let class = if why == "DeletionByPodGC" { ReasonClass::NodesDown } else { ReasonClass::Disrupted };
    Reason::new(class, Fact::Disrupted { reason: marks::shorten(why) })
}

impl State {
    /// The member that failed first.
    pub(super) fn first_failure(&self, job: &Job) -> Option<(ExitCause, Option<i64>)> {
        let there = job.pods.iter().filter_map(|uid| self.delivered.pod(uid));
        let gone = job.gone.iter().map(|gone| &gone.pod);
        let failed = there.chain(gone).filter(|pod| pod.phase == Phase::Failed);
        let at = |pod: &PodSpec| pod.end.as_ref().and_then(|end| end.at).unwrap_or(i64::MAX);
        let pod = failed.min_by(|a, b| (at(a), &a.name, &a.uid).cmp(&(at(b), &b.name, &b.uid)))?;
        Some((ExitCause::of(pod), pod.active_deadline))
    }

    /// `failed` of its Pods failed and will not be recreated.
    pub(super) fn pods_failed(&self, job: &Job, failed: u32) -> Reason {
        let (cause, limit_seconds) = self.first_failure(job).unzip();
        let class = cause.as_ref().map_or(ReasonClass::PodFailed, ExitCause::class);
        let exit = cause.map(|cause| cause.told());
        Reason::new(class, Fact::PodsFailed { failed, exit, limit_seconds: limit_seconds.flatten() })
    }

    /// Its controller failed, with this reason.
    pub(super) fn owner_failed(&self, job: &Job, why: &str) -> Reason {
        let reason = marks::shorten(why);
        if why == "DeadlineExceeded" {
            let owner = job.object.as_ref().and_then(|object| self.delivered.owner(&object.uid));
            let limit_seconds = owner.and_then(|owner| match owner.detail {
                OwnerDetail::Job { active_deadline, .. } => active_deadline,
                _ => None,
            });
            return Reason::new(ReasonClass::DeadlineExceeded, Fact::JobFailed { reason, limit_seconds });
        }
        let failed = Fact::JobFailed { reason, limit_seconds: None };
        match self.first_failure(job) {
            Some((cause, limit_seconds)) => {
                let first = Fact::PodsFailed { failed: 1, exit: Some(cause.told()), limit_seconds };
                Reason { class: cause.class(), facts: Arc::new([failed, first]) }
            }
            None => Reason::new(ReasonClass::PodFailed, failed),
        }
    }

    /// Final data of a job that has finished: where and with how many members it ran, when it ended, and why its
    /// members failed. `Job::ended_at` is taken from the objects if possible.
    pub(super) fn close(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(id).cloned() else { return };
        let past = self.past(&job);
        let owner = job.object.as_ref().and_then(|object| self.delivered.owner(&object.uid));
        let by_owner = owner.and_then(|owner| match owner.detail {
            OwnerDetail::Job { ended_at, .. } => ended_at,
            _ => None,
        });
        let exit = self.first_failure(&job).map(|(cause, _)| cause);
        let since = job.started_at.or(job.history.last().map(|last| last.time));
        let (now, started) = (self.now, since.unwrap_or(i64::MIN));
        let Some(job) = self.jobs.get_mut(id) else { return };
        job.ended_at = Some(by_owner.or(past.end).unwrap_or(now).max(started).min(now));
        job.members.bound = past.count;
        if job.state == JobState::Completed {
            // Its owner requires no more members; the previous number is more informative.
            job.members.wanted = job.members.wanted.max(Some(past.count));
        }
        job.exit = exit;
        job.ran_on = Arc::new(past.nodes);
        job.gone.clear();
        job.degraded = false;
        job.waits_for.clear();
    }
}
