//! Holders by node, since when, and until when they are planned to stay.

use std::sync::Arc;

use super::Inventory;
use super::book::{Held, follow};
use super::hold::same_share;
use super::id::{NodeId, Quantities};
use crate::constraint::{NodeConstraint, eligible};
use crate::inventory::{Allocation, AllocationKind, assumed_end};
use crate::request::Shape;

impl Inventory {
    /// Records that something was freed on a node, or that the node has changed.
    pub(super) fn free_on(&mut self, id: NodeId) {
        self.freed += 1;
        self.freed_on.note(self.freed, id);
    }

    /// Records that there may be more room on any node.
    pub(super) fn free_anywhere(&mut self) {
        self.freed += 1;
        self.freed_on.note_all(self.freed);
    }

    /// The nodes on which there may be more room than as of a generation, with repetitions: all others have at most what
    /// they had. None if that was too long ago.
    pub(crate) fn freed_since(&self, generation: u64) -> Option<impl Iterator<Item = NodeId>> {
        self.freed_on.after(generation)
    }

    /// Extends the assumed ends that have passed; returns whether there were any. This frees nothing, so what did not
    /// fit still does not fit.
    pub fn prolong(&mut self, now: i64) -> bool {
        let mut any = false;
        while let Some((until, id, holder)) =
            self.assumed.get_min().cloned().filter(|(until, ..)| *until <= now)
        {
            let Some(mut held) = self.take_out(&holder, id) else { break };
            let length = until.saturating_sub(held.hold.from);
            held.hold.until = Some(assumed_end(held.hold.from, length, now));
            self.put_in(holder, id, held);
            self.intrude(id);
            any = true;
        }
        any
    }

    /// When the first of the assumed ends is reached (epoch seconds).
    pub fn next_assumed_end(&self) -> Option<i64> {
        self.assumed.get_min().map(|(until, ..)| *until)
    }

    /// Whether there are assumed ends.
    pub(crate) fn assumes(&self) -> bool {
        !self.assumed.is_empty()
    }

    /// Sets a holder's share of a node, which need not exist (yet). Its previous share on any node is released;
    /// setting the same share again changes nothing.
    pub fn hold(&mut self, holder: Arc<str>, node: &str, hold: Allocation) {
        let id = self.open(&Arc::from(node));
        let before = self.holders.get(&holder).copied();
        let mut arrived = false;
        // Whatever we start was placed with regard to reservations.
        let mut foreseen = before.is_none() && hold.kind == AllocationKind::Assumed;
        if let Some(old) = before.and_then(|at| self.book(at)).and_then(|book| book.find(&holder)) {
            if before == Some(id) && old.hold == hold {
                return;
            }
            // If one of our members is observed where it was placed, nothing is freed.
            arrived = before == Some(id)
                && same_share(&old.hold, &hold)
                && (old.hold.peer == hold.peer || !self.peers.matter());
            if !arrived {
                if let Some(at) = before {
                    self.free_on(at);
                }
                self.disturb(None);
            }
            foreseen |= arrived;
        }
        if !arrived && hold.peer.as_ref().is_some_and(|peer| self.peers.awaited(peer)) {
            // There is no more room for it, but who waits for this Pod is let in by the rules.
            self.freed += 1;
        }
        if let Some(at) = before {
            self.take_out(&holder, at);
        }
        if !foreseen {
            self.intrude(id);
        }
        let needs: Quantities = {
            let mut needs: Vec<_> = hold
                .needs
                .iter()
                .filter(|(_, quantity)| *quantity > 0)
                .map(|(resource, quantity)| (self.columns.intern(resource), quantity))
                .collect();
            needs.sort_unstable_by_key(|(kind, _)| *kind);
            needs.into()
        };
        self.put_in(holder, id, Held { hold, needs });
        if let Some(at) = before {
            self.close_unless_used(at);
        }
    }

    /// Releases the holder's share; returns whether it had one.
    pub fn release(&mut self, holder: &str) -> bool {
        let Some(id) = self.holders.get(holder).copied() else { return false };
        if let Some(held) = self.take_out(holder, id) {
            self.disturb(held.hold.until);
        }
        self.close_unless_used(id);
        self.free_on(id);
        true
    }

    /// Releases the share of a holder that will hold the same under another name.
    pub(crate) fn withdraw(&mut self, holder: &str) {
        if let Some(id) = self.holders.get(holder).copied() {
            // If nobody holds the same, that is known as soon as anything is freed.
            self.freed_on.note(self.freed + 1, id);
            self.take_out(holder, id);
            self.close_unless_used(id);
        }
    }

    /// Records that something is held on a node in spite of reservations there.
    pub(super) fn intrude(&mut self, id: NodeId) {
        if !self.reserved_on(id).is_empty() {
            self.disturb(None);
            self.totals.overlaid = true;
        }
    }

    /// Whether one slot of this shape would fit on the node now, ignoring reservations.
    pub fn fits(&self, node: &str, shape: &Shape) -> bool {
        let Some(book) = self.id(node).and_then(|id| self.book(id)).filter(|book| book.spec.is_some()) else {
            return false;
        };
        let room = |(resource, quantity): (&Arc<str>, u64)| {
            quantity == 0
                || self.columns.kind(resource).is_some_and(|kind| book.balance(kind) >= i128::from(quantity))
        };
        eligible(&shape.constraint, &book.facts).is_ok()
            && shape.needs.iter().all(room)
            && !book.clashes(&shape.ports, |_| true)
    }

    /// Whether the node exists and is eligible for Pods with this constraint now, regardless of free resources.
    pub fn takes(&self, node: &str, constraint: &NodeConstraint) -> bool {
        let book = self.id(node).and_then(|id| self.book(id)).filter(|book| book.spec.is_some());
        book.is_some_and(|book| eligible(constraint, &book.facts).is_ok())
    }

    /// Whether a slot already held on the node may stay there: the node is eligible, and has no deficit of resources
    /// that the slot needs.
    pub fn still_fits(&self, node: &str, shape: &Shape) -> bool {
        let book = self.id(node).and_then(|id| self.book(id)).filter(|book| book.spec.is_some());
        book.is_some_and(|book| {
            let mut kinds = shape.needs.iter().filter_map(|(resource, _)| self.columns.kind(resource));
            eligible(&shape.constraint, &book.facts).is_ok() && kinds.all(|kind| book.balance(kind) >= 0)
        })
    }

    /// Changes the planned end of the holder's share; returns whether it has one.
    pub fn retime(&mut self, holder: &str, until: Option<i64>) -> bool {
        self.retime_as(holder, until, false)
    }

    /// The same with a possibly assumed end.
    pub(crate) fn retime_as(&mut self, holder: &str, until: Option<i64>, assumed: bool) -> bool {
        let Some((node, mut hold)) = self.holding(holder) else { return false };
        if (hold.until, hold.end_assumed) != (until, assumed) {
            (hold.until, hold.end_assumed) = (until, assumed);
            self.hold(Arc::from(holder), &node, hold);
        }
        true
    }

    /// The holder's node and share.
    pub fn holding(&self, holder: &str) -> Option<(Arc<str>, Allocation)> {
        let book = self.book(*self.holders.get(holder)?)?;
        Some((book.name.clone(), book.find(holder)?.hold.clone()))
    }

    /// Every holder with its node and share, ordered by holder key.
    pub fn holdings(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>, &Allocation)> {
        self.holders.iter().filter_map(|(holder, id)| {
            let book = self.book(*id)?;
            Some((holder, &book.name, &book.find(holder)?.hold))
        })
    }

    fn put_in(&mut self, holder: Arc<str>, id: NodeId, held: Held) {
        if let Some(until) = held.hold.until.filter(|_| held.hold.end_assumed) {
            self.assumed.insert((until, id, holder.clone()));
        }
        self.holders.insert(holder.clone(), id);
        self.peers.add(&holder, id, &held);
        self.totals.hold(held.hold.until, &held.needs, 1);
        let touched = held.needs.clone();
        self.follow(id, &held, true);
        if let Some(book) = self.book_kept(id) {
            book.insert(holder, held);
        }
        self.refresh_all(id, &touched);
    }

    fn take_out(&mut self, holder: &str, id: NodeId) -> Option<Held> {
        self.holders.remove(holder);
        let held = self.book_kept(id).and_then(|book| book.remove(holder))?;
        self.follow(id, &held, false);
        self.peers.remove(holder, &held);
        if let Some(until) = held.hold.until.filter(|_| held.hold.end_assumed) {
            self.assumed.remove(&(until, id, Arc::from(holder)));
        }
        self.totals.hold(held.hold.until, &held.needs, -1);
        self.refresh_all(id, &held.needs);
        Some(held)
    }

    /// Adds a holder to the timeline of a node with reservations, or removes it.
    fn follow(&mut self, id: NodeId, held: &Held, add: bool) {
        if self.reserved.get(id).is_some_and(Option::is_some)
            && let Some(reserved) = self.reserved.slot(id)
        {
            let reserved = Arc::make_mut(reserved);
            if let Some(timeline) = reserved.timeline.get_mut()
                && !follow(timeline, held, add)
            {
                reserved.timeline.take();
            }
        }
    }

    fn refresh_all(&mut self, id: NodeId, needs: &Quantities) {
        for (kind, _) in needs.iter() {
            self.refresh(id, *kind);
        }
    }
}
