//! What constraints are compared with: the facts of a node, and why one is left out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::terms::{Expression, Operator, Taint, Term};

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
