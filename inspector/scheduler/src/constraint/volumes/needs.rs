//! What a Pod's volumes require that depends on what else is placed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::objects::{Claim, ClaimKey, Disk, PersistentVolume, Provision, UnboundClaim, VolumeId};
use super::tables::Storage;
use crate::constraint::Labels;
use crate::constraint::facts::matches;

use super::rule::any_matches;

/// See the module documentation. Contains nothing that only distinguishes Pods whose volumes are alike, so that their
/// requests are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeNeeds {
    /// Drivers that have to be installed on the node.
    pub installed: BTreeSet<Arc<str>>,
    /// Volumes of drivers with limits that other Pods may use too: on a node where one is, it counts once.
    pub shared: BTreeSet<VolumeId>,
    /// Number of volumes that only this Pod uses, by driver with limits.
    pub own: BTreeMap<Arc<str>, u32>,
    /// Claims that no other Pod may use at the same time.
    pub exclusive: Vec<ClaimKey>,
    /// Disks that Pods on one node can't share.
    pub disks: Vec<Disk>,
    /// Claims without a volume, smallest first.
    pub unbound: Vec<UnboundClaim>,
}

impl VolumeNeeds {
    /// Whether nothing is required.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl UnboundClaim {
    /// The claim's wishes; `reserved` is a volume that is reserved for it.
    pub(super) fn new(claim: &Claim, storage: &Storage) -> Self {
        let class = storage.class(&claim.class);
        let provision = class.filter(|class| class.provisions()).map(|class| Provision {
            topologies: class.topologies.clone(),
            tracked: claim.size.is_some() && storage.tracks_capacity(&class.provisioner),
        });
        let mut unbound = Self {
            size: claim.size.unwrap_or(0),
            class: claim.class.clone(),
            modes: claim.modes.clone(),
            block: claim.block,
            attributes_class: claim.attributes_class.clone(),
            selector: claim.selector.clone(),
            existing: claim.selected.is_none(),
            reserved: None,
            shared: None,
            provision,
        };
        if unbound.existing {
            let reserved = storage.of_class(&claim.class).find(|volume| {
                volume.claimant.as_ref().is_some_and(|claimant| claimant.is(claim)) && unbound.suits(volume)
            });
            unbound.reserved = reserved.map(|volume| volume.name.clone());
        }
        unbound
    }

    /// Whether the volume has the size and kind, regardless of its state.
    fn suits(&self, volume: &PersistentVolume) -> bool {
        volume.size >= self.size
            && volume.block == self.block
            && volume.attributes_class == self.attributes_class
            && !volume.deleting
    }

    /// The volumes that it can get, smallest first.
    pub(crate) fn candidates<'a>(&self, storage: &'a Storage) -> Vec<&'a Arc<PersistentVolume>> {
        if !self.existing {
            return Vec::new();
        }
        if let Some(name) = &self.reserved {
            return storage.volume(name).into_iter().collect();
        }
        let selected = |volume: &PersistentVolume| {
            self.selector
                .iter()
                .flatten()
                .all(|one| matches(one, volume.labels.get(&one.key).map(AsRef::as_ref)))
        };
        let free = |volume: &&Arc<PersistentVolume>| {
            volume.claimant.is_none()
                && volume.available
                && self.suits(volume)
                && selected(volume)
                && self.modes.is_subset(&volume.modes)
                && !storage.is_promised(&volume.name)
        };
        let mut found: Vec<_> = storage.of_class(&self.class).filter(free).collect();
        found.sort_by(|a, b| (a.size, &a.name).cmp(&(b.size, &b.name)));
        found
    }

    /// Whether a volume can be created for a node with these labels; the error tells whether only room is lacking.
    pub(crate) fn provisioned_for(&self, labels: &Labels, storage: &Storage) -> Result<(), bool> {
        let Some(Provision { topologies, tracked }) = &self.provision else { return Err(false) };
        if !topologies.is_empty() && !any_matches(topologies, labels) {
            return Err(false);
        }
        if *tracked && !storage.has_room(&self.class, self.size, labels) { Err(true) } else { Ok(()) }
    }
}

/// Whether a volume is accessible from a node with these labels.
pub(crate) fn accessible(volume: &PersistentVolume, labels: &Labels) -> bool {
    volume.affinity.as_ref().is_none_or(|terms| any_matches(terms, labels))
}
