//! What a search considers available on a node: now, during a period, after all planned ends, or at most.

use super::plan::PlannedShape;
use crate::constraint::Peer;
use crate::inventory::{Found, Inventory, KindId, NodeId, planned_end};

/// A time after all planned ends.
const FAR: i64 = i64::MAX - 1;

#[derive(Clone, Copy, Debug)]
enum Moment {
    /// From now to an end, respecting reservations.
    Now { end: i64 },
    /// From now on, ignoring reservations.
    Unreserved,
    /// From a later start to an end, respecting reservations.
    Later { start: i64, end: i64 },
    /// After all planned ends.
    Late,
    /// The same, ignoring reservations.
    LateUnreserved,
    /// After everything that can end has ended, including temporary conditions.
    Most,
}

/// Provides availability and eligibility.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Availability<'a> {
    pub(super) inventory: &'a Inventory,
    now: i64,
    moment: Moment,
    /// As if temporarily unavailable nodes were available.
    recovered: bool,
}

impl<'a> Availability<'a> {
    /// From `start` (not before `now`) up to `end`.
    pub(crate) fn window(inventory: &'a Inventory, now: i64, start: i64, end: i64) -> Self {
        let moment = if start <= now { Moment::Now { end } } else { Moment::Later { start, end } };
        Self { inventory, now, moment, recovered: false }
    }

    /// The same, as if temporarily unavailable nodes were available.
    pub(crate) fn recovered(self) -> Self {
        Self { recovered: true, ..self }
    }

    /// Now, ignoring reservations.
    pub(crate) fn unreserved(inventory: &'a Inventory, now: i64) -> Self {
        Self { inventory, now, moment: Moment::Unreserved, recovered: false }
    }

    /// After all planned ends.
    pub(crate) fn late(inventory: &'a Inventory, now: i64) -> Self {
        Self { inventory, now, moment: Moment::Late, recovered: false }
    }

    /// After all planned ends, ignoring reservations: the upper bound for any planned start.
    pub(crate) fn late_unreserved(inventory: &'a Inventory, now: i64) -> Self {
        Self { inventory, now, moment: Moment::LateUnreserved, recovered: false }
    }

    /// The maximum that there can ever be.
    pub(crate) fn most(inventory: &'a Inventory) -> Self {
        Self { inventory, now: 0, moment: Moment::Most, recovered: false }
    }

    /// It is about a start now that has to leave nodes to those who are promised them.
    pub(super) fn minds_promises_now(&self) -> bool {
        matches!(self.moment, Moment::Now { .. })
    }

    /// The moment from which it is looked ahead.
    pub(super) fn now(&self) -> i64 {
        self.now
    }

    /// When the start is planned, if it is not now.
    pub(super) fn planned_start(&self) -> Option<i64> {
        match self.moment {
            Moment::Later { start, .. } => Some(start),
            _ => None,
        }
    }

    /// Whether it is about a start, now or planned, whose nodes matter.
    pub(super) fn is_start(&self) -> bool {
        matches!(self.moment, Moment::Now { .. } | Moment::Later { .. })
    }

    /// Whether it is an upper bound of all that can ever be.
    pub(super) fn is_upper_bound(&self) -> bool {
        matches!(self.moment, Moment::Most)
    }

    /// Whether a Pod is there at the start, and whether its place is not free of it.
    pub(super) fn counts(&self, found: &Found) -> (bool, bool) {
        let stays = match self.moment {
            Moment::Now { .. } | Moment::Unreserved => true,
            Moment::Later { start, .. } => planned_end(found.until, self.now) > start,
            Moment::Late | Moment::LateUnreserved => found.until.is_none(),
            // Even those that never leave a node may be replaced by others.
            Moment::Most => false,
        };
        (stays && found.there, stays)
    }

    /// Promised Pods that are in the way of a start, with their nodes and numbers, and whether they are there when it
    /// begins.
    pub(super) fn promised_peers(&self) -> impl Iterator<Item = (NodeId, &'a Peer, u32, bool)> {
        let window = match self.moment {
            Moment::Now { end } => Some((self.now, end, false)),
            Moment::Later { start, end } => Some((start, end, true)),
            Moment::Late => Some((FAR, i64::MAX, true)),
            Moment::Unreserved | Moment::LateUnreserved | Moment::Most => None,
        };
        let inventory = self.inventory;
        window.into_iter().flat_map(move |(start, end, planned)| {
            let entries = inventory
                .promised()
                .flat_map(move |(_, id)| inventory.reserved_on(id).iter().map(move |entry| (id, entry)));
            entries.filter(move |(_, entry)| entry.start < end && start < entry.end).filter_map(
                move |(id, entry)| {
                    let peer = entry.peer.as_deref()?;
                    Some((id, peer, entry.count, planned && entry.start <= start))
                },
            )
        })
    }

    /// All promised Pods, with their nodes and numbers, whenever they are planned to start; none if reservations are
    /// ignored. What they are given stays theirs after their end.
    pub(super) fn all_promised_peers(&self) -> impl Iterator<Item = (NodeId, &'a Peer, u32)> {
        let minds = matches!(self.moment, Moment::Now { .. } | Moment::Later { .. } | Moment::Late);
        let inventory = self.inventory;
        let promised = minds.then(|| inventory.promised()).into_iter().flatten();
        promised.flat_map(move |(_, id)| {
            let entries = inventory.reserved_on(id).iter();
            entries.filter_map(move |entry| Some((id, entry.peer.as_deref()?, entry.count)))
        })
    }

    pub(super) fn admits(&self, shape: &PlannedShape<'_>, id: NodeId) -> bool {
        match self.moment {
            Moment::Most => shape.eligibility.lasting(id),
            _ if self.recovered => shape.eligibility.lasting(id),
            _ => shape.eligibility.now(id),
        }
    }

    /// The available amount of each kind, into `out`.
    pub(crate) fn available(&self, id: NodeId, kinds: &[KindId], out: &mut Vec<u64>) {
        if self.at_most(id, kinds, out) {
            return;
        }
        let window = match self.moment {
            Moment::Now { end } => (self.now, end),
            Moment::Later { start, end } => (start, end),
            _ => (FAR, i64::MAX),
        };
        self.inventory.least(id, self.now, window, kinds, out);
    }

    /// An upper bound of the available amount of each kind, into `out`, without reading timelines; returns whether it
    /// is exact.
    pub(super) fn at_most(&self, id: NodeId, kinds: &[KindId], out: &mut Vec<u64>) -> bool {
        let columns = self.inventory.columns();
        out.clear();
        match self.moment {
            Moment::Now { .. } | Moment::Unreserved => {
                out.extend(kinds.iter().map(|kind| columns.free(id, *kind)));
            }
            Moment::Later { .. } | Moment::Late | Moment::LateUnreserved => {
                out.extend(kinds.iter().map(|kind| columns.late(id, *kind)));
            }
            Moment::Most => out.extend(kinds.iter().map(|kind| columns.most(id, *kind))),
        }
        match self.moment {
            Moment::Now { .. } | Moment::Late => self.inventory.reserved_on(id).is_empty(),
            Moment::Later { .. } => false,
            Moment::Unreserved | Moment::LateUnreserved | Moment::Most => true,
        }
    }

    /// Whether the shape's ports are in use there.
    pub(super) fn ports_taken(&self, shape: &PlannedShape<'_>, id: NodeId) -> bool {
        let held = |counts: fn(&crate::inventory::Allocation) -> bool| {
            self.inventory.book(id).is_some_and(|book| book.clashes(shape.ports, counts))
        };
        match self.moment {
            _ if shape.ports.is_empty() => false,
            Moment::Now { end } => self.inventory.ports_taken(id, self.now, (self.now, end), shape.ports),
            Moment::Later { start, end } => {
                self.inventory.ports_taken(id, self.now, (start, end), shape.ports)
            }
            Moment::Late => self.inventory.ports_taken(id, self.now, (FAR, i64::MAX), shape.ports),
            Moment::Unreserved => held(|_| true),
            Moment::LateUnreserved => held(|hold| hold.until.is_none()),
            Moment::Most => held(|hold| hold.permanent),
        }
    }

    /// How many slots of one shape fit on a node with this available, at most the shape's count.
    pub(crate) fn capacity(&self, shape: &PlannedShape<'_>, id: NodeId, available: &[u64]) -> u32 {
        if shape.impossible || !self.admits(shape, id) {
            return 0;
        }
        let most = shape.fits(available, shape.count);
        if most == 0 || self.ports_taken(shape, id) {
            return 0;
        }
        if shape.ports.is_empty() { most } else { most.min(1) }
    }
}
