//! Nodes for which bindings were rejected.

use imbl::OrdMap;

use crate::job::JobId;
use crate::model::SharedStr;

/// Number of jobs that a node has to reject before others in their namespace avoid it.
const WITNESSES: usize = 2;

/// A job that is rejected by this many nodes is rejected for reasons of its own.
const EVERYWHERE: usize = 3;

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Refused {
    /// The API server rejected a binding.
    Binding,
    /// A volume could not be provided there, which concerns nobody else.
    Volume,
}

/// Rejected jobs, and until when that counts.
type Rejected = OrdMap<(JobId, Refused), i64>;

/// For each namespace and node: the rejected jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals(OrdMap<(SharedStr, SharedStr), Rejected>);

/// The jobs of which bindings were rejected.
fn unbound(jobs: &Rejected) -> impl Iterator<Item = JobId> {
    jobs.keys().filter(|(_, what)| *what == Refused::Binding).map(|(job, _)| *job)
}

impl Refusals {
    fn in_namespace<'a>(
        &'a self,
        namespace: &'a SharedStr,
    ) -> impl Iterator<Item = (&'a SharedStr, &'a Rejected)> {
        self.0
            .range((namespace.clone(), SharedStr::from(""))..)
            .take_while(move |((other, _), _)| other == namespace)
            .map(|((_, node), jobs)| (node, jobs))
    }

    /// The nodes that the job of this namespace avoids.
    pub(super) fn avoided_by<'a>(
        &'a self,
        namespace: &'a SharedStr,
        job: JobId,
    ) -> impl Iterator<Item = &'a SharedStr> {
        let own = move |jobs: &Rejected| {
            jobs.contains_key(&(job, Refused::Binding)) || jobs.contains_key(&(job, Refused::Volume))
        };
        let avoids = move |jobs: &Rejected| own(jobs) || self.shunned(namespace, jobs);
        self.in_namespace(namespace).filter(move |(_, jobs)| avoids(jobs)).map(|(node, _)| node)
    }

    /// Whether the rejection says something about the node.
    fn is_witness(&self, namespace: &SharedStr, job: JobId) -> bool {
        let rejected = |jobs: &Rejected| jobs.contains_key(&(job, Refused::Binding));
        self.in_namespace(namespace).filter(|(_, jobs)| rejected(jobs)).count() < EVERYWHERE
    }

    /// Whether all jobs of the namespace avoid the node that rejected these.
    fn shunned(&self, namespace: &SharedStr, jobs: &Rejected) -> bool {
        unbound(jobs).filter(|job| self.is_witness(namespace, *job)).count() >= WITNESSES
    }

    /// Such nodes by namespace, and how many jobs they rejected.
    pub(super) fn all_shunned(&self) -> impl Iterator<Item = (&SharedStr, &SharedStr, usize)> {
        let shunned = self.0.iter().filter(|((namespace, _), jobs)| self.shunned(namespace, jobs));
        shunned.map(|((namespace, node), jobs)| (namespace, node, unbound(jobs).count()))
    }

    /// Records that the node rejected the job; this counts `until` then.
    pub(super) fn add(
        &mut self,
        namespace: SharedStr,
        node: SharedStr,
        job: JobId,
        what: Refused,
        until: i64,
    ) {
        self.0.entry((namespace, node)).or_default().insert((job, what), until);
    }

    /// Removes the node's rejections of the job.
    pub(super) fn withdraw(&mut self, namespace: SharedStr, node: SharedStr, job: JobId) {
        self.retain(&(namespace, node), |(other, _)| other != job);
    }

    /// The node accepts Pods of the namespace; returns whether it had rejected some.
    pub(super) fn clear(&mut self, namespace: &SharedStr, node: &SharedStr) -> bool {
        self.retain(&(namespace.clone(), node.clone()), |(_, what)| what != Refused::Binding)
    }

    /// Returns whether any was removed.
    fn retain(&mut self, key: &(SharedStr, SharedStr), keep: impl Fn((JobId, Refused)) -> bool) -> bool {
        let Some(jobs) = self.0.get_mut(key) else { return false };
        let before = jobs.len();
        *jobs = jobs.iter().filter(|(job, _)| keep(**job)).map(|(job, until)| (*job, *until)).collect();
        let removed = jobs.len() < before;
        if jobs.is_empty() {
            self.0.remove(key);
        }
        removed
    }

    /// Drops expired rejections; returns the namespaces concerned.
    pub(super) fn expire(&mut self, now: i64) -> Vec<SharedStr> {
        let old = |jobs: &Rejected| jobs.values().any(|until| *until <= now);
        let over: Vec<_> = self.0.iter().filter(|(_, jobs)| old(jobs)).map(|(key, _)| key.clone()).collect();
        for key in &over {
            let Some(jobs) = self.0.get_mut(key) else { continue };
            *jobs =
                jobs.iter().filter(|(_, until)| **until > now).map(|(job, until)| (*job, *until)).collect();
            if jobs.is_empty() {
                self.0.remove(key);
            }
        }
        over.into_iter().map(|(namespace, _)| namespace).collect()
    }

    /// When the next one expires.
    pub(super) fn next_over(&self) -> Option<i64> {
        self.0.values().flat_map(OrdMap::values).min().copied()
    }
}
