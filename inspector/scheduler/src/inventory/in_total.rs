//! Whether there may be enough on all nodes together, now or later.

use super::Inventory;
use super::id::KindId;
use super::totals::{Surplus, Wants};

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

    fn left<'a>(&self, wants: &'a Wants) -> Surplus<'a> {
        let free = |kind| self.totals.free.get(&kind).copied().unwrap_or(0);
        let left =
            |(kind, wanted): &(KindId, u128)| free(*kind) - i128::try_from(*wanted).unwrap_or(i128::MAX / 2);
        Surplus { wants, left: wants.iter().map(left).collect() }
    }

    /// Whether there may be enough from now up to `end` (exclusive).
    pub(crate) fn may_start(&mut self, wants: &Wants, now: i64, end: i64) -> bool {
        if !self.totals_hold(wants) {
            return true;
        }
        // A holder past its planned end is still there, and perhaps where something should have started by now.
        self.left(wants).suffices()
            && (self.reservations.is_empty() || self.totals.profile(now).suffices(wants, end))
    }

    /// Whether it is certain that a request can't start before its reservation, of these amounts from `start` up to `end`.
    pub(crate) fn none_before(
        &mut self,
        wants: &Wants,
        now: i64,
        (start, end): (i64, i64),
        length: Option<i64>,
    ) -> bool {
        self.totals_hold(wants) && self.totals.profile(now).none_before(wants, (start, end), length)
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
