//! The storage objects of the cluster. A clone shares everything with the original.

use std::collections::BTreeSet;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::failures::ClaimFailures;
use super::objects::{
    Attachment, Capacity, Claim, ClaimKey, Driver, NodeDrivers, PersistentVolume, StorageClass, StorageKey,
    StorageObject,
};
use super::objects::{UnboundClaim, VolumeId};
use crate::constraint::facts::matches;
use crate::constraint::{Labels, NodeFacts};

/// Namespace and name.
type ObjectName = (Arc<str>, Arc<str>);
type Capacities = OrdMap<ObjectName, Arc<Capacity>>;

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct Storage {
    claims: OrdMap<ClaimKey, Arc<Claim>>,
    volumes: OrdMap<Arc<str>, Arc<PersistentVolume>>,
    /// Number of volumes by driver and handle.
    handles: OrdMap<VolumeId, u32>,
    /// Volumes by class.
    by_class: OrdSet<(Arc<str>, Arc<str>)>,
    classes: OrdMap<Arc<str>, Arc<StorageClass>>,
    drivers: OrdMap<Arc<str>, Driver>,
    nodes: OrdMap<Arc<str>, Arc<NodeDrivers>>,
    /// Drivers with a limit on some node, and on how many.
    limited: OrdMap<Arc<str>, u32>,
    /// By class.
    capacities: OrdMap<Arc<str>, Capacities>,
    capacity_classes: OrdMap<ObjectName, Arc<str>>,
    attachments: OrdMap<Arc<str>, Arc<Attachment>>,
    failures: ClaimFailures,
    /// Free volumes that we are about to give to a claim.
    promised: OrdMap<Arc<str>, ClaimKey>,
}

/// What a change may affect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageChange {
    /// Nothing.
    None,
    /// Pods that use this claim.
    Claim(ClaimKey),
    /// Pods whose claim is bound to this volume, or that wait for one of this class.
    Volume(Arc<str>, Arc<str>),
    /// Pods whose claims of this class, or of any, have no volume yet.
    Unbound(Option<Arc<str>>),
    /// Pods with volumes.
    Limits,
}

impl Storage {
    /// Adds or replaces an object.
    pub fn set(&mut self, object: StorageObject) -> StorageChange {
        match object {
            StorageObject::Claim(claim) => {
                let key = claim.key();
                if self.claims.get(&key).is_some_and(|known| **known == claim) {
                    return StorageChange::None;
                }
                self.claims.insert(key.clone(), Arc::new(claim));
                StorageChange::Claim(key)
            }
            StorageObject::Volume(volume) => self.set_volume(volume),
            StorageObject::Class(class) => {
                let name = class.name.clone();
                if self.classes.get(&name).is_some_and(|known| **known == class) {
                    return StorageChange::None;
                }
                self.classes.insert(name.clone(), Arc::new(class));
                StorageChange::Unbound(Some(name))
            }
            StorageObject::Driver(driver) => {
                let before = self.drivers.insert(driver.name.clone(), driver.clone());
                if before.as_ref() == Some(&driver) { StorageChange::None } else { StorageChange::Limits }
            }
            StorageObject::Node(node) => self.set_node(&node.node.clone(), Some(node)),
            StorageObject::Capacity(capacity) => {
                let key = (capacity.namespace.clone(), capacity.name.clone());
                let known = self.capacities.get(&capacity.class).and_then(|of| of.get(&key));
                if known.is_some_and(|known| **known == capacity) {
                    return StorageChange::None;
                }
                self.remove_capacity(&key);
                let class = capacity.class.clone();
                self.capacity_classes.insert(key.clone(), class.clone());
                self.capacities.entry(class.clone()).or_default().insert(key, Arc::new(capacity));
                StorageChange::Unbound(Some(class))
            }
            StorageObject::Attachment(one) => {
                if self.attachments.get(&one.name).is_some_and(|known| **known == one) {
                    return StorageChange::None;
                }
                self.attachments.insert(one.name.clone(), Arc::new(one));
                StorageChange::Limits
            }
            StorageObject::Failure(failure) => {
                self.failures.set(failure);
                StorageChange::None
            }
        }
    }

    /// Removes an object.
    pub fn remove(&mut self, key: &StorageKey) -> StorageChange {
        let changed = |there: bool, change: StorageChange| if there { change } else { StorageChange::None };
        match key {
            StorageKey::Claim(key) => {
                changed(self.claims.remove(key).is_some(), StorageChange::Claim(key.clone()))
            }
            StorageKey::Volume(name) => {
                self.promised.remove(name);
                let Some(volume) = self.volumes.remove(name) else { return StorageChange::None };
                self.by_class.remove(&(volume.class.clone(), name.clone()));
                if self.count_handle(volume.csi.as_ref(), None) {
                    return StorageChange::Limits;
                }
                StorageChange::Volume(name.clone(), volume.class.clone())
            }
            StorageKey::Class(name) => {
                changed(self.classes.remove(name).is_some(), StorageChange::Unbound(Some(name.clone())))
            }
            StorageKey::Driver(name) => changed(self.drivers.remove(name).is_some(), StorageChange::Limits),
            StorageKey::Node(name) => self.set_node(name, None),
            StorageKey::Capacity(key) => self
                .remove_capacity(key)
                .map_or(StorageChange::None, |class| StorageChange::Unbound(Some(class))),
            StorageKey::Attachment(name) => {
                changed(self.attachments.remove(name).is_some(), StorageChange::Limits)
            }
            StorageKey::Failure(uid) => {
                self.failures.remove(uid);
                StorageChange::None
            }
        }
    }

    fn set_volume(&mut self, volume: PersistentVolume) -> StorageChange {
        let name = volume.name.clone();
        let before = self.volumes.get(&name).cloned();
        if before.as_ref().is_some_and(|known| **known == volume) {
            return StorageChange::None;
        }
        if let Some(before) = &before {
            let old = (before.class.clone(), name.clone());
            self.by_class.remove(&old);
        }
        if volume.claimant.is_some() {
            self.promised.remove(&name);
        }
        let class = volume.class.clone();
        let concerns_others =
            self.count_handle(before.as_ref().and_then(|before| before.csi.as_ref()), volume.csi.as_ref());
        self.by_class.insert((class.clone(), name.clone()));
        self.volumes.insert(name.clone(), Arc::new(volume));
        if concerns_others { StorageChange::Limits } else { StorageChange::Volume(name, class) }
    }

    /// A volume has another handle than before; returns whether it shares or shared one with others.
    fn count_handle(&mut self, before: Option<&VolumeId>, now: Option<&VolumeId>) -> bool {
        if before == now {
            return false;
        }
        let mut shared = false;
        if let Some(id) = before {
            let count = self.handles.entry(id.clone()).or_default();
            *count = count.saturating_sub(1);
            shared = *count > 0;
            if !shared {
                self.handles.remove(id);
            }
        }
        if let Some(id) = now {
            let count = self.handles.entry(id.clone()).or_default();
            *count = count.saturating_add(1);
            shared |= *count > 1;
        }
        shared
    }

    /// Whether several volumes have this handle: these are the same to the driver.
    pub(crate) fn is_ambiguous(&self, id: &VolumeId) -> bool {
        self.handles.get(id).is_some_and(|count| *count > 1)
    }

    fn set_node(&mut self, name: &Arc<str>, node: Option<NodeDrivers>) -> StorageChange {
        let before = self.nodes.get(name).cloned();
        if before.as_deref() == node.as_ref() {
            return StorageChange::None;
        }
        for driver in before.iter().flat_map(|node| node.limits.keys()) {
            if let Some(nodes) = self.limited.get_mut(driver) {
                *nodes -= 1;
                if *nodes == 0 {
                    self.limited.remove(driver);
                }
            }
        }
        for driver in node.iter().flat_map(|node| node.limits.keys()) {
            *self.limited.entry(driver.clone()).or_default() += 1;
        }
        match node {
            Some(node) => self.nodes.insert(name.clone(), Arc::new(node)),
            None => self.nodes.remove(name),
        };
        StorageChange::Limits
    }

    /// Returns its class, if it was there.
    fn remove_capacity(&mut self, key: &ObjectName) -> Option<Arc<str>> {
        let class = self.capacity_classes.remove(key)?;
        if let Some(of) = self.capacities.get_mut(&class) {
            of.remove(key);
            if of.is_empty() {
                self.capacities.remove(&class);
            }
        }
        Some(class)
    }

    /// A claim.
    pub fn claim(&self, key: &ClaimKey) -> Option<&Arc<Claim>> {
        self.claims.get(key)
    }

    /// A volume by name.
    pub fn volume(&self, name: &str) -> Option<&Arc<PersistentVolume>> {
        self.volumes.get(name)
    }

    /// A storage class by name.
    pub fn class(&self, name: &str) -> Option<&Arc<StorageClass>> {
        self.classes.get(name)
    }

    /// The provisioner's latest message about a claim, by namespace and UID.
    pub fn failure(&self, namespace: &Arc<str>, claim: &Arc<str>) -> Option<&Arc<str>> {
        self.failures.message(namespace, claim)
    }

    /// Volumes of a class, by name.
    pub(crate) fn of_class(&self, class: &Arc<str>) -> impl Iterator<Item = &Arc<PersistentVolume>> {
        let from = (class.clone(), Arc::from(""));
        let named = self.by_class.range(from..).take_while(move |(of, _)| of == class);
        named.filter_map(|(_, name)| self.volumes.get(name))
    }

    pub(crate) fn tracks_capacity(&self, driver: &str) -> bool {
        self.drivers.get(driver).is_some_and(|driver| driver.tracks_capacity)
    }

    /// Whether Pods with volumes of the driver only run on nodes where it is installed.
    pub(crate) fn must_be_installed(&self, driver: &str) -> bool {
        self.drivers.get(driver).is_some_and(|driver| driver.must_be_installed)
    }

    /// Whether a volume of this size can be created for a node with these labels.
    pub(crate) fn has_room(&self, class: &str, size: u64, labels: &Labels) -> bool {
        let all = self.capacities.get(class).into_iter().flat_map(OrdMap::values);
        all.into_iter().any(|capacity| {
            capacity.largest.is_some_and(|largest| largest >= size)
                && capacity.nodes.as_ref().is_some_and(|selector| {
                    selector.iter().all(|one| matches(one, labels.get(&one.key).map(AsRef::as_ref)))
                })
        })
    }

    /// Whether any node limits the number of volumes of this driver.
    pub(crate) fn is_limited(&self, driver: &str) -> bool {
        self.limited.contains_key(driver)
    }

    /// Nodes with drivers.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Arc<NodeDrivers>> {
        self.nodes.values()
    }

    /// Attached volumes by node.
    pub(crate) fn attached(&self) -> impl Iterator<Item = (&Arc<str>, &VolumeId)> {
        self.attachments.values().filter_map(|one| Some((&one.node, self.volume(&one.volume)?.csi.as_ref()?)))
    }

    /// Driver and handle of a claim's volume. One that does not exist yet has a handle of its own.
    pub(crate) fn volume_of(&self, claim: &Claim) -> Option<VolumeId> {
        if let Some(volume) = claim.volume.as_ref().and_then(|name| self.volume(name)) {
            return volume.csi.clone();
        }
        let class = self.class(&claim.class)?;
        Some((class.provisioner.clone(), format!("claim {}/{}", claim.namespace, claim.name).into()))
    }

    /// What a claim without a volume can get.
    pub(crate) fn unbound(&self, claim: &Claim) -> UnboundClaim {
        UnboundClaim::new(claim, self)
    }

    /// Assumes that the claim's node is selected, or no longer, before it is reported.
    pub(crate) fn select(&mut self, claim: &ClaimKey, node: Option<Arc<str>>, at: Option<i64>) {
        if let Some(known) = self.claims.get_mut(claim) {
            let known = Arc::make_mut(known);
            (known.selected, known.selected_at) = (node, at);
        }
    }

    /// Whether we are about to give the volume to a claim.
    pub(crate) fn is_promised(&self, volume: &str) -> bool {
        self.promised.contains_key(volume)
    }

    /// Keeps a free volume for a claim.
    pub(crate) fn promise(&mut self, volume: Arc<str>, claim: ClaimKey) {
        self.promised.insert(volume, claim);
    }

    /// It is not kept any more.
    pub(crate) fn take_back(&mut self, volume: &str) {
        self.promised.remove(volume);
    }

    /// The nodes that are in the same place as this one to the driver, by the labels that it has named; only the node
    /// itself if there are none.
    pub(crate) fn same_place<'a>(
        &self,
        driver: &str,
        node: &NodeFacts,
        nodes: impl Iterator<Item = &'a NodeFacts>,
    ) -> BTreeSet<Arc<str>> {
        let mut found = BTreeSet::from([node.name.clone()]);
        let keys = self.nodes.get(&node.name).and_then(|drivers| drivers.topology.get(driver)).cloned();
        let Some(keys) = keys.filter(|keys| !keys.is_empty()) else { return found };
        let same = |other: &&NodeFacts| keys.iter().all(|key| other.labels.get(key) == node.labels.get(key));
        found.extend(nodes.filter(same).map(|other| other.name.clone()));
        found
    }
}
