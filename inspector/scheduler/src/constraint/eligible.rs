//! Decides whether a node may run a Pod, regardless of its free resources, and if not, why.

use super::NodeConstraint;
use super::facts::{Exclusion, NodeFacts, term_matches};
use super::terms::{Taint, TaintEffect, Toleration, TolerationOperator};

const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// Key prefixes of taints that Kubernetes and well-known controllers set and remove: node conditions, and taints that
/// are removed once a node has started.
const PASSING: [&str; 4] = [
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "karpenter.sh/unregistered",
    "readiness.k8s.io/",
];

/// Whether the node may run Pods with this constraint; the error is the most important reason: permanent reasons come
/// before temporary ones.
pub fn eligible(constraint: &NodeConstraint, node: &NodeFacts) -> Result<(), Exclusion> {
    if node.deleting {
        return Err(Exclusion::Deleting);
    }
    for (key, value) in &constraint.selector {
        if node.labels.get(key) != Some(value) {
            return Err(Exclusion::Selector { key: key.clone(), value: value.clone() });
        }
    }
    if let Some(terms) = &constraint.affinity
        && !terms.iter().any(|term| term_matches(term, node))
    {
        return Err(Exclusion::Affinity);
    }
    constraint.volumes.iter().try_for_each(|rule| rule.check(node))?;
    let mut passing = constraint.avoided.contains(&node.name).then_some(Exclusion::RefusedBinding);
    for exclusion in states(&constraint.tolerations, node) {
        if !exclusion.is_temporary() {
            return Err(exclusion);
        }
        passing = passing.or(Some(exclusion));
    }
    passing.map_or(Ok(()), Err)
}

/// Every reason why the node's own state excludes Pods with these tolerations, without duplicates: for displaying a
/// node.
pub fn exclusions(tolerations: &[Toleration], node: &NodeFacts) -> Vec<Exclusion> {
    let mut reasons: Vec<Exclusion> =
        node.deleting.then_some(Exclusion::Deleting).into_iter().chain(states(tolerations, node)).collect();
    reasons.sort();
    reasons.dedup();
    reasons
}

/// Whether the node matches the node selector and the required node affinity.
pub(crate) fn affinity_matches(constraint: &NodeConstraint, node: &NodeFacts) -> bool {
    constraint.selector.iter().all(|(key, value)| node.labels.get(key) == Some(value))
        && constraint.affinity.as_ref().is_none_or(|terms| terms.iter().any(|term| term_matches(term, node)))
}

/// Whether all taints of the node that keep Pods away are tolerated.
pub(crate) fn taints_tolerated(constraint: &NodeConstraint, node: &NodeFacts) -> bool {
    let tolerated = |taint: &Taint| {
        constraint.tolerations.iter().any(|one| tolerates(one, &taint.key, &taint.value, taint.effect))
    };
    node.taints.iter().all(|taint| taint.effect == TaintEffect::PreferNoSchedule || tolerated(taint))
}

/// The node's taints with `PreferNoSchedule` that the constraint does not tolerate.
pub(crate) fn discouraging_taints<'a>(
    constraint: &'a NodeConstraint,
    node: &'a NodeFacts,
) -> impl Iterator<Item = &'a Taint> {
    node.taints.iter().filter(|taint| {
        let tolerated = |one: &Toleration| tolerates(one, &taint.key, &taint.value, taint.effect);
        taint.effect == TaintEffect::PreferNoSchedule && !constraint.tolerations.iter().any(tolerated)
    })
}

/// The reasons from the node's readiness, cordon and taints, readiness first.
fn states<'a>(tolerations: &'a [Toleration], node: &'a NodeFacts) -> impl Iterator<Item = Exclusion> + 'a {
    let tolerated = move |key: &str, value: &str, effect: TaintEffect| {
        tolerations.iter().any(|toleration| tolerates(toleration, key, value, effect))
    };
    // Nodes that are not ready or cordoned will be tainted accordingly: the toleration applies even before the taint
    // exists.
    let not_ready = (!node.ready
        && !tolerated(NOT_READY, "", TaintEffect::NoSchedule)
        && !tolerated(UNREACHABLE, "", TaintEffect::NoSchedule))
    .then_some(Exclusion::NotReady);
    let cordoned = (node.unschedulable && !tolerated(UNSCHEDULABLE, "", TaintEffect::NoSchedule))
        .then_some(Exclusion::Cordoned);
    let tainted = node
        .taints
        .iter()
        .filter(|taint| taint.effect != TaintEffect::PreferNoSchedule)
        .filter(move |taint| !tolerated(&taint.key, &taint.value, taint.effect))
        .map(|taint| match taint.key.as_ref() {
            NOT_READY | UNREACHABLE => Exclusion::NotReady,
            UNSCHEDULABLE => Exclusion::Cordoned,
            key if passes(key, node) => Exclusion::TaintedForNow(taint.clone()),
            _ => Exclusion::Tainted(taint.clone()),
        });
    not_ready.into_iter().chain(cordoned).chain(tainted)
}

/// Whether a taint with this key is removed automatically.
fn passes(key: &str, node: &NodeFacts) -> bool {
    PASSING.iter().any(|prefix| key.starts_with(prefix))
        || node.startup_taints.iter().any(|prefix| key.starts_with(&**prefix))
}

fn tolerates(toleration: &Toleration, key: &str, value: &str, effect: TaintEffect) -> bool {
    if toleration.effect.is_some_and(|e| e != effect) {
        return false;
    }
    match (toleration.key.as_deref().filter(|k| !k.is_empty()), toleration.operator) {
        (None, TolerationOperator::Exists) => true,
        (None, TolerationOperator::Equal) => false,
        (Some(own), TolerationOperator::Exists) => own == key,
        (Some(own), TolerationOperator::Equal) => own == key && toleration.value.as_ref() == value,
    }
}

#[cfg(test)]
mod tests;
