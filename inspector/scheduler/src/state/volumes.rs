//! The volumes of Pods: what they require of a node, and which jobs have to be evaluated again when storage changes.

use std::sync::Arc;

use crate::constraint::volumes::{
    ClaimKey, Mounted, Resolved, StorageChange, StorageKey, StorageObject, resolve,
};
use crate::constraint::{NodeConstraint, Peer};
use crate::job::JobId;
use crate::model::{PodSpec, SharedStr};
use crate::state::State;

impl State {
    /// Records the claims of a Pod that was added, changed or removed.
    pub(super) fn note_mounts(&mut self, old: Option<&PodSpec>, new: Option<&PodSpec>) {
        let waits = |pod: &&PodSpec| pod.node.is_none() && !pod.phase.ended();
        let keys = |pod: Option<&PodSpec>| -> Vec<ClaimKey> {
            let mounts =
                pod.filter(waits).and_then(|pod| mounted(pod).map(|mounted| mounted.keys().collect()));
            mounts.unwrap_or_default()
        };
        let (old_keys, new_keys) = (keys(old), keys(new));
        if old_keys == new_keys {
            return;
        }
        for key in old_keys.iter().filter(|key| !new_keys.contains(key)) {
            if let Some(users) = self.mounts.get_mut(key)
                && let Some(pod) = old
            {
                users.remove(&pod.uid);
                if users.is_empty() {
                    self.mounts.remove(key);
                }
            }
        }
        for key in new_keys.iter().filter(|key| !old_keys.contains(key)) {
            if let Some(pod) = new {
                self.mounts.entry(key.clone()).or_default().insert(pod.uid.clone());
            }
        }
        if self.storage_stale && !new_keys.is_empty() {
            self.renew_storage();
        }
        // A volume that others use too is another requirement.
        for key in old_keys.iter().chain(&new_keys) {
            self.mounts_changed(key);
        }
    }

    fn mounts_changed(&mut self, claim: &ClaimKey) {
        let users = self.mounts.get(claim).into_iter().flatten();
        self.work.dirty.extend(users.filter_map(|uid| self.belonging.job_of(uid)));
    }

    /// A storage object was added or changed.
    pub(super) fn storage_set(&mut self, object: StorageObject) {
        match &object {
            StorageObject::Claim(claim) => self.note_claim(claim),
            StorageObject::Failure(failure) => {
                let claim = failure.claim.clone();
                self.work.dirty.extend(self.preparing(&claim));
            }
            _ => {}
        }
        let change = self.inventory.storage_mut().set(object);
        self.storage_changed(&change);
    }

    /// A storage object was deleted.
    pub(super) fn storage_gone(&mut self, key: &StorageKey) {
        let change = self.inventory.storage_mut().remove(key);
        self.storage_changed(&change);
    }

    pub(super) fn storage_changed(&mut self, change: &StorageChange) {
        let storage = self.inventory.storage();
        let concerns = |key: &ClaimKey| {
            let claim = storage.claim(key);
            match change {
                StorageChange::None => false,
                StorageChange::Claim(changed) => changed == key,
                StorageChange::Volume(name, class) => claim.is_some_and(|claim| {
                    claim.volume.as_ref() == Some(name) || claim.bound().is_none() && claim.class == *class
                }),
                StorageChange::Unbound(class) => claim.is_some_and(|claim| {
                    claim.bound().is_none() && class.as_ref().is_none_or(|class| claim.class == *class)
                }),
                StorageChange::Limits => true,
            }
        };
        if *change == StorageChange::None {
            return;
        }
        let users = self.mounts.iter().filter(|(key, _)| concerns(key)).flat_map(|(_, users)| users);
        let jobs: Vec<JobId> = users.filter_map(|uid| self.belonging.job_of(uid)).collect();
        if jobs.is_empty() {
            // What is known of requests is about them, not about who waits: the next one may have an equal one.
            self.storage_stale = true;
        } else {
            self.work.dirty.extend(jobs);
            self.renew_storage();
        }
    }

    /// What did not fit may fit now.
    fn renew_storage(&mut self) {
        self.storage_stale = false;
        self.inventory.storage_changed();
    }

    /// What follows from the Pod's volumes; none if it has none. The error says what is missing.
    pub(super) fn volumes_of(&self, pod: &PodSpec) -> Option<Result<Resolved, String>> {
        let mounted = mounted(pod)?;
        let shared = |key: &ClaimKey| {
            let others = self.inventory.mounting(key).any(|(holder, _)| *holder != pod.uid);
            others || self.mounts.get(key).is_some_and(|users| users.iter().any(|uid| *uid != pod.uid))
        };
        Some(resolve(self.inventory.storage(), mounted, &shared))
    }

    /// What the Pod requires of its node, and the Pod as others see it: with its volumes.
    pub(super) fn placing(&self, pod: &PodSpec) -> (Arc<NodeConstraint>, Option<Arc<Peer>>) {
        let peer = self.peer_of(pod);
        let Some(Ok(Resolved { rules, needs, .. })) = self.volumes_of(pod) else {
            return (pod.constraint.clone(), peer);
        };
        let constraint = if rules.is_empty() {
            pod.constraint.clone()
        } else {
            Arc::new(NodeConstraint { volumes: rules, ..(*pod.constraint).clone() })
        };
        if needs.is_empty() {
            return (constraint, peer);
        }
        let peer = peer.map_or_else(|| self.relevant_peer(pod), Arc::unwrap_or_clone);
        (constraint, Some(Arc::new(Peer { volumes: Some(Arc::new(needs)), ..peer })))
    }
}

/// The volumes that the Pod mounts.
pub(super) fn mounted(pod: &PodSpec) -> Option<Mounted<'_>> {
    let volumes = pod.volumes.as_deref()?;
    Some(Mounted { namespace: &pod.namespace, uid: uid(&pod.uid), volumes })
}

fn uid(uid: &SharedStr) -> &str {
    uid
}
