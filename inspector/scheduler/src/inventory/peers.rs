//! The Pods that hold something, as far as others have constraints on them: where the Pods are that a selector selects,
//! and where required anti-affinity keeps others away.

use std::sync::Arc;

use imbl::OrdMap;

use super::book::Held;
use super::hold::AllocationKind;
use super::id::NodeId;
use crate::constraint::volumes::{ClaimKey, VolumeNeeds};
use crate::constraint::{Namespaces, Peer, PodSelector, PodTerm, PreferredPods, SelectorMap};

/// Selectors, all of which have to select a Pod.
pub(crate) type Selection = Vec<PodSelector>;

/// A Pod that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) node: NodeId,
    /// Planned end, epoch seconds.
    pub(crate) until: Option<i64>,
    /// It is on the node, or on its way there: neither nominated nor only expected.
    pub(crate) there: bool,
    /// It is terminating.
    pub(crate) deleting: bool,
}

impl Found {
    pub(super) fn new(node: NodeId, held: &Held, peer: &Peer) -> Self {
        let hold = &held.hold;
        Self {
            node,
            until: hold.until,
            there: !matches!(hold.kind, AllocationKind::Nominated | AllocationKind::Kept),
            deleting: peer.deleting,
        }
    }
}

/// Pods by holder.
pub(super) type ByHolder = OrdMap<Arc<str>, Found>;

/// A selection of waiting jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct Tracked {
    /// The last pass that used it.
    pub(super) used: u64,
    /// Further Pods may allow a job to start.
    pub(super) awaited: bool,
    pub(super) found: ByHolder,
}

/// What the volumes of holders require.
pub(super) type Needing = OrdMap<Arc<str>, (Found, Arc<VolumeNeeds>)>;

/// The claims that a holder mounts.
pub(super) fn claims(peer: &Peer) -> impl Iterator<Item = ClaimKey> + '_ {
    let mounts = peer.mounts.iter().flat_map(|mounts| &mounts.claims);
    mounts.map(|claim| (peer.namespace.clone(), claim.name.clone()))
}

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct Peers {
    pub(super) namespaces: Namespaces,
    /// Required anti-affinity of holders.
    pub(super) anti_affinity: SelectorMap<PodTerm, ByHolder>,
    /// Preferred affinity and anti-affinity of holders.
    pub(super) preferring: SelectorMap<PreferredPods, ByHolder>,
    pub(super) tracked: SelectorMap<Selection, Tracked>,
    /// Holders by the claims that they mount.
    pub(super) mounting: OrdMap<ClaimKey, ByHolder>,
    /// Holders that are slots of a request, with what their volumes require.
    pub(super) needing: Needing,
    pub(super) pass: u64,
}

impl Peers {
    /// Whether any constraint depends on the holders.
    pub(super) fn matter(&self) -> bool {
        !self.anti_affinity.is_empty() || !self.tracked.is_empty()
    }

    /// Whether a waiting job may be allowed to start because of this Pod.
    pub(super) fn awaited(&self, peer: &Peer) -> bool {
        let mut keys = self.tracked.selecting(&peer.namespace, &peer.labels, &self.namespaces);
        keys.any(|key| self.tracked.get(key).is_some_and(|tracked| tracked.awaited))
    }

    pub(super) fn add(&mut self, holder: &Arc<str>, node: NodeId, held: &Held) {
        let Some(peer) = &held.hold.peer else { return };
        let found = Found::new(node, held, peer);
        for claim in claims(peer) {
            self.mounting.entry(claim).or_default().insert(holder.clone(), found);
        }
        if let Some(needs) = &peer.volumes {
            self.needing.insert(holder.clone(), (found, needs.clone()));
        }
        for key in self.tracking(peer) {
            if let Some(tracked) = self.tracked.get_mut(&key) {
                tracked.found.insert(holder.clone(), found);
            }
        }
        for term in peer.anti_affinity() {
            match self.anti_affinity.get_mut(term) {
                Some(known) => drop(known.insert(holder.clone(), found)),
                None => self.anti_affinity.insert(term.clone(), ByHolder::unit(holder.clone(), found)),
            }
        }
        for preferred in peer.preferred() {
            if let Some(known) = self.preferring.get_mut(preferred) {
                known.insert(holder.clone(), found);
            } else {
                let only = ByHolder::unit(holder.clone(), found);
                self.preferring.insert(Arc::new(preferred.clone()), only);
            }
        }
    }

    pub(super) fn remove(&mut self, holder: &str, held: &Held) {
        let Some(peer) = &held.hold.peer else { return };
        for claim in claims(peer) {
            if let Some(known) = self.mounting.get_mut(&claim) {
                known.remove(holder);
                if known.is_empty() {
                    self.mounting.remove(&claim);
                }
            }
        }
        if peer.volumes.is_some() {
            self.needing.remove(holder);
        }
        for key in self.tracking(peer) {
            if let Some(tracked) = self.tracked.get_mut(&key) {
                tracked.found.remove(holder);
            }
        }
        for term in peer.anti_affinity() {
            if let Some(known) = self.anti_affinity.get_mut(term) {
                known.remove(holder);
                if known.is_empty() {
                    self.anti_affinity.remove(term);
                }
            }
        }
        for preferred in peer.preferred() {
            if let Some(known) = self.preferring.get_mut(preferred) {
                known.remove(holder);
                if known.is_empty() {
                    self.preferring.remove(preferred);
                }
            }
        }
    }

    fn tracking(&self, peer: &Peer) -> Vec<Arc<Selection>> {
        if self.tracked.is_empty() {
            return Vec::new();
        }
        self.tracked.selecting(&peer.namespace, &peer.labels, &self.namespaces).cloned().collect()
    }
}
