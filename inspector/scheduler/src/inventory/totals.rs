//! Planned availability of the whole cluster over time, kept up to date with every holder and reservation.
//!
//! Slots don't fit into more than there is of all nodes together, so these totals tell, without looking at any node, that
//! a request does not fit before a time. That it then does is only certain if a node has nothing but equal slots.

use std::sync::{Arc, OnceLock};

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
    /// What is left when reservations begin, made when somebody asks.
    falls: OnceLock<Arc<Falls>>,
}

/// What is available of each kind at each time at which a reservation begins. In between there is at least as much.
#[derive(Clone, Debug)]
pub(super) struct Falls {
    now: i64,
    kinds: SmallVec<[KindId; 4]>,
    /// The times later than now, in order.
    times: Vec<i64>,
    /// By time, the amount of each kind.
    left: Vec<i128>,
}

impl Falls {
    /// Whether there is as much as is wanted at each of them before `end`.
    pub(super) fn suffice(&self, wants: &Wants, end: i64) -> bool {
        let count = self.times.partition_point(|time| *time < end);
        let width = self.kinds.len();
        wants.iter().all(|(kind, wanted)| {
            let wanted = i128::try_from(*wanted).unwrap_or(i128::MAX / 2);
            match self.kinds.iter().position(|of| of == kind) {
                Some(at) => (0..count).all(|row| self.left[row * width + at] >= wanted),
                None => count == 0 || wanted == 0,
            }
        })
    }
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
        self.falls.take();
        *self.free.entry(kind).or_default() += amount;
    }

    /// Counts a holder that comes (1) or goes (-1).
    pub(super) fn hold(&mut self, until: Option<i64>, needs: &Quantities, sign: i128) {
        self.falls.take();
        for (kind, amount) in needs.iter() {
            let amount = i128::from(*amount) * sign;
            self.offer(*kind, -amount);
            add(&mut self.ends, until.unwrap_or(i64::MAX), *kind, amount);
        }
    }

    /// Counts a reservation that comes (1) or goes (-1).
    pub(super) fn reserve(&mut self, entry: &NodeReservation, sign: i128) {
        self.falls.take();
        for (kind, amount) in entry.needs.iter() {
            let amount = i128::from(*amount) * sign;
            add(&mut self.promised, entry.start, *kind, -amount);
            add(&mut self.promised, entry.end, *kind, amount);
        }
    }

    /// The first planned end of a holder, epoch seconds.
    pub(super) fn first_end(&self) -> Option<i64> {
        self.ends.get_min().map(|(end, _)| *end)
    }

    /// See [`Falls`]; what is planned for `now` or earlier has ended then.
    pub(super) fn falls(&mut self, now: i64) -> Arc<Falls> {
        if self.falls.get().is_some_and(|falls| falls.now != now) {
            self.falls.take();
        }
        self.falls.get_or_init(|| Arc::new(self.find_falls(now))).clone()
    }

    fn find_falls(&self, now: i64) -> Falls {
        let mut falls = Falls {
            now,
            kinds: self.free.keys().copied().collect(),
            times: Vec::new(),
            left: Vec::new(),
        };
        let Some(last) = self.promised.get_max().map(|(time, _)| *time).filter(|last| *last > now) else {
            return falls;
        };
        let mut left: SmallVec<[i128; 4]> = self.free.values().copied().collect();
        let mut apply = |changes: &TotalChanges| {
            let mut fell = false;
            for (kind, amount) in changes {
                if let Some(at) = falls.kinds.iter().position(|of| of == kind) {
                    left[at] += amount;
                    fell |= *amount < 0;
                }
            }
            (fell, left.clone())
        };
        for (_, changes) in self.ends.range(..=now) {
            apply(changes);
        }
        for (time, changes) in self.changes(now, last) {
            let (fell, left) = apply(changes);
            let width = left.len();
            if falls.times.last() == Some(&time) {
                let at = falls.left.len() - width;
                falls.left[at..].copy_from_slice(&left);
            } else if fell {
                falls.times.push(time);
                falls.left.extend(left);
            }
        }
        falls
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
