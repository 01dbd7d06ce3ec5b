//! kube-scheduler's filters `InterPodAffinity` and `PodTopologySpread`, written down as they are documented: for one Pod
//! and one node, from lists of everything that is there.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::constraint::{Expression, Labels, Operator, Peer, PodSelector, Taint};

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) labels: Labels,
    pub(super) taints: Vec<Taint>,
    pub(super) cpu: u64,
}

/// A Pod on a node.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) node: usize,
    pub(super) pod: Peer,
}

/// Everything that a filter looks at.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    pub(super) machines: Vec<Machine>,
    pub(super) running: Vec<Running>,
    pub(super) namespaces: BTreeMap<Arc<str>, Labels>,
}

fn holds(expressions: &[Expression], labels: &Labels) -> bool {
    expressions.iter().all(|expression| {
        let value = labels.get(&expression.key);
        match expression.operator {
            Operator::In => value.is_some_and(|value| expression.values.contains(value)),
            Operator::NotIn => value.is_none_or(|value| !expression.values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt | Operator::Lt => unreachable!("no operator of a label selector"),
        }
    })
}

impl Cluster {
    fn selects(&self, selector: &PodSelector, pod: &Peer) -> bool {
        let Some(labels) = &selector.labels else { return false };
        let by_labels = selector
            .namespace_selector
            .as_ref()
            .is_some_and(|own| holds(own, &self.namespaces[&pod.namespace]));
        (selector.namespaces.contains(&pod.namespace) || by_labels) && holds(labels, &pod.labels)
    }

    fn same_domain(&self, key: &str, a: usize, b: usize) -> bool {
        let value = |node: usize| self.machines[node].labels.get(key);
        value(a).is_some() && value(a) == value(b)
    }

    /// Whether the Pod may be on the node; `accepted` are the nodes that match its node affinity, `tolerated` those
    /// whose taints it tolerates.
    pub(super) fn allows(&self, pod: &Peer, node: usize, accepted: &[bool], tolerated: &[bool]) -> bool {
        self.affinity(pod, node) && self.apart(pod, node) && self.spread(pod, node, accepted, tolerated)
    }

    fn apart(&self, pod: &Peer, node: usize) -> bool {
        self.running.iter().all(|other| {
            let own = pod.anti_affinity().iter().any(|term| {
                self.same_domain(&term.topology, node, other.node) && self.selects(&term.selector, &other.pod)
            });
            let theirs = other.pod.anti_affinity().iter().any(|term| {
                self.same_domain(&term.topology, node, other.node) && self.selects(&term.selector, pod)
            });
            !own && !theirs
        })
    }

    fn affinity(&self, pod: &Peer, node: usize) -> bool {
        let terms = pod.terms.as_ref().map_or(&[][..], |terms| &terms.affinity);
        if terms.iter().any(|term| !self.machines[node].labels.contains_key(&term.topology)) {
            return false;
        }
        let matches_all = |other: &Peer| terms.iter().all(|term| self.selects(&term.selector, other));
        let matching: Vec<usize> =
            self.running.iter().filter(|other| matches_all(&other.pod)).map(|other| other.node).collect();
        let near = terms
            .iter()
            .all(|term| matching.iter().any(|other| self.same_domain(&term.topology, node, *other)));
        let anywhere = matching
            .iter()
            .any(|other| terms.iter().any(|term| self.machines[*other].labels.contains_key(&term.topology)));
        near || !anywhere && matches_all(pod)
    }

    fn spread(&self, pod: &Peer, node: usize, accepted: &[bool], tolerated: &[bool]) -> bool {
        let constraints = pod.terms.as_ref().map_or(&[][..], |terms| &terms.spread);
        let labelled = |node: usize| {
            constraints.iter().all(|one| self.machines[node].labels.contains_key(&one.topology))
        };
        constraints.iter().all(|constraint| {
            let Some(own) = self.machines[node].labels.get(&constraint.topology) else { return false };
            let mut counts: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
            for other in (0..self.machines.len()).filter(|other| labelled(*other)) {
                let left_out = constraint.honor_affinity && !accepted[other]
                    || constraint.honor_taints && !tolerated[other];
                if left_out {
                    continue;
                }
                let empty = constraint.selector.labels.as_ref().is_some_and(Vec::is_empty);
                let here = self.running.iter().filter(|running| {
                    running.node == other
                        && !empty
                        && !running.pod.deleting
                        && running.pod.namespace == pod.namespace
                        && self.selects(&constraint.selector, &running.pod)
                });
                let value = &self.machines[other].labels[&constraint.topology];
                *counts.entry(value).or_default() += here.count();
            }
            let Some(mut least) = counts.values().min().copied() else { return true };
            if counts.len() < constraint.min_domains as usize {
                least = 0;
            }
            let itself = usize::from(self.selects(&constraint.selector, pod));
            counts.get(own).copied().unwrap_or(0) + itself <= least + constraint.max_skew as usize
        })
    }
}
