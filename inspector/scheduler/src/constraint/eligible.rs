//! Decides whether a node may run a Pod, regardless of its free resources, and if not, why.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Expression, NodeConstraint, Operator, Taint, TaintEffect, Term, Toleration, TolerationOperator};

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

/// The properties of a node that determine eligibility.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// The node's name.
    pub name: Arc<str>,
    /// Its labels.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// Cordoned: spec.unschedulable.
    pub unschedulable: bool,
    /// Condition Ready is True.
    pub ready: bool,
    /// It has a deletion timestamp.
    pub deleting: bool,
    /// Key prefixes of further taints that are temporary.
    pub startup_taints: Arc<[Arc<str>]>,
}

/// Why a node is not eligible.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Exclusion {
    /// The node is being deleted.
    Deleting,
    /// The node selector's label is missing or differs.
    Selector {
        /// The label's key.
        key: Arc<str>,
        /// The required value.
        value: Arc<str>,
    },
    /// No term of the required node affinity matches.
    Affinity,
    /// A taint that is not tolerated.
    Tainted(Taint),
    /// The same, if the taint is removed automatically.
    TaintedForNow(Taint),
    /// Condition Ready is not True.
    NotReady,
    /// The node is cordoned.
    Cordoned,
    /// The API server recently rejected bindings to the node, or no volume could be provisioned for it.
    RefusedBinding,
    /// A volume is not accessible from the node.
    VolumeAffinity,
    /// A volume is in another zone or region.
    VolumeZone,
    /// A volume is being provisioned for this other node.
    VolumeNode(Arc<str>),
    /// The storage class does not provision volumes for the node.
    VolumeTopology,
}

impl Exclusion {
    /// Whether it is temporary: cordons, readiness and taints set by Kubernetes. A job that only fits such nodes is
    /// waiting, not unsatisfiable.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::NotReady | Self::Cordoned | Self::TaintedForNow(_) | Self::RefusedBinding => true,
            Self::Tainted(_)
            | Self::Deleting
            | Self::Selector { .. }
            | Self::Affinity
            | Self::VolumeAffinity
            | Self::VolumeZone
            | Self::VolumeNode(_)
            | Self::VolumeTopology => false,
        }
    }
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deleting => f.write_str("being deleted"),
            Self::Selector { key, value } => {
                write!(f, "didn't match node selector {}", super::words::pair(key, value))
            }
            Self::Affinity => f.write_str("didn't match node affinity"),
            Self::Tainted(taint) | Self::TaintedForNow(taint) => write!(f, "tainted {taint}"),
            Self::NotReady => f.write_str("not ready"),
            Self::Cordoned => f.write_str("cordoned"),
            Self::RefusedBinding => f.write_str("recently rejected a binding"),
            Self::VolumeAffinity => f.write_str("didn't match the node affinity of a PersistentVolume"),
            Self::VolumeZone => f.write_str("in another zone than a PersistentVolume"),
            Self::VolumeNode(node) => write!(f, "a volume is being provisioned for {node}"),
            Self::VolumeTopology => f.write_str("didn't match the topology of a StorageClass"),
        }
    }
}

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

/// Whether the node matches all expressions of the term, which has any.
pub(crate) fn term_matches(term: &Term, node: &NodeFacts) -> bool {
    !(term.labels.is_empty() && term.fields.is_empty())
        && term.labels.iter().all(|e| matches(e, node.labels.get(&e.key).map(AsRef::as_ref)))
        && term.fields.iter().all(|e| e.key.as_ref() == "metadata.name" && matches(e, Some(&node.name)))
}

pub(super) fn matches(expression: &Expression, value: Option<&str>) -> bool {
    let listed = |value: &str| expression.values.iter().any(|v| v.as_ref() == value);
    let compare = |holds: fn(i64, i64) -> bool| match (value, expression.values.as_slice()) {
        (Some(value), [bound]) => {
            value.parse().is_ok_and(|value: i64| bound.parse().is_ok_and(|bound| holds(value, bound)))
        }
        _ => false,
    };
    match expression.operator {
        Operator::In => value.is_some_and(listed),
        Operator::NotIn => !value.is_some_and(listed),
        Operator::Exists => value.is_some(),
        Operator::DoesNotExist => value.is_none(),
        Operator::Gt => compare(|value, bound| value > bound),
        Operator::Lt => compare(|value, bound| value < bound),
    }
}

#[cfg(test)]
mod tests;
