//! Keeps track of the Pods on which waiting jobs depend.

use std::sync::Arc;

use imbl::OrdMap;

use super::Inventory;
use super::book::Held;
use super::id::NodeId;
use super::peers::{ByHolder, Found, Needing, Selection, Tracked, claims};
use crate::constraint::volumes::ClaimKey;
use crate::constraint::{Labels, Namespaces, Peer, PodSelector, PodTerm, PreferredPods, SelectorMap};
use crate::request::{Request, Shape};

/// Number of passes after which an unused selection is no longer tracked.
const KEPT: u64 = 64;

/// The selections on which a slot depends, and whether it awaits such Pods.
fn selections(shape: &Shape) -> impl Iterator<Item = (Selection, bool)> {
    let preferred = shape.preferences.iter().flat_map(|preferences| preferences.selectors());
    let preferred = preferred.map(|selector| (vec![selector.clone()], false));
    let required = shape.peer.iter().flat_map(|peer| &peer.terms);
    required
        .flat_map(|terms| {
            let affinity: Selection = terms.affinity.iter().map(|term| term.selector.clone()).collect();
            let affinity = (!affinity.is_empty()).then_some((affinity, true));
            let apart = terms.anti_affinity.iter().map(|term| (vec![term.selector.clone()], false));
            let spread = terms.spread.iter().map(|spread| (vec![spread.selector.clone()], true));
            affinity.into_iter().chain(apart).chain(spread)
        })
        .chain(preferred)
}

/// The topology keys on which a slot depends.
fn topologies(shape: &Shape) -> impl Iterator<Item = &Arc<str>> {
    let preferred = shape.preferences.iter().flat_map(|preferences| preferences.topologies());
    let required = shape.peer.iter().flat_map(|peer| &peer.terms);
    required
        .flat_map(|terms| {
            let affinity = terms.affinity.iter().map(|term| &term.topology);
            let apart = terms.anti_affinity.iter().map(|term| &term.topology);
            affinity.chain(apart).chain(terms.spread.iter().map(|spread| &spread.topology))
        })
        .chain(preferred)
}

impl Inventory {
    /// The labels of namespaces.
    pub(crate) fn namespaces(&self) -> &Namespaces {
        &self.peers.namespaces
    }

    /// Sets or, without labels, removes a namespace; returns whether that is a change.
    pub fn set_namespace(&mut self, name: &Arc<str>, labels: Option<Labels>) -> bool {
        let changed = match labels {
            Some(labels) => self.peers.namespaces.set(name.clone(), labels),
            None => self.peers.namespaces.remove(name),
        };
        if changed && self.peers.matter() {
            // Selected by other selectors from now on.
            self.peers.tracked = SelectorMap::default();
            self.graph += 1;
            self.free_anywhere();
        }
        changed
    }

    /// Tracks what these requests depend on from now on, so that lookups are fast. What is not listed for a while is
    /// dropped.
    pub(crate) fn prepare_peers<'a>(&mut self, requests: impl Iterator<Item = &'a Request>) {
        self.peers.pass += 1;
        let pass = self.peers.pass;
        let mut new: SelectorMap<Selection, Tracked> = SelectorMap::default();
        for shape in requests.flat_map(|request| &request.shapes) {
            for (selection, awaited) in selections(shape) {
                if let Some(tracked) = self.peers.tracked.get_mut(&selection) {
                    tracked.used = pass;
                    tracked.awaited |= awaited;
                    continue;
                }
                if let Some(tracked) = new.get_mut(&selection) {
                    tracked.awaited |= awaited;
                } else {
                    let tracked = Tracked { used: pass, awaited, ..Tracked::default() };
                    new.insert(Arc::new(selection), tracked);
                }
            }
            for key in topologies(shape) {
                self.prepare_topology(key);
            }
        }
        self.track(new);
        if self.peers.tracked.is_empty() {
            return;
        }
        let unused =
            |(key, tracked): (&Arc<Selection>, &Tracked)| (tracked.used + KEPT < pass).then(|| key.clone());
        let unused: Vec<_> = self.peers.tracked.iter().filter_map(unused).collect();
        for key in unused {
            self.peers.tracked.remove(&key);
        }
    }

    /// Tracks these selections from now on.
    fn track(&mut self, mut new: SelectorMap<Selection, Tracked>) {
        if new.is_empty() {
            return;
        }
        // All holders are looked at once, however many selections there are.
        let mut matches: Vec<(Arc<Selection>, Arc<str>, Found)> = Vec::new();
        for (id, holder, held) in self.held() {
            let Some(peer) = &held.hold.peer else { continue };
            let selecting = new.selecting(&peer.namespace, &peer.labels, &self.peers.namespaces);
            matches.extend(selecting.map(|key| (key.clone(), holder.clone(), Found::new(id, held, peer))));
        }
        for (key, holder, found) in matches {
            if let Some(tracked) = new.get_mut(&key) {
                tracked.found.insert(holder, found);
            }
        }
        for (key, tracked) in new.iter() {
            self.peers.tracked.insert(key.clone(), tracked.clone());
        }
    }

    pub(super) fn held(&self) -> impl Iterator<Item = (NodeId, &Arc<str>, &Held)> {
        let allocations = self.ids.values().filter_map(|id| Some((*id, self.book(*id)?)));
        allocations.flat_map(|(id, book)| book.holds.iter().map(move |(holder, held)| (id, holder, held)))
    }

    /// The Pods on nodes, or expected there, that all of these select.
    pub(crate) fn selected(&self, selection: &Selection) -> Vec<Found> {
        match self.peers.tracked.get(selection) {
            Some(tracked) => tracked.found.values().copied().collect(),
            None => self.selected_holders(selection).map(|(_, found)| found).collect(),
        }
    }

    /// Whether required anti-affinity of a Pod on a node, or of a promised one, may keep this Pod away.
    pub(crate) fn keeps_away(&self, peer: &Peer) -> bool {
        let selects = |term: &Arc<PodTerm>| peer.is_selected(&term.selector, &self.peers.namespaces);
        let promised = || self.promised().flat_map(|(_, id)| self.reserved_on(id));
        let terms = &self.peers.anti_affinity;
        terms.selecting(&peer.namespace, &peer.labels, &self.peers.namespaces).next().is_some()
            || promised()
                .filter_map(|entry| entry.peer.as_deref())
                .any(|promised| promised.anti_affinity().iter().any(selects))
    }

    /// Required anti-affinity that keeps this Pod away, with the Pods that have it.
    pub(crate) fn kept_away_by<'a>(
        &'a self,
        peer: &'a Peer,
    ) -> impl Iterator<Item = (&'a Arc<PodTerm>, Vec<Found>)> {
        let terms = &self.peers.anti_affinity;
        let selecting = terms.selecting(&peer.namespace, &peer.labels, &self.peers.namespaces);
        selecting.filter_map(|term| Some((term, terms.get(term)?.values().copied().collect())))
    }

    /// What Pods on nodes prefer about this Pod, with the Pods that prefer it.
    pub(crate) fn preferred_by<'a>(
        &'a self,
        peer: &'a Peer,
    ) -> impl Iterator<Item = (&'a Arc<PreferredPods>, impl Iterator<Item = &'a Found>)> {
        let preferring = &self.peers.preferring;
        let selecting = preferring.selecting(&peer.namespace, &peer.labels, &self.peers.namespaces);
        selecting.filter_map(|preferred| Some((preferred, preferring.get(preferred)?.values())))
    }

    /// The same with their keys; all holders are looked at.
    pub(crate) fn selected_holders<'a>(
        &'a self,
        selection: &'a Selection,
    ) -> impl Iterator<Item = (Arc<str>, Found)> + 'a {
        self.held().filter_map(|(id, holder, held)| {
            let peer = held.hold.peer.as_ref()?;
            let selects = |one: &PodSelector| peer.is_selected(one, &self.peers.namespaces);
            selection.iter().all(selects).then(|| (holder.clone(), Found::new(id, held, peer)))
        })
    }

    /// Compares what is known of selections and anti-affinity with the holders.
    pub(crate) fn check_peers(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (selection, tracked) in self.peers.tracked.iter() {
            if self.selected_holders(selection).collect::<ByHolder>() != tracked.found {
                wrong.push(format!("the Pods selected by {selection:?} are out of date"));
            }
        }
        let mut terms: OrdMap<Arc<PodTerm>, ByHolder> = OrdMap::new();
        let mut preferring: OrdMap<Arc<PreferredPods>, ByHolder> = OrdMap::new();
        let mut mounting: OrdMap<ClaimKey, ByHolder> = OrdMap::new();
        let mut needing = Needing::new();
        for (holder, id) in &self.holders {
            let Some(held) = self.book(*id).and_then(|book| book.find(holder)) else { continue };
            let Some(peer) = &held.hold.peer else { continue };
            let found = Found::new(*id, held, peer);
            for claim in claims(peer) {
                mounting.entry(claim).or_default().insert(holder.clone(), found);
            }
            if let Some(needs) = &peer.volumes {
                needing.insert(holder.clone(), (found, needs.clone()));
            }
            for term in peer.anti_affinity() {
                terms.entry(term.clone()).or_default().insert(holder.clone(), found);
            }
            for preferred in peer.preferred() {
                let holders = preferring.entry(Arc::new(preferred.clone())).or_default();
                holders.insert(holder.clone(), found);
            }
        }
        let known: OrdMap<Arc<PodTerm>, ByHolder> =
            self.peers.anti_affinity.iter().map(|(term, found)| (term.clone(), found.clone())).collect();
        if known != terms {
            wrong.push("the anti-affinity of Pods on nodes is out of date".to_owned());
        }
        let known: OrdMap<Arc<PreferredPods>, ByHolder> =
            self.peers.preferring.iter().map(|(one, found)| (one.clone(), found.clone())).collect();
        if known != preferring {
            wrong.push("the preferences of Pods on nodes are out of date".to_owned());
        }
        if self.peers.needing != needing {
            wrong.push("what the volumes of starting jobs require is out of date".to_owned());
        }
        if self.peers.mounting != mounting {
            wrong.push("the claims that Pods on nodes mount are out of date".to_owned());
        }
        wrong
    }
}
