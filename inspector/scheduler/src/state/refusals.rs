//! Nodes to which the API server refused bindings: left out for a while, and found by the audit.
//!
//! A job leaves out a node that refused one of its own members; its namespace's other jobs do so once a second job
//! was refused there. A job that is refused everywhere says nothing about nodes, and no namespace can say anything
//! about a node to another one: else one Pod that may not be bound would close the cluster to all.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::constraint::{Expression, NodeConstraint, Operator, Term};
use crate::job::{Job, JobId};
use crate::model::{PodSpec, SharedStr};
use crate::placement;
use crate::request::Request;
use crate::state::State;
use crate::state::answers::Finding;
use crate::state::pod::shapes;

/// Seconds that a node is left out after a refusal.
const AVOIDED: i64 = 300;
impl State {
    /// Nodes that the job leaves out.
    pub(super) fn avoided(&self, job: &Job) -> BTreeSet<SharedStr> {
        let namespace = &job.key.namespace;
        self.bindings
            .refusals
            .in_namespace(namespace)
            .filter(|(_, jobs)| jobs.contains_key(&job.id) || self.bindings.refusals.shunned(namespace, jobs))
            .map(|(node, _)| node.clone())
            .collect()
    }

    pub(super) fn node_refused(&mut self, namespace: &SharedStr, node: &SharedStr, job: JobId) {
        let until = self.now.saturating_add(AVOIDED);
        self.bindings.refusals.add(namespace.clone(), node.clone(), job, until);
        self.look_again_in(namespace);
    }

    /// The job tries again: it leaves out the nodes that refused it only if it can ever run on the others.
    pub(super) fn reconsider_refusals(&mut self, job: &Job, members: &[Arc<PodSpec>]) {
        let avoided = self.avoided(job);
        if avoided.is_empty() {
            return;
        }
        let mut shapes = shapes(members);
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

    /// A binding to the node came through.
    pub(super) fn node_takes(&mut self, namespace: &SharedStr, node: &SharedStr) {
        if self.bindings.refusals.clear(namespace, node) {
            self.look_again_in(namespace);
        }
    }

    /// Refusals that are too old to count any more.
    pub(super) fn forget_refusals(&mut self) {
        for namespace in self.bindings.refusals.expire(self.now) {
            self.look_again_in(&namespace);
        }
    }

    /// When the next refusal stops to count.
    pub(super) fn next_refusal_over(&self) -> Option<i64> {
        self.bindings.refusals.next_over()
    }

    /// What the namespace's waiting jobs ask for depends on it.
    fn look_again_in(&mut self, namespace: &SharedStr) {
        let waiting = |id: &JobId| {
            self.jobs.get(*id).is_some_and(|job| job.key.namespace == *namespace && job.state.waiting())
        };
        self.work.dirty.extend(self.belonging.all_active().filter(waiting));
    }

    /// Nodes that refuse, for the audit.
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

/// The same constraint, but never on these nodes.
fn elsewhere(constraint: &NodeConstraint, nodes: &BTreeSet<SharedStr>) -> NodeConstraint {
    let key = "metadata.name".into();
    let not = Expression { key, operator: Operator::NotIn, values: nodes.iter().cloned().collect() };
    let mut constraint = constraint.clone();
    for term in constraint.affinity.get_or_insert_with(|| vec![Term::default()]) {
        term.fields.push(not.clone());
    }
    constraint
}
