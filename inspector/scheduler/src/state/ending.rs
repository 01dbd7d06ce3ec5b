//! What ended a job, in words and as data.

use std::sync::Arc;

use crate::job::{ExitCause, Job, JobId, JobState, Reason, ReasonClass};
use crate::marks;
use crate::model::{OwnerDetail, Phase, PodSpec};
use crate::state::State;

/// Says who asked for the end, where that is known.
pub(super) fn cancelled(job: &Job) -> Reason {
    let text = match &job.cancelled_by {
        Some(by) => format!("cancelled by {by}"),
        None => "the Pods were deleted".to_owned(),
    };
    Reason { class: ReasonClass::Cancelled, text, details: Vec::new() }
}

/// A disruption took the members (reason of a DisruptionTarget condition).
pub(super) fn disrupted(why: &str) -> Reason {
    let (class, text) = match why {
        "PreemptionByScheduler" => (ReasonClass::Disrupted, "preempted by another scheduler".to_owned()),
        "DeletionByTaintManager" => (ReasonClass::Disrupted, "evicted by a taint of its node".to_owned()),
        "EvictionByEvictionAPI" => (ReasonClass::Disrupted, "evicted through the API".to_owned()),
        "TerminationByKubelet" => (ReasonClass::Disrupted, "evicted by its node's kubelet".to_owned()),
        "DeletionByPodGC" => (ReasonClass::NodesDown, "its node was deleted".to_owned()),
        other => (ReasonClass::Disrupted, format!("disrupted: {}", marks::shorten(other))),
    };
    Reason { class, text, details: Vec::new() }
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

    /// `failed` of its Pods failed and nobody makes them again.
    pub(super) fn pods_failed(&self, job: &Job, failed: u32) -> Reason {
        let count = if failed == 1 { "1 Pod failed".to_owned() } else { format!("{failed} Pods failed") };
        match self.first_failure(job) {
            Some((cause, limit)) => {
                let text = cause.text(limit);
                let text = if failed > 1 { format!("{count}, the first: {text}") } else { text };
                Reason { class: cause.class(), text, details: Vec::new() }
            }
            None => Reason { class: ReasonClass::PodFailed, text: count, details: Vec::new() },
        }
    }

    /// Its controller gave it up, with this reason.
    pub(super) fn owner_failed(&self, job: &Job, why: &str) -> Reason {
        if why == "DeadlineExceeded" {
            let owner = job.object.as_ref().and_then(|object| self.delivered.owner(&object.uid));
            let limit = owner.and_then(|owner| match owner.detail {
                OwnerDetail::Job { active_deadline, .. } => active_deadline,
                _ => None,
            });
            let limit =
                limit.map_or_else(String::new, |limit| format!(": its activeDeadlineSeconds is {limit}"));
            let text = format!("the Job failed: DeadlineExceeded{limit}");
            return Reason { class: ReasonClass::DeadlineExceeded, text, details: Vec::new() };
        }
        let why = marks::shorten(why);
        let (class, text) = match self.first_failure(job) {
            Some((cause, limit)) => (cause.class(), format!("; {}", cause.text(limit))),
            None => (ReasonClass::PodFailed, String::new()),
        };
        Reason { class, text: format!("the Job failed: {why}{text}"), details: Vec::new() }
    }

    /// What stays of a job that ends now: where and with how many it ran, since when it is over, and what its members
    /// died of. `Job::ended_at` comes from the objects where they tell.
    pub(super) fn close(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id).cloned() else { return };
        let past = self.past(&job);
        let owner = job.object.as_ref().and_then(|object| self.delivered.owner(&object.uid));
        let by_owner = owner.and_then(|owner| match owner.detail {
            OwnerDetail::Job { ended_at, .. } => ended_at,
            _ => None,
        });
        let exit = self.first_failure(&job).map(|(cause, _)| cause);
        let since = job.started_at.or(job.history.last().map(|last| last.time));
        let (now, started) = (self.now, since.unwrap_or(i64::MIN));
        let Some(job) = self.job_mut(id) else { return };
        job.ended_at = Some(by_owner.or(past.end).unwrap_or(now).max(started).min(now));
        job.members.bound = past.count;
        if job.state == JobState::Completed {
            // What its owner still needs is nothing; what there was tells more.
            job.members.wanted = job.members.wanted.max(Some(past.count));
        }
        job.exit = exit;
        job.ran_on = Arc::new(past.nodes);
        job.gone.clear();
        job.degraded = false;
        job.waits_for.clear();
    }
}
