//! Constraints between Pods, as plain types: required inter-Pod affinity and anti-affinity, and topology spread
//! constraints with `DoNotSchedule`.
//!
//! Where a Pod may run as a result is decided by `placement`, because it depends on what else is placed.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Expression;
use super::facts::matches;
use super::terms::Labels;

/// The label that every namespace has: its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// The labels of namespaces, for namespace selectors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespaces(imbl::OrdMap<Arc<str>, Arc<Labels>>);

impl Namespaces {
    /// Adds or replaces a namespace; returns whether that is a change.
    pub fn set(&mut self, name: Arc<str>, labels: Labels) -> bool {
        if self.0.get(&name).is_some_and(|known| **known == labels) {
            return false;
        }
        self.0.insert(name, Arc::new(labels));
        true
    }

    /// Removes a namespace; returns whether it existed.
    pub fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some()
    }

    /// The value of a label of the namespace.
    pub(crate) fn label(&self, namespace: &str, key: &str) -> Option<&Arc<str>> {
        self.0.get(namespace)?.get(key)
    }

    /// Whether the labels of the namespace match. One that is not known has only the label with its name.
    fn matches(&self, name: &str, selector: &[Expression]) -> bool {
        selector.iter().all(|expression| {
            let value = match self.0.get(name) {
                Some(labels) => labels.get(&expression.key).map(AsRef::as_ref),
                None => (*expression.key == *NAMESPACE_NAME).then_some(name),
            };
            matches(expression, value)
        })
    }
}

/// Selects Pods by namespace and labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodSelector {
    /// Names of namespaces.
    pub namespaces: BTreeSet<Arc<str>>,
    /// Further namespaces, by their labels; without expressions all of them. `None`: no others.
    pub namespace_selector: Option<Vec<Expression>>,
    /// Labels of the Pods; without expressions all of them. `None`: no Pods.
    pub labels: Option<Vec<Expression>>,
}

impl PodSelector {
    /// Whether it selects a Pod with these labels in this namespace.
    pub fn selects(&self, namespace: &str, labels: &Labels, namespaces: &Namespaces) -> bool {
        let wanted = self.labels.as_ref().is_some_and(|wanted| {
            wanted.iter().all(|one| matches(one, labels.get(&one.key).map(AsRef::as_ref)))
        });
        wanted
            && (self.namespaces.contains(namespace)
                || self.namespace_selector.as_ref().is_some_and(|own| namespaces.matches(namespace, own)))
    }

    /// Whether it selects all Pods of its namespaces, regardless of their labels.
    pub(crate) fn selects_all(&self) -> bool {
        self.labels.as_ref().is_some_and(Vec::is_empty)
    }

    /// The label keys on which it depends.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.labels.iter().flatten().map(|expression| &expression.key)
    }
}

/// A required term of inter-Pod affinity or anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodTerm {
    /// The Pods.
    pub selector: PodSelector,
    /// The label of nodes that defines the domains.
    pub topology: Arc<str>,
}

/// A topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TopologySpread {
    /// The Pods that are counted.
    pub selector: PodSelector,
    /// The label of nodes that defines the domains.
    pub topology: Arc<str>,
    /// Maximum difference between a domain and the one with the fewest Pods; at least 1.
    pub max_skew: u32,
    /// With fewer domains, the fewest Pods count as 0; at least 1.
    pub min_domains: u32,
    /// Only nodes that match the Pod's node selector and required node affinity are counted (`nodeAffinityPolicy`).
    pub honor_affinity: bool,
    /// Only nodes whose taints the Pod tolerates are counted (`nodeTaintsPolicy`).
    pub honor_taints: bool,
}

/// What a Pod requires of other Pods' places.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodTerms {
    /// A Pod that matches all of these must be in its domain of each.
    pub affinity: Vec<PodTerm>,
    /// No Pod that matches any of these may be in its domain of that term.
    pub anti_affinity: Vec<Arc<PodTerm>>,
    /// Its spread constraints.
    pub spread: Vec<TopologySpread>,
}

impl PodTerms {
    /// Whether it requires nothing.
    pub fn is_empty(&self) -> bool {
        self.affinity.is_empty() && self.anti_affinity.is_empty() && self.spread.is_empty()
    }

    /// Number of terms and constraints.
    pub fn len(&self) -> usize {
        self.affinity.len() + self.anti_affinity.len() + self.spread.len()
    }

    /// Every selector of Pods.
    pub(crate) fn selectors(&self) -> impl Iterator<Item = &PodSelector> {
        let affinity = self.affinity.iter().map(|term| &term.selector);
        let anti_affinity = self.anti_affinity.iter().map(|term| &term.selector);
        affinity.chain(anti_affinity).chain(self.spread.iter().map(|spread| &spread.selector))
    }

    /// Whether it may be allowed on more nodes when further Pods are started.
    pub(crate) fn awaits_others(&self) -> bool {
        !self.affinity.is_empty() || !self.spread.is_empty()
    }
}
