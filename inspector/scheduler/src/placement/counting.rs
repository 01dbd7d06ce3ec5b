//! Which Pods are there at the moment of a search, counted by domain for one rule or preference.

use std::sync::Arc;

use super::availability::Availability;
use super::plan::{Plan, PlannedShape};
use super::tally::Tally;
use crate::constraint::{Peer, PodSelector, TopologySpread, affinity_matches, taints_tolerated};
use crate::inventory::{Inventory, NodeId, Selection};

/// Which of the found Pods a tally counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    /// Those that are there.
    There,
    /// The same without terminating ones.
    Staying,
    /// All that may be in the way.
    InTheWay,
}

/// Counts Pods at one moment.
pub(super) struct Counting<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) availability: &'a Availability<'a>,
    /// Promised Pods with their nodes and numbers, and whether they are there at the start.
    pub(super) promised: Vec<(NodeId, &'a Peer, u32, bool)>,
}

impl<'a> Counting<'a> {
    pub(super) fn new(plan: &'a Plan<'a>, availability: &'a Availability<'a>) -> Self {
        Self { plan, availability, promised: availability.promised_peers().collect() }
    }

    pub(super) fn inventory(&self) -> &'a Inventory {
        self.plan.inventory
    }

    pub(super) fn selects(&self, selection: &Selection, peer: Option<&Peer>) -> bool {
        let namespaces = self.inventory().namespaces();
        peer.is_some_and(|peer| selection.iter().all(|one| peer.is_selected(one, namespaces)))
    }

    /// A tally of the Pods that are selected, and of the request's own.
    pub(super) fn tally(
        &self,
        selection: &Selection,
        key: &Arc<str>,
        counts: Counts,
        included: Option<Vec<NodeId>>,
    ) -> Tally {
        let adds = self.plan.shapes.iter().map(|shape| u32::from(self.selects(selection, shape.peer)));
        let mut tally = Tally::new(self.inventory().topology(key), adds.collect());
        if let Some(nodes) = included {
            tally.limit_to(nodes.into_iter());
        }
        for found in self.inventory().selected(selection) {
            let (there, in_the_way) = self.availability.counts(&found);
            let counted = match counts {
                Counts::There => there,
                Counts::Staying => there && !found.deleting,
                Counts::InTheWay => in_the_way,
            };
            if counted {
                tally.add(found.node, 1);
            }
        }
        for (id, peer, count, there) in &self.promised {
            if (*there || counts == Counts::InTheWay) && self.selects(selection, Some(peer)) {
                tally.add(*id, *count);
            }
        }
        tally
    }

    /// A tally for one of a shape's spread constraints, and how many Pods a slot of the shape adds to it.
    pub(super) fn spread(
        &self,
        spread: &TopologySpread,
        all: &[TopologySpread],
        shape: &PlannedShape<'_>,
    ) -> (Tally, u32) {
        let topologies: Vec<_> = all.iter().map(|one| self.inventory().topology(&one.topology)).collect();
        let counts = |id: &NodeId| {
            let facts = self.inventory().book(*id).map(|book| &book.facts);
            topologies.iter().all(|topology| topology.of(*id).is_some())
                && facts.is_some_and(|facts| {
                    (!spread.honor_affinity || affinity_matches(shape.constraint, facts))
                        && (!spread.honor_taints || taints_tolerated(shape.constraint, facts))
                })
        };
        let included: Vec<NodeId> = self.inventory().order().iter().copied().filter(counts).collect();
        // kube-scheduler counts no Pods for a selector without requirements.
        let selection = if spread.selector.selects_all() {
            vec![PodSelector::default()]
        } else {
            vec![spread.selector.clone()]
        };
        let tally = self.tally(&selection, &spread.topology, Counts::Staying, Some(included));
        let own = u32::from(self.selects(&vec![spread.selector.clone()], shape.peer));
        (tally, own)
    }
}
