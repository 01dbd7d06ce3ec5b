//! What ended a job, in words and as data.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::{OwnerDetail, Phase, PodSpec, Text};
use crate::state::{Job, JobId, JobState, Reason, ReasonClass, State, marks};

/// The member that failed first, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitCause {
    /// Name of the Pod.
    pub pod: Text,
    /// `DeadlineExceeded`, `Evicted`, `OOMKilled`, `Error`, or what else its status says; `Error` where it says
    /// nothing.
    pub reason: Text,
    /// The container that failed, and its exit code.
    pub container: Option<(Text, i32)>,
    /// What its kubelet says about it.
    pub message: Option<Text>,
    /// Epoch seconds.
    pub at: Option<i64>,
}

impl ExitCause {
    fn of(pod: &PodSpec) -> Self {
        let end = pod.end.as_deref().cloned().unwrap_or_default();
        let reason = pod.status_reason.clone();
        let reason = reason.or_else(|| end.container.as_ref().and_then(|exit| exit.reason.clone()));
        Self {
            pod: pod.name.clone(),
            reason: reason.unwrap_or_else(|| "Error".into()),
            container: end.container.map(|exit| (exit.name, exit.code)),
            message: end.message,
            at: end.at,
        }
    }

    fn class(&self) -> ReasonClass {
        match &*self.reason {
            "DeadlineExceeded" => ReasonClass::DeadlineExceeded,
            "Evicted" | "Preempting" | "Terminated" | "NodeShutdown" => ReasonClass::Disrupted,
            "NodeLost" => ReasonClass::NodesDown,
            other if other.starts_with("OutOf") => ReasonClass::BindFailed,
            _ => ReasonClass::PodFailed,
        }
    }

    fn text(&self, limit: Option<i64>) -> String {
        let (pod, reason) = (marks::shorten(&self.pod), marks::shorten(&self.reason));
        let container = match (&self.container, &*self.reason) {
            (Some((name, code)), "Error") => {
                return format!("container {} of Pod {pod} exited with code {code}", marks::shorten(name));
            }
            (Some((name, code)), _) => format!(", container {}, exit code {code}", marks::shorten(name)),
            (None, _) => String::new(),
        };
        let limit = match (limit, &*self.reason) {
            (Some(limit), "DeadlineExceeded") => format!(": its activeDeadlineSeconds is {limit}"),
            _ => String::new(),
        };
        let message = match (&self.message, &*self.reason) {
            (Some(message), reason) if reason != "DeadlineExceeded" => format!(": {message}"),
            _ => String::new(),
        };
        format!("{reason} (Pod {pod}{container}){limit}{message}")
    }
}

/// Says who asked for the end, where that is known.
pub(super) fn cancelled(job: &Job) -> Reason {
    let text = match &job.cancelled_by {
        Some(by) => format!("cancelled by {by}"),
        None => "its Pods were deleted".to_owned(),
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
        "DeletionByPodGC" => (ReasonClass::NodesDown, "its node is gone".to_owned()),
        other => (ReasonClass::Disrupted, format!("disrupted: {}", marks::shorten(other))),
    };
    Reason { class, text, details: Vec::new() }
}

impl State {
    /// The member that failed first.
    pub(super) fn first_failure(&self, job: &Job) -> Option<(ExitCause, Option<i64>)> {
        let there = job.pods.iter().filter_map(|uid| self.pods.get(uid));
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
            let owner = job.object.as_ref().and_then(|object| self.owners.get(&object.uid));
            let limit = owner.and_then(|owner| match owner.detail {
                OwnerDetail::Job { active_deadline, .. } => active_deadline,
                _ => None,
            });
            let limit =
                limit.map_or_else(String::new, |limit| format!(": its activeDeadlineSeconds is {limit}"));
            let text = format!("its Job failed: DeadlineExceeded{limit}");
            return Reason { class: ReasonClass::DeadlineExceeded, text, details: Vec::new() };
        }
        let why = marks::shorten(why);
        let (class, text) = match self.first_failure(job) {
            Some((cause, limit)) => (cause.class(), format!("; {}", cause.text(limit))),
            None => (ReasonClass::PodFailed, String::new()),
        };
        Reason { class, text: format!("its Job failed: {why}{text}"), details: Vec::new() }
    }

    /// What stays of a job that ends now: where and with how many it ran, since when it is over, and what its members
    /// died of. `Job::ended_at` comes from the objects where they tell.
    pub(super) fn close(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id).cloned() else { return };
        let past = self.past(&job);
        let owner = job.object.as_ref().and_then(|object| self.owners.get(&object.uid));
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
