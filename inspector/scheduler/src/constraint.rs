//! Where a Pod may run, as plain types: selectors, affinity, taints and tolerations, host ports.
//!
//! Eligibility is only decided here ([`eligible`]); nothing in here depends on free resources.

mod eligible;
mod facts;
mod peer;
mod pod_terms;
mod preference;
mod selector_map;
mod terms;
pub mod volumes;
pub mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use eligible::{eligible, exclusions};
pub use facts::{Exclusion, NodeFacts};
pub use peer::Peer;
pub use pod_terms::{Namespaces, PodSelector, PodTerm, PodTerms, TopologySpread};
pub use preference::{Preferences, PreferredNodes, PreferredPods};
pub use terms::{Expression, Labels, Operator, Taint, TaintEffect, Term, Toleration, TolerationOperator};

pub(crate) use eligible::{affinity_matches, discouraging_taints, taints_tolerated};
pub(crate) use facts::term_matches;
pub(crate) use selector_map::SelectorMap;

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
