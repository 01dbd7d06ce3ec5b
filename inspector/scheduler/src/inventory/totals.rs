//! Planned availability of the whole cluster over time, kept up to date with every holder and reservation.
//!
//! Slots don't fit into more than there is of all nodes together, so these totals tell, without looking at any node, that
//! a request does not fit before a time. That it then does is only certain if a node has nothing but equal slots.

use smallvec::SmallVec;

use super::id::{KindId, Quantities};
use super::reservation::NodeReservation;

/// Changes of the available amounts at some time, by kind.
pub(super) type TotalChanges = SmallVec<[(KindId, i128); 4]>;

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    /// Allocatable minus everything held, by kind; negative for a deficit.
    pub(super) free: imbl::OrdMap<KindId, i128>,
    /// What holders give back at their planned ends.
    pub(super) ends: imbl::OrdMap<i64, TotalChanges>,
    /// What reservations take at their starts and give back at their ends.
    pub(super) promised: imbl::OrdMap<i64, TotalChanges>,
    /// Something is held that was promised: some nodes have less than nothing at some time.
    pub(super) overlaid: bool,
}

/// Amounts requested in total.
pub(crate) type Wants = SmallVec<[(KindId, u128); 4]>;

fn add(map: &mut imbl::OrdMap<i64, TotalChanges>, time: i64, kind: KindId, amount: i128) {
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
    pub(super) fn changes(&self, after: i64, to: i64) -> impl Iterator<Item = (i64, &TotalChanges)> {
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
pub(super) struct Surplus<'a> {
    pub(super) wants: &'a Wants,
    pub(super) left: SmallVec<[i128; 4]>,
}

impl Surplus<'_> {
    pub(super) fn apply(&mut self, changes: &TotalChanges) {
        for (kind, amount) in changes {
            if let Some(at) = self.wants.iter().position(|(of, _)| of == kind) {
                self.left[at] += amount;
            }
        }
    }

    pub(super) fn suffices(&self) -> bool {
        self.left.iter().all(|left| *left >= 0)
    }
}
