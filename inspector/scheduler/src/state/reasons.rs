//! Why a job waits, as text: the matcher's result, with the names visible to its owner.

use std::collections::BTreeMap;
use std::sync::Arc;

use fluxion_api::reason::{Fact, JobNames};
use imbl::OrdMap;

use crate::explain::{self, Names, WhyNot};
use crate::job::{Job, JobId, Reason, ReasonClass};
use crate::model::SharedStr;
use crate::request::Request;
use crate::state::State;

/// Number of distinct requests explained in a pass; others are explained on request.
const EXPLAINED_PER_PASS: usize = 32;
/// Number of nodes looked at for that in a pass, unless it is for a single request. Where that does not suffice for all,
/// explanations of earlier passes are used too.
const LOOKED_AT_PER_PASS: usize = 5_000;
/// Seconds after which such an explanation is replaced.
const LASTING: i64 = 30;
/// Maximum number of them.
const REMEMBERED: usize = 1_000;

/// Names within one namespace; all others are hidden. `None`: all names.
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
    /// Why the request does not start now, as visible to the job's namespace.
    pub(super) fn reason_of(&self, job: &Job, request: &Request) -> Reason {
        self.reason_from(job, &self.why_of(job, request))
    }

    /// Why the request does not start now. The job's own reservation is ignored.
    pub(super) fn why_of(&self, job: &Job, request: &Request) -> WhyNot {
        let mut inventory = self.inventory.clone();
        inventory.clear_reservation(job.id.0);
        explain::why_not(&inventory, request, self.now)
    }

    pub(super) fn reason_from(&self, job: &Job, why: &WhyNot) -> Reason {
        let names = NamesFor { state: self, namespace: Some(&job.key.namespace) };
        Reason { class: class(why), facts: explain::facts(why, &names).into() }
    }

    /// Why a planned start is only assumed: which of the jobs it waits for has no time limit.
    pub(super) fn why_assumed(&self, job: &Job, waits_for: &[JobId]) -> Fact {
        let limited = |other: &JobId| self.jobs.get(*other).is_some_and(|other| other.duration.is_some());
        let (with, without): (Vec<JobId>, Vec<JobId>) = waits_for.iter().copied().partition(limited);
        match with.first() {
            Some(first) if without.is_empty() => {
                Fact::StartAssumed { jobs: self.job_names(job, &[*first]), limited: true }
            }
            _ => Fact::StartAssumed { jobs: self.job_names(job, &without), limited: false },
        }
    }

    /// How other jobs are shown to a job: by name only within its namespace.
    pub(super) fn job_names(&self, job: &Job, others: &[JobId]) -> JobNames {
        let names = NamesFor { state: self, namespace: Some(&job.key.namespace) };
        explain::told(others.iter().map(|id| names.job(id.0)).collect())
    }

    /// How another job is shown to a job in a text: by name only within its namespace.
    pub(super) fn name_for(&self, job: &Job, other: JobId) -> String {
        match self.jobs.get(other) {
            Some(other) if other.key.namespace == job.key.namespace => other.key.display(),
            _ => "a job in another namespace".to_owned(),
        }
    }

    pub(super) fn busy(&mut self, job: &Job, explained: &mut Explained) -> Reason {
        let unexplained = || Reason::new(ReasonClass::Busy, Fact::ResourcesInUse);
        let Some(request) = &job.request else { return unexplained() };
        // A reason names jobs of its own namespace: it is nothing for another one.
        let key = (job.key.namespace.clone(), Arc::clone(request));
        if let Some(reason) = explained.reasons.get(&key) {
            return reason.clone();
        }
        let why = match explained.whys.get(request) {
            Some(why) => Some(why.clone()),
            None => self.explained(job, request, explained),
        };
        let reason = why.map_or_else(unexplained, |why| self.reason_from(job, &why));
        explained.reasons.insert(key, reason.clone());
        reason
    }
}

impl State {
    /// Why a request waits, if there is room for another explanation in this pass; or what was found out in an earlier
    /// one, if that was not long ago or there is none.
    fn explained(
        &mut self,
        job: &Job,
        request: &Arc<Request>,
        explained: &mut Explained,
    ) -> Option<Arc<WhyNot>> {
        let graph = self.inventory.graph_generation();
        if self.pass.whys_of != graph || self.pass.whys.len() > REMEMBERED {
            self.pass.whys = OrdMap::new();
            self.pass.whys_of = graph;
        }
        let nodes = self.inventory.node_count();
        let all = nodes.saturating_mul(EXPLAINED_PER_PASS) <= LOOKED_AT_PER_PASS;
        let known = self.pass.whys.get(request).filter(|_| !all);
        let lasts = known.is_some_and(|(at, _)| self.now.saturating_sub(*at) < LASTING);
        let room = explained.made == 0
            || explained.made < EXPLAINED_PER_PASS
                && nodes.saturating_mul(explained.made + 1) <= LOOKED_AT_PER_PASS;
        if lasts || !room {
            return known.map(|(_, why)| why.clone());
        }
        let why = Arc::new(self.why_of(job, request));
        explained.made += 1;
        explained.whys.insert(request.clone(), why.clone());
        if !all {
            self.pass.whys.insert(request.clone(), (self.now, why.clone()));
        }
        Some(why)
    }
}

/// What a pass has explained already.
#[derive(Default)]
pub(super) struct Explained {
    /// Number of explanations made in it.
    made: usize,
    whys: BTreeMap<Arc<Request>, Arc<WhyNot>>,
    /// In the words for one namespace.
    reasons: BTreeMap<(SharedStr, Arc<Request>), Reason>,
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
