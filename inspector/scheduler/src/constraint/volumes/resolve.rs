//! What follows from a Pod's volumes for where it may run, or why it can't be placed anywhere yet.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::needs::VolumeNeeds;
use super::objects::UnboundClaim;
use super::objects::{Claim, ClaimKey, PersistentVolume, PodVolumes};
use super::rule::{VolumeRule, ZONES};
use super::tables::Storage;

/// The Pod that mounts volumes.
#[derive(Clone, Copy, Debug)]
pub struct Mounted<'a> {
    /// Its namespace.
    pub namespace: &'a Arc<str>,
    /// Its UID, to tell whether it owns the claims of its ephemeral volumes.
    pub uid: &'a str,
    /// Its volumes.
    pub volumes: &'a PodVolumes,
}

impl Mounted<'_> {
    /// The keys of its claims.
    pub fn keys(&self) -> impl Iterator<Item = ClaimKey> {
        self.volumes.claims.iter().map(|one| (self.namespace.clone(), one.name.clone()))
    }
}

/// What follows from a Pod's volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// What they require of a node's labels; sorted, without duplicates.
    pub rules: Vec<VolumeRule>,
    /// What else they require.
    pub needs: VolumeNeeds,
    /// Claims without a volume, in the order of `needs.unbound`, if that lists them.
    pub unbound: Vec<Arc<Claim>>,
}

/// Evaluates a Pod's volumes. `shared` tells whether other Pods use a claim too. The error says what is missing.
pub fn resolve(
    storage: &Storage,
    pod: Mounted<'_>,
    shared: &dyn Fn(&ClaimKey) -> bool,
) -> Result<Resolved, String> {
    let mut found = Resolved::default();
    let mut rules = BTreeSet::new();
    let mut unbound = Vec::new();
    for one in &pod.volumes.claims {
        let key = (pod.namespace.clone(), one.name.clone());
        let name = fluxion_text::shorten(&one.name, NAME_MAX);
        let claim = match storage.claim(&key) {
            None if one.ephemeral => {
                return Err(format!(
                    "PersistentVolumeClaim {name} of an ephemeral volume is not created yet"
                ));
            }
            None => return Err(format!("PersistentVolumeClaim {name} does not exist")),
            Some(claim) => claim,
        };
        if one.ephemeral && claim.controller.as_deref() != Some(pod.uid) {
            return Err(format!(
                "PersistentVolumeClaim {name} was not created for this Pod's ephemeral volume"
            ));
        }
        if claim.lost {
            return Err(format!("PersistentVolumeClaim {name} has lost its PersistentVolume"));
        }
        if claim.deleting {
            return Err(format!("PersistentVolumeClaim {name} is being deleted"));
        }
        if let Some(volume) = claim.bound() {
            let Some(volume) = storage.volume(volume) else {
                let volume = fluxion_text::shorten(volume, NAME_MAX);
                return Err(format!(
                    "PersistentVolumeClaim {name} is bound to PersistentVolume {volume}, which does not exist"
                ));
            };
            rules.extend(of_volume(volume));
        } else if claim.volume.is_none() && storage.class(&claim.class).is_some_and(|class| class.waits) {
            if let Some(node) = &claim.selected {
                rules.insert(VolumeRule::Node(node.clone()));
            }
            let shared = shared(&key).then(|| key.clone());
            unbound.push((UnboundClaim { shared, ..UnboundClaim::new(claim, storage) }, claim.clone()));
        } else {
            return Err(format!("PersistentVolumeClaim {name} is not bound yet"));
        }
        if claim.exclusive() && !one.ephemeral {
            found.needs.exclusive.push(key.clone());
        }
        let Some(id) = storage.volume_of(claim) else { continue };
        if storage.must_be_installed(&id.0) {
            found.needs.installed.insert(id.0.clone());
        }
        if storage.is_limited(&id.0) {
            if shared(&key) || storage.is_ambiguous(&id) {
                found.needs.shared.insert(id);
            } else {
                *found.needs.own.entry(id.0).or_default() += 1;
            }
        }
    }
    unbound.sort_by(|(a, x), (b, y)| (a.size, &x.name).cmp(&(b.size, &y.name)));
    // Where a volume can be created for certain, by labels alone, is not a question of what else is placed.
    let simple = |claim: &UnboundClaim| {
        let provision = claim.provision.as_ref().filter(|provision| !provision.tracked)?;
        claim.candidates(storage).is_empty().then(|| provision.topologies.clone())
    };
    for (claim, _) in &unbound {
        match simple(claim) {
            Some(topologies) if topologies.is_empty() => {}
            Some(topologies) => drop(rules.insert(VolumeRule::Topology(topologies))),
            None => found.needs.unbound.push(claim.clone()),
        }
    }
    found.unbound = unbound.into_iter().map(|(_, claim)| claim).collect();
    found.rules = rules.into_iter().collect();
    found.needs.exclusive.sort();
    found.needs.disks.clone_from(&pod.volumes.disks);
    Ok(found)
}

/// Maximum length of a name in a text, in characters.
const NAME_MAX: usize = 64;

/// What an existing volume requires.
fn of_volume(volume: &PersistentVolume) -> impl Iterator<Item = VolumeRule> {
    let affinity = volume.affinity.clone().map(VolumeRule::Affinity);
    let zone = |(key, _): (&str, &str)| {
        let values: BTreeSet<Arc<str>> =
            volume.labels.get(key)?.split("__").map(|value| value.trim().into()).collect();
        // kube-scheduler ignores a label that it can't interpret.
        let valid = values.iter().all(|value| !value.is_empty());
        valid.then(|| VolumeRule::Zone { key: key.into(), values })
    };
    affinity.into_iter().chain(ZONES.into_iter().filter_map(zone))
}
