//! The current or last attempt: the members that were on nodes together.
//!
//! A controller recreates Pods after failures, and creates others after successes. A job's start, planned end, nodes
//! and counts are those of the members that existed when the last of them was bound. They are derived from the
//! objects, so a restarted engine reports the same; deleted Pods are remembered until another member is created.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::job::{Asked, Job, JobId, JobState};
use crate::model::{AllocationRecord, PodSpec, SharedStr};
use crate::resources::ResourceList;
use crate::state::State;
use crate::state::pod::needs;

/// A member and its current or last node.
struct Ran<'a> {
    pod: &'a PodSpec,
    node: &'a SharedStr,
    start: i64,
    planned_end: Option<i64>,
    /// It is no longer running, since this time if known.
    over: Option<Option<i64>>,
}

impl Ran<'_> {
    /// Whether it existed when the last member was bound, at `last`.
    fn was_there(&self, last: i64) -> bool {
        self.start >= last || self.over.is_none_or(|end| end.is_none_or(|end| end > last))
    }
}

/// When a member started: with its gang, or later if it was created later.
fn start_of(pod: &PodSpec, record: Option<&AllocationRecord>, bound: Option<i64>) -> i64 {
    match record {
        Some(record) if pod.created <= record.start => record.start,
        _ => bound.or(record.map(|record| record.start)).unwrap_or(pod.created),
    }
}

/// The time of the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: i64,
    /// `None`: no time limit, or no member is running.
    planned_end: Option<i64>,
    /// When the last member was bound.
    last: i64,
}

/// The remaining data of a finished job's attempt.
pub(super) struct Past {
    pub nodes: BTreeMap<SharedStr, Vec<SharedStr>>,
    pub count: u32,
    /// When the last of all members stopped, if known.
    pub end: Option<i64>,
}

impl State {
    /// Every member that is or was on a node, in any attempt.
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

    /// Start of the gang that others join, from the allocation records of running and binding members.
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

    /// Updates start and planned end of the current attempt, and its requests; called after its members were
    /// evaluated, before the job enters this state.
    pub(super) fn follow_attempt(&mut self, id: JobId, live: u32, state: JobState) {
        let Some(job) = self.jobs.get(id).cloned() else { return };
        let span = self.span(&job);
        let asked = self.asked(&job, live);
        let Some(job) = self.jobs.get_mut(id) else { return };
        if let Some(span) = span {
            // Members that ended in the second in which the last one started may belong to its attempt.
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

    /// The members' requests, if they add information: a job does not shrink when members end one by one, and without
    /// members, those of the last attempt are kept.
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
        if let Some(sets) = self.queued(job) {
            for (pod, count) in sets.iter().filter(|(pod, _)| pod.needs.is_ok()) {
                *shapes.entry(needs(pod)).or_default() += count;
            }
        } else if live > 0 {
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

    /// The remaining data of the attempt of a finished job.
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
