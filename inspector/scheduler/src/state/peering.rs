//! Constraints between Pods: which Pods' labels matter to others, so that requests only contain those that do.

use std::collections::BTreeSet;
use std::sync::Arc;

use imbl::OrdMap;

use crate::constraint::{Labels, Peer, PodSelector, SelectorMap};
use crate::job::JobId;
use crate::model::{PodSpec, SharedStr};
use crate::state::State;

/// The selectors in the constraints of all Pods that have not finished.
#[derive(Clone, Debug, Default)]
pub(super) struct Peering {
    /// With the number of their uses.
    selectors: SelectorMap<PodSelector, u32>,
    /// Label keys of these selectors, with the number of selectors.
    keys: OrdMap<SharedStr, u32>,
}

/// Selectors and label keys that are new or no longer used.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangedSelectors {
    selectors: SelectorMap<PodSelector, ()>,
    keys: BTreeSet<SharedStr>,
}

impl Peering {
    fn add(&mut self, selector: &PodSelector, changed: &mut ChangedSelectors) {
        if let Some(uses) = self.selectors.get_mut(selector) {
            *uses = uses.saturating_add(1);
            return;
        }
        let selector = Arc::new(selector.clone());
        for key in selector.keys() {
            let uses = self.keys.entry(key.clone()).or_default();
            *uses = uses.saturating_add(1);
            if *uses == 1 {
                changed.keys.insert(key.clone());
            }
        }
        self.selectors.insert(selector.clone(), 1);
        changed.selectors.insert(selector, ());
    }

    fn remove(&mut self, selector: &PodSelector, changed: &mut ChangedSelectors) {
        let Some(uses) = self.selectors.get_mut(selector) else { return };
        *uses -= 1;
        if *uses > 0 {
            return;
        }
        self.selectors.remove(selector);
        for key in selector.keys() {
            if let Some(uses) = self.keys.get_mut(key) {
                *uses -= 1;
                if *uses == 0 {
                    self.keys.remove(key);
                    changed.keys.insert(key.clone());
                }
            }
        }
        changed.selectors.insert(Arc::new(selector.clone()), ());
    }
}

impl State {
    /// Records the constraints of a Pod that was added, changed or removed.
    pub(super) fn note_terms(&mut self, old: Option<&PodSpec>, new: Option<&PodSpec>) {
        let terms = |pod: Option<&PodSpec>| pod.filter(|pod| !pod.phase.ended())?.terms.clone();
        let (old, new) = (terms(old), terms(new));
        if old == new {
            return;
        }
        for selector in new.iter().flat_map(|terms| terms.selectors()) {
            self.peering.add(selector, &mut self.work.selectors);
        }
        for selector in old.iter().flat_map(|terms| terms.selectors()) {
            self.peering.remove(selector, &mut self.work.selectors);
        }
    }

    /// A namespace was added, changed or, without labels, removed.
    pub(super) fn namespace_changed(&mut self, name: &SharedStr, labels: Option<Labels>) {
        if self.inventory.set_namespace(name, labels) && !self.peering.selectors.is_empty() {
            self.work.dirty.extend(self.waiting.in_order().map(|key| key.id));
        }
    }

    /// Jobs whose requests may have changed because of others' constraints are evaluated again.
    pub(super) fn revise_peers(&mut self) {
        let changed = std::mem::take(&mut self.work.selectors);
        if changed.selectors.is_empty() {
            return;
        }
        let namespaces = self.inventory.namespaces();
        let concerns = |id: &JobId| {
            let Some(job) = self.jobs.get(*id) else { return false };
            let shapes = job.request.iter().flat_map(|request| &request.shapes);
            let known = shapes.into_iter().any(|shape| shape.peer.is_some());
            job.pods.iter().filter_map(|uid| self.delivered.pod(uid)).any(|pod| {
                let labels = pod.labels.shared();
                known && changed.keys.iter().any(|key| labels.contains_key(key))
                    || changed.selectors.selecting(&pod.namespace, labels, namespaces).next().is_some()
            })
        };
        let jobs: Vec<JobId> = self.waiting.in_order().map(|key| key.id).filter(concerns).collect();
        self.work.dirty.extend(jobs);
    }

    /// The Pod as others see it, if it has constraints on them or they on it; with the labels on which any constraint
    /// depends.
    pub(super) fn peer_of(&self, pod: &PodSpec) -> Option<Arc<Peer>> {
        let Peering { selectors, keys } = &self.peering;
        let labels = pod.labels.shared();
        let namespaces = self.inventory.namespaces();
        let selected = || selectors.selecting(&pod.namespace, labels, namespaces).next().is_some();
        if selectors.is_empty() || pod.terms.is_none() && !selected() {
            return None;
        }
        let relevant = labels.iter().filter(|(key, _)| keys.contains_key(*key));
        Some(Arc::new(Peer {
            namespace: pod.namespace.clone(),
            labels: Arc::new(relevant.map(|(key, value)| (key.clone(), value.clone())).collect()),
            terms: pod.terms.clone(),
            deleting: false,
        }))
    }
}
