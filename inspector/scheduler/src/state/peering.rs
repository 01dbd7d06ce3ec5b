//! Constraints between Pods: which Pods' labels matter to others, so that requests only contain those that do.

use std::sync::Arc;

use crate::constraint::{Labels, Peer};
use crate::job::JobId;
use crate::model::{PodSpec, SharedStr};
use crate::state::State;
use crate::state::selectors::Peering;

impl State {
    /// Records the constraints of a Pod that was added, changed or removed.
    pub(super) fn note_terms(&mut self, old: Option<&PodSpec>, new: Option<&PodSpec>) {
        let live = |pod: Option<&PodSpec>| {
            let pod = pod.filter(|pod| !pod.phase.ended())?;
            Some((pod.terms.clone(), pod.preferences.clone()))
        };
        if live(old) == live(new) {
            return;
        }
        let [old, new] = [old, new].map(|pod| pod.filter(|pod| !pod.phase.ended()));
        for selector in new.into_iter().flat_map(PodSpec::selectors) {
            self.peering.add(selector, &mut self.work.selectors);
        }
        for selector in old.into_iter().flat_map(PodSpec::selectors) {
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
        let Peering { selectors, .. } = &self.peering;
        let labels = pod.labels.shared();
        let namespaces = self.inventory.namespaces();
        let selected = || selectors.selecting(&pod.namespace, labels, namespaces).next().is_some();
        if selectors.is_empty() || pod.terms.is_none() && !selected() {
            return None;
        }
        Some(Arc::new(self.relevant_peer(pod)))
    }

    /// The Pod as others see it, with the labels on which any constraint depends: a selector may select those that have no
    /// such label.
    pub(super) fn relevant_peer(&self, pod: &PodSpec) -> Peer {
        let labels = pod.labels.shared();
        let relevant = labels.iter().filter(|(key, _)| self.peering.keys.contains_key(*key));
        Peer {
            namespace: pod.namespace.clone(),
            labels: Arc::new(relevant.map(|(key, value)| (key.clone(), value.clone())).collect()),
            terms: pod.terms.clone(),
            deleting: false,
            mounts: None,
            preferences: None,
            volumes: None,
        }
    }
}
