//! Storage: what the API server does with the engine's writes, and a provisioner.

use std::sync::Arc;

use fluxion_scheduler::constraint::volumes::{
    Claim, ClaimFailure, ClaimUse, NodeDrivers, PersistentVolume, PodVolumes, StorageClass, StorageKey,
    StorageObject, VolumeClaimant,
};
use fluxion_scheduler::constraint::{Expression, Operator, Term};
use fluxion_scheduler::event::{BindOutcome, Effect, Event};
use fluxion_scheduler::model::{ObjectRef, PodSpec, SharedStr};

use super::World;

/// A term that requires this label.
pub fn labelled(key: &str, value: &str) -> Arc<[Term]> {
    let expression = Expression { key: key.into(), operator: Operator::In, values: vec![value.into()] };
    Arc::new([Term { labels: vec![expression], fields: Vec::new() }])
}

/// Mounts these claims.
pub fn mounting(claims: &[&str]) -> impl FnOnce(&mut PodSpec) + use<> {
    let claims = claims.iter().map(|name| ClaimUse { name: (*name).into(), ephemeral: false }).collect();
    move |pod| pod.volumes = Some(Arc::new(PodVolumes { claims, disks: Vec::new() }))
}

/// A class of volumes that are provisioned for the first consumer.
pub fn waits(name: &str) -> StorageClass {
    StorageClass {
        name: name.into(),
        provisioner: "csi.example".into(),
        waits: true,
        topologies: Arc::default(),
    }
}

/// An unbound claim of 10 bytes in class `wait`.
pub fn claim(name: &str) -> Claim {
    Claim {
        namespace: "default".into(),
        name: name.into(),
        uid: format!("claim-{name}").into(),
        class: "wait".into(),
        size: Some(10),
        modes: ["ReadWriteOnce".into()].into(),
        ..Claim::default()
    }
}

/// A free volume of this size in class `wait`.
pub fn volume(name: &str, size: u64) -> PersistentVolume {
    PersistentVolume {
        name: name.into(),
        uid: format!("volume-{name}").into(),
        version: "1".into(),
        class: "wait".into(),
        size,
        modes: ["ReadWriteOnce".into()].into(),
        available: true,
        ..PersistentVolume::default()
    }
}

/// At most so many volumes on a node, which is in a place by its label `zone`.
pub fn limit(node: &str, count: u32) -> StorageObject {
    StorageObject::Node(NodeDrivers {
        node: node.into(),
        installed: ["csi.example".into()].into(),
        limits: [("csi.example".into(), count)].into(),
        topology: [("csi.example".into(), Arc::from(["zone".into()]))].into(),
    })
}

impl World {
    pub fn set(&mut self, object: StorageObject) {
        self.storage.insert(object.key(), object.clone());
        self.step(vec![Event::Storage(Box::new(object))]);
    }

    pub fn unset(&mut self, key: &StorageKey) {
        self.storage.remove(key);
        self.step(vec![Event::StorageGone(key.clone())]);
    }

    pub fn claim(&self, name: &str) -> &Claim {
        match self.storage.get(&StorageKey::Claim(("default".into(), name.into()))) {
            Some(StorageObject::Claim(claim)) => claim,
            other => panic!("{other:?}"),
        }
    }

    pub fn volume(&self, name: &str) -> &PersistentVolume {
        match self.storage.get(&StorageKey::Volume(name.into())) {
            Some(StorageObject::Volume(volume)) => volume,
            other => panic!("{other:?}"),
        }
    }

    pub fn change_claim(&mut self, name: &str, change: impl FnOnce(&mut Claim)) {
        let mut claim = self.claim(name).clone();
        change(&mut claim);
        self.set(StorageObject::Claim(claim));
    }

    /// The node for which a claim's volume is to be provisioned.
    pub fn selected(&self, name: &str) -> Option<&str> {
        self.claim(name).selected.as_deref()
    }

    /// A volume for the claim, accessible from nodes with this label.
    pub fn provision(&mut self, name: &str, nodes: (&str, &str)) {
        let claim = self.claim(name).clone();
        let made = PersistentVolume {
            affinity: Some(labelled(nodes.0, nodes.1)),
            csi: Some(("csi.example".into(), format!("handle-{name}").into())),
            ..volume(&format!("pv-{name}"), 10)
        };
        self.bind_claim(&claim, made);
    }

    /// What the controller of `PersistentVolumes` does.
    pub fn bind_claim(&mut self, claim: &Claim, volume: PersistentVolume) {
        let claimant = VolumeClaimant {
            namespace: claim.namespace.clone(),
            name: claim.name.clone(),
            uid: claim.uid.clone(),
        };
        let name = volume.name.clone();
        self.set(StorageObject::Volume(PersistentVolume {
            claimant: Some(claimant),
            available: false,
            version: "".into(),
            ..volume
        }));
        self.change_claim(&claim.name, |claim| {
            claim.volume = Some(name);
            claim.complete = true;
        });
    }

    /// The provisioner gives up: it says why, and removes the node.
    pub fn provisioning_fails(&mut self, name: &str, message: &str) {
        let (namespace, claim) = (self.claim(name).namespace.clone(), self.claim(name).uid.clone());
        let uid = format!("event-{name}-{}", self.effects.len()).into();
        self.set(StorageObject::Failure(ClaimFailure { uid, namespace, claim, message: message.into() }));
        self.change_claim(name, |claim| (claim.selected, claim.selected_at) = (None, None));
    }

    /// Carries out a write to a claim or a volume.
    pub fn write_storage(&mut self, effect: &Effect) -> Vec<Event> {
        let mut changed = Vec::new();
        let mut done = |object: &ObjectRef| {
            changed.push(Event::StorageWritten { object: object.uid.clone(), outcome: BindOutcome::Done });
        };
        let claim_key = |claim: &ObjectRef| StorageKey::Claim((claim.namespace.clone(), claim.name.clone()));
        let object = match effect {
            Effect::SelectNode { claim, node, at } => {
                done(claim);
                self.write_claim(&claim_key(claim), Some((node.clone(), *at)))
            }
            Effect::DeselectNode { claim, node } => {
                let key = claim_key(claim);
                let ours = matches!(self.storage.get(&key),
                    Some(StorageObject::Claim(claim)) if claim.selected.as_ref() == Some(node));
                if ours { self.write_claim(&key, None) } else { None }
            }
            Effect::ReserveVolume { volume, version, claim } => {
                let Some(StorageObject::Volume(known)) =
                    self.storage.get_mut(&StorageKey::Volume(volume.name.clone()))
                else {
                    return vec![];
                };
                let object = volume.uid.clone();
                if known.version != *version {
                    let outcome = BindOutcome::Refused("the volume was changed".into());
                    return vec![Event::StorageWritten { object, outcome }];
                }
                done(volume);
                known.version = "".into();
                known.claimant = Some(VolumeClaimant {
                    namespace: claim.namespace.clone(),
                    name: claim.name.clone(),
                    uid: claim.uid.clone(),
                });
                Some(StorageObject::Volume(known.clone()))
            }
            Effect::FreeVolume { volume, .. } => {
                let Some(StorageObject::Volume(known)) =
                    self.storage.get_mut(&StorageKey::Volume(volume.name.clone()))
                else {
                    return vec![];
                };
                known.version = "2".into();
                known.claimant = None;
                Some(StorageObject::Volume(known.clone()))
            }
            _ => None,
        };
        changed.extend(object.map(|object| Event::Storage(Box::new(object))));
        changed
    }

    fn write_claim(&mut self, key: &StorageKey, selected: Option<(SharedStr, i64)>) -> Option<StorageObject> {
        let Some(StorageObject::Claim(claim)) = self.storage.get_mut(key) else { return None };
        claim.selected_at = selected.as_ref().map(|(_, at)| *at);
        claim.selected = selected.map(|(node, _)| node);
        Some(StorageObject::Claim(claim.clone()))
    }
}
