//! The book of one node: what it offers, who holds what, and the sums.
//!
//! Sums are `u128`, so that no number of holders can overflow them.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use super::columns::Numbers;
use super::hold::{Allocation, AllocationKind};
use super::id::{KindId, Quantities};
use super::spec::NodeSpec;
use super::timeline::Timeline;
use crate::constraint::{HostPort, NodeFacts};

/// One holder's share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) hold: Allocation,
    pub(crate) needs: Quantities,
}

/// Sums over the holders of one node and resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// By everybody, whatever the kind.
    pub(crate) held: u128,
    /// Part of it that others bound.
    pub(crate) foreign: u128,
    /// Part of it that is only nominated.
    pub(crate) nominated: u128,
    /// Part of it that is kept for members that were lost.
    pub(crate) kept: u128,
    /// Part of it without a planned end.
    pub(crate) endless: u128,
    /// Part of it that never leaves the node.
    pub(crate) permanent: u128,
}

/// What a node offers of one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) capacity: u64,
    pub(crate) allocatable: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct NodeAllocations {
    pub(crate) name: Arc<str>,
    /// The node as it was last told; none while only holders name it.
    pub(crate) spec: Option<Arc<NodeSpec>>,
    pub(crate) facts: Arc<NodeFacts>,
    offers: Vec<(KindId, Offer)>,
    /// By holder.
    pub(crate) holds: Vec<(Arc<str>, Held)>,
    sums: Vec<(KindId, Sums)>,
    /// Holders that have host ports.
    port_holders: u32,
    /// Made when somebody asks.
    timeline: OnceLock<Arc<Timeline>>,
}

fn lookup<T: Copy + Default>(pairs: &[(KindId, T)], kind: KindId) -> T {
    pairs.binary_search_by_key(&kind, |(k, _)| *k).map_or_else(|_| T::default(), |at| pairs[at].1)
}

fn slot<T: Default>(pairs: &mut Vec<(KindId, T)>, kind: KindId) -> &mut T {
    let at = pairs.binary_search_by_key(&kind, |(k, _)| *k).unwrap_or_else(|at| {
        pairs.insert(at, (kind, T::default()));
        at
    });
    &mut pairs[at].1
}

impl NodeAllocations {
    pub(super) fn new(name: Arc<str>) -> Self {
        Self {
            name,
            spec: None,
            facts: Arc::default(),
            offers: Vec::new(),
            holds: Vec::new(),
            sums: Vec::new(),
            port_holders: 0,
            timeline: OnceLock::new(),
        }
    }

    /// Puts the node's description in; `kinds` are the ids of its capacity and allocatable.
    pub(super) fn describe(
        &mut self,
        spec: Option<Arc<NodeSpec>>,
        offers: Vec<(KindId, Offer)>,
        startup_taints: &Arc<[Arc<str>]>,
    ) {
        self.timeline.take();
        self.facts = spec.as_ref().map_or_else(Arc::default, |spec| Arc::new(spec.facts(startup_taints)));
        self.spec = spec;
        self.offers = offers;
        self.offers.sort_unstable_by_key(|(kind, _)| *kind);
    }

    /// Every resource that is offered or held here.
    pub(crate) fn kinds(&self) -> BTreeSet<KindId> {
        self.offers.iter().map(|(kind, _)| *kind).chain(self.sums.iter().map(|(kind, _)| *kind)).collect()
    }

    pub(crate) fn offer(&self, kind: KindId) -> Offer {
        lookup(&self.offers, kind)
    }

    pub(crate) fn sums(&self, kind: KindId) -> Sums {
        lookup(&self.sums, kind)
    }

    /// What is left of the resource now; below 0 for a deficit.
    pub(crate) fn balance(&self, kind: KindId) -> i128 {
        i128::from(self.offer(kind).allocatable) - signed(self.sums(kind).held)
    }

    /// What Pods may have of the resource when all that can leave is gone.
    pub(crate) fn when_empty(&self, kind: KindId) -> u64 {
        less(self.offer(kind).allocatable, self.sums(kind).permanent)
    }

    pub(super) fn numbers(&self, kind: KindId) -> Numbers {
        if self.spec.is_none() {
            return Numbers::default();
        }
        let (offer, sums) = (self.offer(kind), self.sums(kind));
        Numbers {
            free: less(offer.allocatable, sums.held),
            late: less(offer.allocatable, sums.endless),
            most: less(offer.capacity.max(offer.allocatable), sums.permanent),
        }
    }

    pub(crate) fn find(&self, holder: &str) -> Option<&Held> {
        let at = self.holds.binary_search_by(|(name, _)| name.as_ref().cmp(holder)).ok()?;
        Some(&self.holds[at].1)
    }

    /// Puts in the share of a holder that has none here.
    pub(super) fn insert(&mut self, holder: Arc<str>, held: Held) {
        self.count(&held, true);
        let at = self.holds.partition_point(|(name, _)| *name < holder);
        self.holds.insert(at, (holder, held));
    }

    pub(super) fn remove(&mut self, holder: &str) -> Option<Held> {
        let at = self.holds.binary_search_by(|(name, _)| name.as_ref().cmp(holder)).ok()?;
        let (_, held) = self.holds.remove(at);
        self.count(&held, false);
        self.forget_empty();
        Some(held)
    }

    /// What is available when, by the planned ends of the holders.
    pub(crate) fn timeline(&self) -> &Timeline {
        self.timeline.get_or_init(|| {
            let offers = self.kinds().into_iter().map(|kind| (kind, self.offer(kind).allocatable));
            let holders = self.holds.iter().map(|(_, held)| (held.hold.until, &held.needs));
            Arc::new(Timeline::new(offers, holders))
        })
    }

    fn count(&mut self, held: &Held, add: bool) {
        self.timeline.take();
        let share = &held.hold;
        for (kind, quantity) in held.needs.iter() {
            let sums = slot(&mut self.sums, *kind);
            let totals = [
                (&mut sums.held, true),
                (&mut sums.foreign, share.kind == AllocationKind::Foreign),
                (&mut sums.nominated, share.kind == AllocationKind::Nominated),
                (&mut sums.kept, share.kind == AllocationKind::Kept),
                (&mut sums.endless, share.until.is_none()),
                (&mut sums.permanent, share.permanent),
            ];
            for (total, _) in totals.into_iter().filter(|(_, applies)| *applies) {
                // Fewer than 2^64 holders of at most 2^64 each.
                *total = if add { *total + u128::from(*quantity) } else { *total - u128::from(*quantity) };
            }
        }
        if !share.ports.is_empty() {
            self.port_holders = if add { self.port_holders + 1 } else { self.port_holders - 1 };
        }
    }

    fn forget_empty(&mut self) {
        self.sums.retain(|(_, sums)| *sums != Sums::default());
    }

    /// Whether a holder that `counts` has a port that clashes with one of these.
    pub(crate) fn clashes(&self, ports: &[HostPort], counts: impl Fn(&Allocation) -> bool) -> bool {
        self.port_holders > 0
            && !ports.is_empty()
            && self
                .holds
                .iter()
                .filter(|(_, held)| !held.hold.ports.is_empty() && counts(&held.hold))
                .any(|(_, held)| held.hold.ports.iter().any(|a| ports.iter().any(|b| a.clashes(b))))
    }
}

fn signed(sum: u128) -> i128 {
    i128::try_from(sum).unwrap_or(i128::MAX)
}

fn less(quantity: u64, sum: u128) -> u64 {
    // What remains is at most the quantity.
    u64::try_from(u128::from(quantity).saturating_sub(sum)).unwrap_or(quantity)
}
