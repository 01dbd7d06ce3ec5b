//! Planned availability of the whole cluster over time, kept up to date with every holder and reservation.
//!
//! Slots don't fit into more than there is of all nodes together, so these totals tell, without looking at any node, that
//! a request does not fit before a time. That it then does is only certain if a node has nothing but equal slots.

use smallvec::SmallVec;

use super::Inventory;
use super::id::{KindId, Quantities};
use super::reservation::NodeReservation;

/// Changes of the available amounts at some time, by kind.
type Changes = SmallVec<[(KindId, i128); 4]>;

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    /// Allocatable minus everything held, by kind; negative for a deficit.
    free: imbl::OrdMap<KindId, i128>,
    /// What holders give back at their planned ends.
    ends: imbl::OrdMap<i64, Changes>,
    /// What reservations take at their starts and give back at their ends.
    promised: imbl::OrdMap<i64, Changes>,
    /// Something is held that was promised: some nodes have less than nothing at some time.
    pub(super) overlaid: bool,
}

/// Amounts requested in total.
pub(crate) type Wants = SmallVec<[(KindId, u128); 4]>;

fn add(map: &mut imbl::OrdMap<i64, Changes>, time: i64, kind: KindId, amount: i128) {
    if time == i64::MAX || amount == 0 {
        return;
    }
    let changes = map.entry(time).or_default();
    match changes.iter().position(|(of, _)| *of == kind) {
        Some(at) => {
            changes[at].1 += amount;
            if changes[at].1 == 0 {
                changes.swap_remove(at);
            }
        }
        None => changes.push((kind, amount)),
    }
    if changes.is_empty() {
        map.remove(&time);
    }
}

impl Totals {
    /// Adds to what is free, now and later.
    pub(super) fn offer(&mut self, kind: KindId, amount: i128) {
        *self.free.entry(kind).or_default() += amount;
    }

    /// Counts a holder that comes (1) or goes (-1).
    pub(super) fn hold(&mut self, until: Option<i64>, needs: &Quantities, sign: i128) {
        for (kind, amount) in needs.iter() {
            let amount = i128::from(*amount) * sign;
            self.offer(*kind, -amount);
            add(&mut self.ends, until.unwrap_or(i64::MAX), *kind, amount);
        }
    }

    /// Counts a reservation that comes (1) or goes (-1).
    pub(super) fn reserve(&mut self, entry: &NodeReservation, sign: i128) {
        for (kind, amount) in entry.needs.iter() {
            let amount = i128::from(*amount) * sign;
            add(&mut self.promised, entry.start, *kind, -amount);
            add(&mut self.promised, entry.end, *kind, amount);
        }
    }

    /// Changes later than one time and up to another, in order.
    fn changes(&self, after: i64, to: i64) -> impl Iterator<Item = (i64, &Changes)> {
        let within = || (std::ops::Bound::Excluded(after), std::ops::Bound::Included(to));
        let mut ends = self.ends.range(within()).peekable();
        let mut promised = self.promised.range(within()).peekable();
        std::iter::from_fn(move || {
            let earlier = match (ends.peek(), promised.peek()) {
                (Some((end, _)), Some((other, _))) => end <= other,
                (end, _) => end.is_some(),
            };
            let next = if earlier { ends.next() } else { promised.next() };
            next.map(|(time, changes)| (*time, changes))
        })
    }
}

/// The remaining amount of each wanted kind beyond what is wanted.
struct Left<'a> {
    wants: &'a Wants,
    left: SmallVec<[i128; 4]>,
}

impl Left<'_> {
    fn apply(&mut self, changes: &Changes) {
        for (kind, amount) in changes {
            if let Some(at) = self.wants.iter().position(|(of, _)| of == kind) {
                self.left[at] += amount;
            }
        }
    }

    fn suffices(&self) -> bool {
        self.left.iter().all(|left| *left >= 0)
    }
}

impl Inventory {
    /// Whether less is free of something than is wanted, regardless of reservations.
    pub(crate) fn lacks(&self, wants: &Wants) -> bool {
        wants.iter().any(|(kind, wanted)| self.columns.total_free(*kind) < *wanted)
    }

    /// Whether the totals are those of the nodes: none has less than nothing, now or later.
    pub(crate) fn totals_hold(&self, wants: &Wants) -> bool {
        let free = |kind| self.totals.free.get(&kind).copied().unwrap_or(0);
        let same = |kind| i128::try_from(self.columns.total_free(kind)) == Ok(free(kind));
        !self.totals.overlaid && wants.iter().all(|(kind, _)| same(*kind))
    }

    fn left<'a>(&self, wants: &'a Wants) -> Left<'a> {
        let free = |kind| self.totals.free.get(&kind).copied().unwrap_or(0);
        let left =
            |(kind, wanted): &(KindId, u128)| free(*kind) - i128::try_from(*wanted).unwrap_or(i128::MAX / 2);
        Left { wants, left: wants.iter().map(left).collect() }
    }

    /// Whether there may be enough from now up to `end` (exclusive).
    pub(crate) fn may_start(&self, wants: &Wants, now: i64, end: i64) -> bool {
        if !self.totals_hold(wants) {
            return true;
        }
        let mut left = self.left(wants);
        // A holder past its planned end is still there, and perhaps where something should have started by now.
        if !left.suffices() {
            return false;
        }
        for (_, changes) in self.totals.ends.range(..=now) {
            left.apply(changes);
        }
        let mut at = i64::MIN;
        for (time, changes) in self.totals.changes(now, end.saturating_sub(1)) {
            if time != at && !left.suffices() {
                return false;
            }
            at = time;
            left.apply(changes);
        }
        left.suffices()
    }

    /// A time before which there is not enough for `length` seconds (none: forever), `from` or later; `before` if there is
    /// none earlier than that.
    pub(crate) fn not_before(&self, wants: &Wants, (from, before): (i64, i64), length: Option<i64>) -> i64 {
        if !self.totals_hold(wants) {
            return from;
        }
        let mut left = self.left(wants);
        for (_, changes) in self.totals.ends.range(..=from).chain(self.totals.promised.range(..=from)) {
            left.apply(changes);
        }
        let mut start = left.suffices().then_some(from);
        let mut at = from;
        for (time, changes) in self.totals.changes(from, i64::MAX) {
            if time != at {
                if !left.suffices() {
                    start = None;
                    if at >= before {
                        return before;
                    }
                } else if start.is_none() {
                    start = Some(at);
                }
                at = time;
            }
            if let (Some(start), Some(length)) = (start.filter(|_| left.suffices()), length)
                && time.saturating_sub(start) >= length
            {
                return start.min(before);
            }
            left.apply(changes);
        }
        if left.suffices() { start.unwrap_or(at).min(before) } else { before }
    }
}
