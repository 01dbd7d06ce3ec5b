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
    /// The sum of all these, made when somebody asks.
    profile: OnceLock<Arc<Profile>>,
}

/// What is available of each kind over time, up to the last start or end of a reservation; from then on, there is at least
/// as much.
#[derive(Clone, Debug)]
pub(super) struct Profile {
    now: i64,
    kinds: SmallVec<[KindId; 4]>,
    /// Times of all changes later than now, in order.
    times: Vec<i64>,
    /// The amount of each kind from now on, and then from each of these times on.
    left: Vec<i128>,
}

impl Profile {
    /// The wanted amounts by column; none if there is nothing of one of these kinds.
    fn columns(&self, wants: &Wants) -> Option<SmallVec<[(usize, i128); 4]>> {
        let column = |(kind, wanted): &(KindId, u128)| {
            let at = self.kinds.iter().position(|of| of == kind)?;
            Some((at, i128::try_from(*wanted).unwrap_or(i128::MAX / 2)))
        };
        wants.iter().filter(|(_, wanted)| *wanted > 0).map(column).collect()
    }

    /// Whether there is as much as is wanted from each change before `end` on.
    pub(super) fn suffices(&self, wants: &Wants, end: i64) -> bool {
        let count = self.times.partition_point(|time| *time < end);
        let width = self.kinds.len();
        let enough =
            |(at, wanted): &(usize, i128)| (1..=count).all(|row| self.left[row * width + at] >= *wanted);
        count == 0 || self.columns(wants).is_some_and(|columns| columns.iter().all(enough))
    }

    /// Whether there would not be enough for `length` seconds (none: forever) from any time before `start` on, now
    /// included, if what is wanted were not reserved from `start` up to `end`.
    pub(super) fn none_before(&self, wants: &Wants, (start, end): (i64, i64), length: Option<i64>) -> bool {
        let Some(columns) = self.columns(wants) else { return false };
        let width = self.kinds.len();
        let enough = |row: usize, time: i64| {
            let own = start <= time && time < end;
            columns.iter().all(|(at, wanted)| own || self.left[row * width + at] >= *wanted)
                && (!own || columns.iter().all(|(at, _)| self.left[row * width + at] >= 0))
        };
        let mut since = enough(0, self.now).then_some(self.now);
        for (time, row) in self.times.iter().copied().zip(1..) {
            if since.zip(length).is_some_and(|(since, length)| time.saturating_sub(since) >= length) {
                return false;
            }
            if !enough(row, time) {
                since = None;
            } else if since.is_none() {
                since = Some(time);
            }
            if time >= start && since.is_none_or(|since| since >= start) {
                return true;
            }
        }
        since.is_none_or(|since| since >= start)
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
        self.profile.take();
        *self.free.entry(kind).or_default() += amount;
    }

    /// Counts a holder that comes (1) or goes (-1).
    pub(super) fn hold(&mut self, until: Option<i64>, needs: &Quantities, sign: i128) {
        self.profile.take();
        for (kind, amount) in needs.iter() {
            let amount = i128::from(*amount) * sign;
            self.offer(*kind, -amount);
            add(&mut self.ends, until.unwrap_or(i64::MAX), *kind, amount);
        }
    }

    /// Counts a reservation that comes (1) or goes (-1).
    pub(super) fn reserve(&mut self, entry: &NodeReservation, sign: i128) {
        self.profile.take();
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

    /// See [`Profile`]; what is planned for `now` or earlier has ended then.
    pub(super) fn profile(&mut self, now: i64) -> Arc<Profile> {
        if self.profile.get().is_some_and(|profile| profile.now != now) {
            self.profile.take();
        }
        self.profile.get_or_init(|| Arc::new(self.make_profile(now))).clone()
    }

    fn make_profile(&self, now: i64) -> Profile {
        let kinds: SmallVec<[KindId; 4]> = self.free.keys().copied().collect();
        let mut left: SmallVec<[i128; 4]> = self.free.values().copied().collect();
        let apply = |left: &mut [i128], changes: &TotalChanges| {
            for (kind, amount) in changes {
                if let Some(at) = kinds.iter().position(|of| of == kind) {
                    left[at] += amount;
                }
            }
        };
        for (_, changes) in self.ends.range(..=now) {
            apply(&mut left, changes);
        }
        let (mut times, mut rows) = (Vec::new(), left.to_vec());
        let last = self.promised.get_max().map_or(now, |(time, _)| *time);
        for (time, changes) in self.changes(now, last.max(now)) {
            apply(&mut left, changes);
            if times.last() == Some(&time) {
                let at = rows.len() - left.len();
                rows[at..].copy_from_slice(&left);
            } else {
                times.push(time);
                rows.extend_from_slice(&left);
            }
        }
        Profile { now, kinds, times, left: rows }
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
