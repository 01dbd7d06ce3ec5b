//! Nodes to which bindings were refused.

use imbl::OrdMap;

use crate::job::JobId;
use crate::model::SharedStr;

/// Jobs that have to be refused by a node before others of their namespace leave it out.
const WITNESSES: usize = 2;

/// A job that so many nodes refuse is refused for reasons of its own.
const EVERYWHERE: usize = 3;

/// For each namespace and node: the jobs that were refused there, and until when that counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Refusals(pub(super) OrdMap<(SharedStr, SharedStr), OrdMap<JobId, i64>>);

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

    /// Whether the refusal tells something about the node.
    fn is_witness(&self, namespace: &SharedStr, job: JobId) -> bool {
        self.in_namespace(namespace).filter(|(_, jobs)| jobs.contains_key(&job)).count() < EVERYWHERE
    }

    pub(super) fn shunned(&self, namespace: &SharedStr, jobs: &OrdMap<JobId, i64>) -> bool {
        jobs.keys().filter(|job| self.is_witness(namespace, **job)).count() >= WITNESSES
    }
}
