//! Where a Pod may run, as plain types: selectors, affinity, taints and what it tolerates, host ports.
//!
//! Eligibility is decided here alone ([`eligible`]); nothing in here knows what a node has free.

mod eligible;
pub mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use eligible::{Exclusion, NodeFacts, eligible, exclusions};

/// What a taint does to Pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaintEffect {
    /// Takes no new Pods.
    NoSchedule,
    /// A wish only; never keeps a Pod away.
    PreferNoSchedule,
    /// Takes no new Pods and evicts those it has.
    NoExecute,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Taint {
    /// Its key.
    pub key: Arc<str>,
    /// Its value, empty where it has none.
    pub value: Arc<str>,
    /// What it does.
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
    /// `key=value:TaintEffect`, as kubectl writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let equals = if self.value.is_empty() { "" } else { "=" };
        write!(f, "{}{equals}{}:{}", self.key, self.value, self.effect)
    }
}

/// How a toleration compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TolerationOperator {
    /// Key and value are the same.
    Equal,
    /// The key is the same, whatever the value; without a key every taint.
    Exists,
}

/// What a Pod tolerates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Toleration {
    /// The taint's key; none means every key, which only `Exists` may say.
    pub key: Option<Arc<str>>,
    /// How it compares.
    pub operator: TolerationOperator,
    /// The value for `Equal`.
    pub value: Arc<str>,
    /// The effect; none means every effect.
    pub effect: Option<TaintEffect>,
}

/// How an expression compares a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Operator {
    /// One of the values.
    In,
    /// None of the values; a missing label matches.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
    /// An integer above the one value.
    Gt,
    /// An integer below the one value.
    Lt,
}

/// One comparison of a label or field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Expression {
    /// Label key or field name.
    pub key: Arc<str>,
    /// How to compare.
    pub operator: Operator,
    /// With what.
    pub values: Vec<Arc<str>>,
}

/// Expressions that all have to match; one without any matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Term {
    /// Expressions over labels.
    pub labels: Vec<Expression>,
    /// Expressions over fields; `metadata.name` is the only one there is.
    pub fields: Vec<Expression>,
}

/// All that decides which nodes a Pod may run on.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeConstraint {
    /// Labels that the node must have.
    pub selector: BTreeMap<Arc<str>, Arc<str>>,
    /// Required node affinity: one of the terms must match. `None`: no affinity; an empty list matches nothing.
    pub affinity: Option<Vec<Term>>,
    /// What the Pod tolerates.
    pub tolerations: Vec<Toleration>,
    /// Nodes that refused bindings lately, by name: they are left out for a while. Nothing a user asks for, and so in
    /// no jobspec.
    pub avoided: BTreeSet<Arc<str>>,
}

/// The transport of a host port.
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
    /// The transport.
    pub protocol: Protocol,
    /// The address; empty, `0.0.0.0` and `::` mean every address.
    pub ip: Arc<str>,
    /// The port, 1 to 65535.
    pub port: u16,
}

impl HostPort {
    /// Whether both want the same port on a common address.
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
