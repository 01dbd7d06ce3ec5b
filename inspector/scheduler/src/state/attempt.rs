//! The attempt that runs, or that ran last: the members that were on nodes together.
//!
//! A controller makes Pods again after failures, and others after those that succeeded. What a job's start, planned
//! end, nodes and counts are about is the members that were there when the last of them had got its node. That follows
//! from the objects, so a restarted engine says the same; of Pods that are gone it is remembered until another member
//! comes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::job::{Asked, Job, JobId, JobState};
use crate::model::{AllocationRecord, PodSpec, SharedStr};
use crate::resources::ResourceList;
use crate::state::State;
use crate::state::pod::needs;

/// A member and the node that it is or was on.
struct Ran<'a> {
    pod: &'a PodSpec,
    node: &'a SharedStr,
    start: i64,
    planned_end: Option<i64>,
    /// It runs no more, since this time where that is known.
    over: Option<Option<i64>>,
}

impl Ran<'_> {
    /// Whether it was there when the last member got its node, at `last`.
    fn was_there(&self, last: i64) -> bool {
        self.start >= last || self.over.is_none_or(|end| end.is_none_or(|end| end > last))
    }
}

/// When a member came to its node: with its gang, or later where it was made later.
fn start_of(pod: &PodSpec, record: Option<&AllocationRecord>, bound: Option<i64>) -> i64 {
    match record {
        Some(record) if pod.created <= record.start => record.start,
        _ => bound.or(record.map(|record| record.start)).unwrap_or(pod.created),
    }
}

/// When the attempt runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: i64,
    /// `None`: no time limit, or nobody runs any more.
    planned_end: Option<i64>,
    /// When the last member got its node.
    last: i64,
}

/// What remains of a job's attempt when it has ended.
pub(super) struct Past {
    pub nodes: BTreeMap<SharedStr, Vec<SharedStr>>,
    pub count: u32,
    /// When the last of all members stopped, where that is known.
    pub end: Option<i64>,
}

impl State {
    /// Every member that is or was on a node, of whatever attempt.
    fn ran<'a>(&'a self, job: &'a Job) -> impl Iterator<Item = Ran<'a>> {
        let there = job.pods.iter().filter_map(|uid| {
            let pod = self.delivered.pod(uid)?.as_ref();
            if let Some(node) = &pod.node {
                return Some(Ran {
                    pod,
                    node,
                    start: start_of(pod, pod.record.as_ref(), pod.scheduled_at),
                    planned_end: super::pod::planned_release(pod),
                    over: pod.phase.ended().then(|| pod.end.as_ref().and_then(|end| end.at)),
                });
            }
            let sent = self.bindings.assumed(uid)?;
            let record = sent.record();
            Some(Ran {
                pod,
                node: &sent.node,
                start: start_of(pod, Some(record), Some(sent.since())),
                planned_end: record.planned_end,
                over: None,
            })
        });
        let gone = job.gone.iter().filter_map(|gone| {
            let pod = gone.pod.as_ref();
            Some(Ran {
                pod,
                node: pod.node.as_ref()?,
                start: start_of(pod, pod.record.as_ref(), pod.scheduled_at),
                planned_end: None,
                over: Some(Some(gone.at)),
            })
        });
        there.chain(gone)
    }

    /// What the allocation records of those say that run, or are on their way: when the gang started that others join.
    pub(super) fn start_of_gang(&self, job: &Job) -> Option<i64> {
        let records = job.pods.iter().filter_map(|uid| {
            let pod = self.delivered.pod(uid).filter(|pod| !pod.phase.ended())?;
            let bound = pod.record.as_ref().filter(|_| pod.node.is_some());
            bound.or_else(|| self.bindings.assumed(uid).map(super::assumed::Assumed::record))
        });
        records.map(|record| record.start).max()
    }

    fn span(&self, job: &Job) -> Option<Span> {
        let last = self.ran(job).map(|ran| ran.start).max()?;
        let of_attempt = || self.ran(job).filter(|ran| ran.was_there(last));
        let running = of_attempt().filter(|ran| ran.over.is_none());
        let planned_end = running.map(|ran| ran.planned_end).reduce(|a, b| Some(a?.max(b?))).flatten();
        Some(Span { start: of_attempt().map(|ran| ran.start).min()?, planned_end, last })
    }

    /// Start and planned end of the attempt that runs, and what its members ask for; called whenever the members were
    /// looked at, and their job is about to be in this state.
    pub(super) fn follow_attempt(&mut self, id: JobId, live: u32, state: JobState) {
        let Some(job) = self.jobs.get(id).cloned() else { return };
        let span = self.span(&job);
        let asked = self.asked(&job, live);
        let Some(job) = self.jobs.get_mut(id) else { return };
        if let Some(span) = span {
            // Those that went in the second in which the last one came may be of its attempt.
            job.gone.retain(|gone| gone.at >= span.last);
        }
        let runs = matches!(state, JobState::Binding | JobState::Running | JobState::Releasing);
        let span = span.filter(|_| runs || state.ended());
        job.started_at = span.map(|span| span.start);
        job.planned_end = span.and_then(|span| span.planned_end);
        if let Some(asked) = asked {
            job.asked = asked;
        }
    }

    /// What the members ask for, if that tells more than what is known: members that go one by one don't make the job
    /// a smaller one, and of one that nobody is left of the last attempt tells.
    fn asked(&self, job: &Job, live: u32) -> Option<Arc<[Asked]>> {
        let known = job.asked.iter().fold(0_u32, |sum, asked| sum.saturating_add(asked.count));
        if live > 0 && live < known.min(job.members.wanted.unwrap_or(known)) {
            return None;
        }
        let mut shapes: BTreeMap<Arc<ResourceList>, u32> = BTreeMap::new();
        let mut enter = |pod: &PodSpec| {
            if pod.needs.is_ok() {
                *shapes.entry(needs(pod)).or_default() += 1;
            }
        };
        if live > 0 {
            let pods = job.pods.iter().filter_map(|uid| self.delivered.pod(uid));
            pods.filter(|pod| !pod.phase.ended()).for_each(|pod| enter(pod));
        } else {
            let last = self.span(job)?.last;
            self.ran(job).filter(|ran| ran.was_there(last)).for_each(|ran| enter(ran.pod));
            if shapes.values().fold(0, |sum: u32, count| sum.saturating_add(*count)) < known {
                return None;
            }
        }
        let same = |(asked, (needs, count)): (&Asked, (&Arc<ResourceList>, &u32))| {
            asked.count == *count && asked.needs == *needs
        };
        if job.asked.len() == shapes.len() && job.asked.iter().zip(&shapes).all(same) {
            return None;
        }
        Some(shapes.into_iter().map(|(needs, count)| Asked { needs, count }).collect())
    }

    /// What remains of the attempt of a job that has ended.
    pub(super) fn past(&self, job: &Job) -> Past {
        let mut past = Past { nodes: BTreeMap::new(), count: 0, end: None };
        past.end = self.ran(job).filter_map(|ran| ran.over.flatten()).max();
        let Some(span) = self.span(job) else { return past };
        for ran in self.ran(job).filter(|ran| ran.was_there(span.last)) {
            past.count += 1;
            past.nodes.entry(ran.node.clone()).or_default().push(ran.pod.name.clone());
        }
        for pods in past.nodes.values_mut() {
            pods.sort();
        }
        past
    }
}
