//! What a Pod's volumes require of a node's labels.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::constraint::facts::matches;
use crate::constraint::{Exclusion, Labels, NodeFacts, Term};

/// The labels that tell a node's zone and region, with the current name of each.
pub(super) const ZONES: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
];

/// A requirement of one volume.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VolumeRule {
    /// One of the terms of the volume's node affinity matches.
    Affinity(Arc<[Term]>),
    /// A label of the volume gives its zone or region: the node has one of these values. A node without any such label is
    /// in a cluster without zones.
    Zone {
        /// The label's key.
        key: Arc<str>,
        /// The values.
        values: BTreeSet<Arc<str>>,
    },
    /// The volume is being provisioned for this node.
    Node(Arc<str>),
    /// One of the `allowedTopologies` of the storage class matches.
    Topology(Arc<[Term]>),
}

impl VolumeRule {
    /// Whether a node with these labels meets it.
    pub(crate) fn check(&self, node: &NodeFacts) -> Result<(), Exclusion> {
        match self {
            Self::Affinity(terms) if !any_matches(terms, &node.labels) => Err(Exclusion::VolumeAffinity),
            Self::Zone { key, values } if !in_zone(key, values, &node.labels) => Err(Exclusion::VolumeZone),
            Self::Node(name) if *name != node.name => Err(Exclusion::VolumeNode(name.clone())),
            Self::Topology(terms) if !any_matches(terms, &node.labels) => Err(Exclusion::VolumeTopology),
            _ => Ok(()),
        }
    }
}

/// Whether one of the terms matches. kube-scheduler knows only the labels of the node when it looks at a volume, and then
/// ignores expressions over fields.
pub(crate) fn any_matches(terms: &[Term], labels: &Labels) -> bool {
    terms.iter().any(|term| {
        !(term.labels.is_empty() && term.fields.is_empty())
            && term.labels.iter().all(|one| matches(one, labels.get(&one.key).map(AsRef::as_ref)))
    })
}

fn in_zone(key: &str, values: &BTreeSet<Arc<str>>, labels: &Labels) -> bool {
    if ZONES.iter().all(|(key, _)| !labels.contains_key(*key)) {
        return true;
    }
    let current = ZONES.iter().find(|(old, _)| *old == key).map_or(key, |(_, current)| current);
    labels.get(key).or_else(|| labels.get(current)).is_some_and(|value| values.contains(value))
}
