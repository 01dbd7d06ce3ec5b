//! Nodes for which bindings were rejected.

use imbl::OrdMap;

use crate::job::JobId;
use crate::model::SharedStr;

/// Number of jobs that a node has to reject before others in their namespace avoid it.
const WITNESSES: usize = 2;

/// A job that is rejected by this many nodes is rejected for reasons of its own.
const EVERYWHERE: usize = 3;

/// For each namespace and node: the rejected jobs, and until when that counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals(OrdMap<(SharedStr, SharedStr), OrdMap<JobId, i64>>);

impl Refusals {
    pub(super) fn in_namespace<'a>(
        &'a self,
        namespace: &'a SharedStr,
    ) -> impl Iterator<Item = (&'a SharedStr, &'a OrdMap<JobId, i64>)> {
        self.0
            .range((namespace.clone(), SharedStr::from(""))..)
            .take_while(move |((other, _), _)| other == namespace)
            .map(|((_, node), jobs)| (node, jobs))
    }

    /// Whether the rejection says something about the node.
    fn is_witness(&self, namespace: &SharedStr, job: JobId) -> bool {
        self.in_namespace(namespace).filter(|(_, jobs)| jobs.contains_key(&job)).count() < EVERYWHERE
    }

    /// Whether all jobs of the namespace avoid the node that rejected these.
    pub(super) fn shunned(&self, namespace: &SharedStr, jobs: &OrdMap<JobId, i64>) -> bool {
        jobs.keys().filter(|job| self.is_witness(namespace, **job)).count() >= WITNESSES
    }

    /// Such nodes by namespace, and how many jobs they rejected.
    pub(super) fn all_shunned(&self) -> impl Iterator<Item = (&SharedStr, &SharedStr, usize)> {
        let shunned = self.0.iter().filter(|((namespace, _), jobs)| self.shunned(namespace, jobs));
        shunned.map(|((namespace, node), jobs)| (namespace, node, jobs.len()))
    }

    /// Records that the node rejected the job; this counts `until` then.
    pub(super) fn add(&mut self, namespace: SharedStr, node: SharedStr, job: JobId, until: i64) {
        self.0.entry((namespace, node)).or_default().insert(job, until);
    }

    /// Removes the node's rejection of the job.
    pub(super) fn withdraw(&mut self, namespace: SharedStr, node: SharedStr, job: JobId) {
        let key = (namespace, node);
        if let Some(jobs) = self.0.get_mut(&key) {
            jobs.remove(&job);
            if jobs.is_empty() {
                self.0.remove(&key);
            }
        }
    }

    /// The node accepts Pods of the namespace; returns whether it had rejected some.
    pub(super) fn clear(&mut self, namespace: &SharedStr, node: &SharedStr) -> bool {
        self.0.remove(&(namespace.clone(), node.clone())).is_some()
    }

    /// Drops expired rejections; returns the namespaces concerned.
    pub(super) fn expire(&mut self, now: i64) -> Vec<SharedStr> {
        let old = |jobs: &OrdMap<JobId, i64>| jobs.values().any(|until| *until <= now);
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
