//! Why a job waits, in words: what the matcher found, with the names its owner may read.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::explain::{self, Names, WhyNot};
use crate::job::{Job, JobId, Reason, ReasonClass};
use crate::request::Request;
use crate::state::State;

/// Different requests a pass explains; the rest is explained when somebody asks.
const EXPLAINED_PER_PASS: usize = 32;

/// Names within one namespace; all others stay unnamed. `None`: all names.
pub struct NamesFor<'a> {
    pub state: &'a State,
    pub namespace: Option<&'a str>,
}

impl NamesFor<'_> {
    fn show(&self, job: &Job) -> Option<String> {
        match self.namespace {
            Some(namespace) => (*job.key.namespace == *namespace).then(|| job.key.display()),
            None => Some(format!("{}/{}", job.key.namespace, job.key.display())),
        }
    }
}

impl Names for NamesFor<'_> {
    fn job(&self, id: u32) -> Option<String> {
        self.state.job(JobId(id)).and_then(|job| self.show(job))
    }

    fn holder(&self, key: &str) -> Option<String> {
        if let Some(job) = self.state.job_of_holder(key) {
            return self.show(job);
        }
        let pod = self.state.pod(key)?;
        match self.namespace {
            Some(namespace) => (*pod.namespace == *namespace).then(|| format!("pod/{}", pod.name)),
            None => Some(format!("{}/pod/{}", pod.namespace, pod.name)),
        }
    }
}

impl State {
    /// Why the request does not start now, told to the job's namespace.
    pub(super) fn reason_of(&self, job: &Job, request: &Request) -> Reason {
        self.reason_from(job, &self.why_of(job, request))
    }

    /// Why the request does not start now. What is reserved for the job itself does not stand in its way.
    pub(super) fn why_of(&self, job: &Job, request: &Request) -> WhyNot {
        let mut books = self.inventory.clone();
        books.clear_reservation(job.id.0);
        explain::why_not(&books, request, self.now)
    }

    pub(super) fn reason_from(&self, job: &Job, why: &WhyNot) -> Reason {
        let names = NamesFor { state: self, namespace: Some(&job.key.namespace) };
        let (text, details) = explain::render(why, &names);
        Reason { class: class(why), text, details }
    }

    /// "job X has no time limit", naming jobs of other namespaces by their number only.
    pub(super) fn without_limit(&self, job: &Job, others: &[JobId]) -> String {
        let jobs: Vec<&Arc<Job>> = others.iter().filter_map(|id| self.jobs.get(id)).collect();
        let named = jobs.iter().find(|other| other.key.namespace == job.key.namespace);
        match (named, jobs.len()) {
            (Some(other), 1) => format!("{} has no time limit", other.key.display()),
            (Some(other), count) => {
                format!("{} and {} more have no time limit", other.key.display(), count - 1)
            }
            (None, 0) => "the Pods on its nodes have no time limit".to_owned(),
            (None, _) => "jobs in other namespaces have no time limit".to_owned(),
        }
    }

    /// Why a planned start is only assumed: who among those it waits for has no time limit.
    pub(super) fn why_assumed(&self, job: &Job, waits_for: &[JobId]) -> String {
        let all = || waits_for.iter().filter_map(|id| self.jobs.get(id));
        let endless: Vec<JobId> =
            all().filter(|other| other.duration.is_none()).map(|other| other.id).collect();
        match all().next() {
            Some(other) if endless.is_empty() => {
                format!("the end of {} is assumed", self.name_for(job, other.id))
            }
            _ => self.without_limit(job, &endless),
        }
    }

    /// How one job may name another: by name within its namespace only.
    pub(super) fn name_for(&self, job: &Job, other: JobId) -> String {
        match self.jobs.get(&other) {
            Some(other) if other.key.namespace == job.key.namespace => other.key.display(),
            _ => "a job in another namespace".to_owned(),
        }
    }

    pub(super) fn busy(
        &self,
        job: &Job,
        explained: &mut usize,
        texts: &mut BTreeMap<Arc<Request>, Reason>,
    ) -> Reason {
        if let Some(reason) = job.request.as_ref().and_then(|request| texts.get(request)) {
            return reason.clone();
        }
        let reason = self.explained(job, explained).unwrap_or_else(|| Reason {
            class: ReasonClass::Busy,
            text: "the requested resources are in use".to_owned(),
            details: Vec::new(),
        });
        if let Some(request) = &job.request {
            texts.insert(request.clone(), reason.clone());
        }
        reason
    }

    fn explained(&self, job: &Job, explained: &mut usize) -> Option<Reason> {
        if *explained >= EXPLAINED_PER_PASS {
            return None;
        }
        *explained += 1;
        Some(self.reason_of(job, job.request.as_ref()?))
    }
}

fn class(why: &WhyNot) -> ReasonClass {
    if why.never {
        return ReasonClass::Unsatisfiable;
    }
    let short = why.shapes.iter().filter(|shape| shape.room < shape.wanted);
    let mut counts = short.flat_map(|shape| &shape.counts).peekable();
    let passing = |count: &explain::Count| match &count.reason {
        explain::NodeReason::Excluded(exclusion) => exclusion.is_temporary(),
        explain::NodeReason::Withheld { .. } => true,
        _ => false,
    };
    let down = why.down || counts.peek().is_some() && counts.all(passing);
    if down { ReasonClass::NodesDown } else { ReasonClass::Busy }
}
