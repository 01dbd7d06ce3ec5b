//! Nodes for which the API server rejected bindings: avoided for some time, and reported by the audit. Nodes for which a
//! volume could not be provided are only avoided by the job that needed it.
//!
//! A job avoids a node that rejected one of its own members; other jobs in its namespace do so once a second job was
//! rejected there. A job that is rejected everywhere says nothing about nodes, and namespaces don't affect each other:
//! otherwise, one Pod that must not be bound would block the cluster for everyone.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::constraint::{Expression, NodeConstraint, Operator, Term};
use crate::job::{Job, JobId};
use crate::model::{PodSpec, SharedStr};
use crate::placement;
use crate::request::Request;
use crate::state::State;
use crate::state::answers::Finding;
use crate::state::refused::Refused;

/// Seconds that a node is avoided after a rejection.
const AVOIDED: i64 = 300;
impl State {
    /// Nodes that the job avoids.
    pub(super) fn avoided(&self, job: &Job) -> BTreeSet<SharedStr> {
        self.bindings.refusals.avoided_by(&job.key.namespace, job.id).cloned().collect()
    }

    pub(super) fn node_refused(
        &mut self,
        namespace: &SharedStr,
        node: &SharedStr,
        job: JobId,
        what: Refused,
    ) {
        let until = self.now.saturating_add(AVOIDED);
        self.bindings.refusals.add(namespace.clone(), node.clone(), job, what, until);
        self.look_again_in(namespace);
    }

    /// On a retry, the job only avoids the nodes that rejected it if it can ever run on others.
    pub(super) fn reconsider_refusals(&mut self, job: &Job, members: &[Arc<PodSpec>]) {
        let avoided = self.avoided(job);
        if avoided.is_empty() {
            return;
        }
        let mut shapes = self.shapes(members);
        for shape in &mut shapes {
            shape.constraint = Arc::new(elsewhere(&shape.constraint, &avoided));
        }
        let level = self.summary(job).level;
        let minimum = job.members.wanted.filter(|wanted| (*wanted as usize) < members.len());
        let request = Request { shapes, minimum, level, domain: None, duration: job.duration };
        if placement::satisfiable(&self.inventory, &request) {
            return;
        }
        for node in avoided {
            self.bindings.refusals.withdraw(job.key.namespace.clone(), node, job.id);
        }
    }

    /// A binding to the node succeeded.
    pub(super) fn node_takes(&mut self, namespace: &SharedStr, node: &SharedStr) {
        if self.bindings.refusals.clear(namespace, node) {
            self.look_again_in(namespace);
        }
    }

    /// Drops rejections that are too old.
    pub(super) fn forget_refusals(&mut self) {
        for namespace in self.bindings.refusals.expire(self.now) {
            self.look_again_in(&namespace);
        }
    }

    /// When the next rejection expires.
    pub(super) fn next_refusal_over(&self) -> Option<i64> {
        self.bindings.refusals.next_over()
    }

    /// Schedules evaluation of the namespace's waiting jobs, whose requests depend on it.
    fn look_again_in(&mut self, namespace: &SharedStr) {
        let waiting = |id: &JobId| {
            self.jobs.get(*id).is_some_and(|job| job.key.namespace == *namespace && job.state.waiting())
        };
        self.work.dirty.extend(self.belonging.all_active().filter(waiting));
    }

    /// Nodes that reject bindings, for the audit.
    pub(super) fn refusing_nodes(&self) -> impl Iterator<Item = Finding> + '_ {
        self.bindings.refusals.all_shunned().map(|(namespace, node, jobs)| Finding {
            class: "RefusesBindings",
            object: format!("node/{node}"),
            text: format!(
                "the API server rejected bindings of {jobs} jobs in namespace {namespace} to this node, so each of them avoids it for {AVOIDED} s: check admission policies and webhooks for pods/binding"
            ),
        })
    }
}

/// The same constraint, excluding these nodes.
fn elsewhere(constraint: &NodeConstraint, nodes: &BTreeSet<SharedStr>) -> NodeConstraint {
    let key = "metadata.name".into();
    let not = Expression { key, operator: Operator::NotIn, values: nodes.iter().cloned().collect() };
    let mut constraint = constraint.clone();
    for term in constraint.affinity.get_or_insert_with(|| vec![Term::default()]) {
        term.fields.push(not.clone());
    }
    constraint
}
