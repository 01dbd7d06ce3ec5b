//! Where a Pod may run, as plain types: selectors, affinity, taints and tolerations, host ports.
//!
//! Eligibility is only decided here ([`eligible`]); nothing in here depends on free resources.

mod eligible;
mod peer;
mod preference;
mod selector_map;
pub mod volumes;
pub mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use eligible::{Exclusion, NodeFacts, eligible, exclusions};
pub use peer::{Labels, Namespaces, Peer, PodSelector, PodTerm, PodTerms, TopologySpread};
pub use preference::{Preferences, PreferredNodes, PreferredPods};

pub(crate) use eligible::{affinity_matches, discouraging_taints, taints_tolerated, term_matches};
pub(crate) use selector_map::SelectorMap;

/// What a taint does to Pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaintEffect {
    /// No new Pods.
    NoSchedule,
    /// Rather no new Pods.
    PreferNoSchedule,
    /// No new Pods, and existing ones are evicted.
    NoExecute,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Taint {
    /// Its key.
    pub key: Arc<str>,
    /// Its value, empty if it has none.
    pub value: Arc<str>,
    /// Its effect.
    pub effect: TaintEffect,
}

impl fmt::Display for TaintEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        })
    }
}

impl fmt::Display for Taint {
    /// `key=value:TaintEffect`, as printed by kubectl.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let equals = if self.value.is_empty() { "" } else { "=" };
        write!(f, "{}{equals}{}:{}", self.key, self.value, self.effect)
    }
}

/// The operator of a toleration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TolerationOperator {
    /// Key and value are equal.
    Equal,
    /// The key is equal, with any value; without a key, any taint.
    Exists,
}

/// A toleration of a Pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Toleration {
    /// The taint's key; none means any key, which requires `Exists`.
    pub key: Option<Arc<str>>,
    /// Its operator.
    pub operator: TolerationOperator,
    /// The value for `Equal`.
    pub value: Arc<str>,
    /// The effect; none means any effect.
    pub effect: Option<TaintEffect>,
}

/// The operator of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Operator {
    /// One of the values.
    In,
    /// None of the values; a missing label matches.
    NotIn,
    /// The label exists.
    Exists,
    /// The label does not exist.
    DoesNotExist,
    /// An integer greater than the value.
    Gt,
    /// An integer less than the value.
    Lt,
}

/// A requirement on a label or field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Expression {
    /// Label key or field name.
    pub key: Arc<str>,
    /// The operator.
    pub operator: Operator,
    /// The values.
    pub values: Vec<Arc<str>>,
}

/// Expressions that must all match; a term without any matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Term {
    /// Expressions over labels.
    pub labels: Vec<Expression>,
    /// Expressions over fields; only `metadata.name` is supported.
    pub fields: Vec<Expression>,
}

/// Everything that determines which nodes a Pod may run on.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeConstraint {
    /// Labels that the node must have.
    pub selector: BTreeMap<Arc<str>, Arc<str>>,
    /// Required node affinity: one of the terms must match. `None`: no affinity; an empty list matches no node.
    pub affinity: Option<Vec<Term>>,
    /// The Pod's tolerations.
    pub tolerations: Vec<Toleration>,
    /// Nodes that recently rejected bindings, by name: they are avoided for some time. Not specified by users, so not
    /// part of jobspecs.
    pub avoided: BTreeSet<Arc<str>>,
    /// What the Pod's volumes require of a node's labels; derived from other objects, so not part of jobspecs either.
    #[serde(skip)]
    pub volumes: Vec<volumes::VolumeRule>,
}

impl NodeConstraint {
    /// Whether it allows no other node than this one, by its name.
    pub fn requires_node(&self, node: &str) -> bool {
        let names = |one: &Expression| {
            &*one.key == "metadata.name"
                && one.operator == Operator::In
                && matches!(&one.values[..], [only] if **only == *node)
        };
        let pinned = |term: &Term| term.fields.iter().any(names);
        self.affinity.as_ref().is_some_and(|terms| !terms.is_empty() && terms.iter().all(pinned))
    }
}

/// The protocol of a host port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// TCP, the default.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

/// A port on the node's own addresses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostPort {
    /// The protocol.
    pub protocol: Protocol,
    /// The address; empty, `0.0.0.0` and `::` mean any address.
    pub ip: Arc<str>,
    /// The port, 1 to 65535.
    pub port: u16,
}

impl HostPort {
    /// Whether both use the same port on a common address.
    pub fn clashes(&self, other: &Self) -> bool {
        self.protocol == other.protocol
            && self.port == other.port
            && (self.ip == other.ip || self.is_wildcard() || other.is_wildcard())
    }

    fn is_wildcard(&self) -> bool {
        matches!(self.ip.as_ref(), "" | "0.0.0.0" | "::")
    }
}

impl fmt::Display for HostPort {
    /// `8080/TCP` or `10.1.1.1:8080/TCP`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_wildcard() {
            write!(f, "{}:", self.ip)?;
        }
        let protocol = match self.protocol {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
            Protocol::Sctp => "SCTP",
        };
        write!(f, "{}/{protocol}", self.port)
    }
}
