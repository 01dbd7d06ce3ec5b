//! A Pod as other Pods see it, and what it requires and prefers of them.

use std::sync::Arc;

use super::pod_terms::{Namespaces, PodSelector, PodTerm, PodTerms};
use super::preference::{Preferences, PreferredPods};
use super::terms::Labels;
use super::volumes::{PodVolumes, VolumeNeeds};

/// A Pod as others see it, and what it requires of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its labels. In a request only those that some selector depends on, so that more requests are equal.
    pub labels: Arc<Labels>,
    /// What it requires; none for nothing.
    pub terms: Option<Arc<PodTerms>>,
    /// It is terminating, and no longer counts for spread constraints.
    pub deleting: bool,
    /// The volumes that it mounts; none in a request.
    pub mounts: Option<Arc<PodVolumes>>,
    /// What it prefers; none in a request, which has that itself.
    pub preferences: Option<Arc<Preferences>>,
    /// In a request: what its volumes require that depends on what else is placed.
    pub volumes: Option<Arc<VolumeNeeds>>,
}

impl Peer {
    /// Whether the selector selects it.
    pub(crate) fn is_selected(&self, selector: &PodSelector, namespaces: &Namespaces) -> bool {
        selector.selects(&self.namespace, &self.labels, namespaces)
    }

    /// Its preferred affinity and anti-affinity.
    pub(crate) fn preferred(&self) -> &[PreferredPods] {
        self.preferences.as_ref().map_or(&[], |preferences| &preferences.pods)
    }

    /// Its required anti-affinity.
    pub(crate) fn anti_affinity(&self) -> &[Arc<PodTerm>] {
        self.terms.as_ref().map_or(&[], |terms| &terms.anti_affinity)
    }
}
