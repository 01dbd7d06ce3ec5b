//! The entry of one node: its resources, holders and totals.
//!
//! Totals are `u128`, so that no number of holders can overflow them.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use super::columns::Numbers;
use super::hold::{Allocation, AllocationKind};
use super::id::{KindId, Quantities};
use super::spec::NodeSpec;
use super::timeline::Timeline;
use crate::constraint::{HostPort, NodeFacts};

/// The share of one holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) hold: Allocation,
    pub(crate) needs: Quantities,
}

/// Totals over the holders of one node and resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Of all holders of any kind.
    pub(crate) held: u128,
    /// Of Pods bound by other schedulers.
    pub(crate) foreign: u128,
    /// Of nominated Pods.
    pub(crate) nominated: u128,
    /// Reserved for replacements of lost members.
    pub(crate) kept: u128,
    /// Without a planned end.
    pub(crate) endless: u128,
    /// Of holders that never leave the node.
    pub(crate) permanent: u128,
}

/// A node's amounts of one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) capacity: u64,
    pub(crate) allocatable: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct NodeAllocations {
    pub(crate) name: Arc<str>,
    /// The latest spec of the node; none if it is only referenced by holders.
    pub(crate) spec: Option<Arc<NodeSpec>>,
    pub(crate) facts: Arc<NodeFacts>,
    offers: Vec<(KindId, Offer)>,
    /// By holder.
    pub(crate) holds: Vec<(Arc<str>, Held)>,
    sums: Vec<(KindId, Sums)>,
    /// Number of holders with host ports.
    port_holders: u32,
    /// Created on first use.
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

    /// Sets the spec of the node; `kinds` are the IDs of its capacity and allocatable.
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

    /// Every resource that the node has or that is held on it.
    pub(crate) fn kinds(&self) -> BTreeSet<KindId> {
        self.offers.iter().map(|(kind, _)| *kind).chain(self.sums.iter().map(|(kind, _)| *kind)).collect()
    }

    pub(crate) fn offer(&self, kind: KindId) -> Offer {
        lookup(&self.offers, kind)
    }

    pub(crate) fn sums(&self, kind: KindId) -> Sums {
        lookup(&self.sums, kind)
    }

    /// The remaining amount of the resource; negative for a deficit.
    pub(crate) fn balance(&self, kind: KindId) -> i128 {
        i128::from(self.offer(kind).allocatable) - signed(self.sums(kind).held)
    }

    /// The amount available to Pods when all holders that can leave have left.
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

    /// Inserts the share of a holder that has none here.
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

    /// Availability over time, according to the planned ends of the holders.
    pub(crate) fn timeline(&self) -> &Timeline {
        self.timeline.get_or_init(|| {
            let offers = self.kinds().into_iter().map(|kind| (kind, self.offer(kind).allocatable));
            let holders = self.holds.iter().map(|(_, held)| (held.hold.until, &held.needs));
            Arc::new(Timeline::new(offers, holders))
        })
    }

    fn count(&mut self, held: &Held, add: bool) {
        if let Some(timeline) = self.timeline.get_mut()
            && !follow(timeline, held, add)
        {
            self.timeline.take();
        }
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

    /// Whether a holder that `counts` has a port that conflicts with one of these.
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

/// Adds a holder to a timeline, or removes it; false if the timeline has to be made anew.
pub(super) fn follow(timeline: &mut Arc<Timeline>, held: &Held, add: bool) -> bool {
    if !timeline.covers(&held.needs) {
        return false;
    }
    let timeline = Arc::make_mut(timeline);
    if add {
        timeline.hold(held.hold.until, &held.needs);
        return true;
    }
    timeline.release(held.hold.until, &held.needs)
}

fn signed(sum: u128) -> i128 {
    i128::try_from(sum).unwrap_or(i128::MAX)
}

fn less(quantity: u64, sum: u128) -> u64 {
    // The remainder is at most the amount.
    u64::try_from(u128::from(quantity).saturating_sub(sum)).unwrap_or(quantity)
}
