//! The storage objects of the cluster, and the holders that mount volumes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Inventory;
use super::id::NodeId;
use super::peers::Found;
use crate::constraint::NodeFacts;
use crate::constraint::volumes::{ClaimKey, Disk, Storage, VolumeNeeds};

impl Inventory {
    /// The storage objects.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The storage objects, to be changed; [`Self::storage_changed`] tells whether that may matter to waiting jobs.
    pub fn storage_mut(&mut self) -> &mut Storage {
        &mut self.storage
    }

    /// Something changed on which waiting jobs may depend: what did not fit may fit now.
    pub fn storage_changed(&mut self) {
        self.graph += 1;
        self.free_anywhere();
        self.disturb(None);
    }

    /// The holders that mount claims.
    pub(crate) fn mounted(
        &self,
    ) -> impl Iterator<Item = (&ClaimKey, impl Iterator<Item = (&Arc<str>, &Found)>)> {
        self.peers.mounting.iter().map(|(claim, holders)| (claim, holders.iter()))
    }

    /// The holders that mount this claim.
    pub(crate) fn mounting(&self, claim: &ClaimKey) -> impl Iterator<Item = (&Arc<str>, &Found)> {
        self.peers.mounting.get(claim).into_iter().flatten()
    }

    /// The slots that are held for Pods that don't hold them themselves yet, with what their volumes require: those of
    /// jobs that start in a pass, and places that are kept.
    pub(crate) fn needing(&self) -> impl Iterator<Item = (&Found, &VolumeNeeds)> {
        self.peers.needing.values().map(|(found, needs)| (found, needs.as_ref()))
    }

    /// Disks that holders mount, by node.
    pub(crate) fn disks(&self) -> impl Iterator<Item = (NodeId, &Disk, Found)> {
        self.held().flat_map(|(id, _, held)| {
            let peer = held.hold.peer.as_deref();
            let mounts = peer.and_then(|peer| Some((peer, peer.mounts.as_deref()?)));
            let disks = mounts
                .into_iter()
                .flat_map(|(peer, mounts)| mounts.disks.iter().map(move |disk| (peer, disk)));
            disks.map(move |(peer, disk)| (id, disk, Found::new(id, held, peer)))
        })
    }

    /// What determines the eligibility of a node.
    pub(crate) fn facts_by_name(&self, node: &str) -> Option<&NodeFacts> {
        self.id(node)
            .and_then(|id| self.book(id))
            .filter(|book| book.spec.is_some())
            .map(|book| book.facts.as_ref())
    }

    /// The nodes that are in the same place as this one to a CSI driver.
    pub(crate) fn same_place(&self, driver: &str, node: &Arc<str>) -> BTreeSet<Arc<str>> {
        match self.facts_by_name(node) {
            Some(facts) => self.storage.same_place(driver, facts, self.all_facts()),
            None => BTreeSet::from([node.clone()]),
        }
    }

    /// What determines the eligibility of existing nodes.
    fn all_facts(&self) -> impl Iterator<Item = &NodeFacts> {
        self.order.iter().filter_map(|id| self.book(*id)).map(|book| book.facts.as_ref())
    }
}
