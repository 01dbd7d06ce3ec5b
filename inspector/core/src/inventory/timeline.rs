//! What is available over a window of time: holders leave at their planned ends, reservations come and go.

use super::{Book, Inventory, KindId, NodeId};
use crate::constraint::HostPort;

/// When a holder is planned to leave: one past its planned end is planned to leave a second from now.
pub(crate) fn planned_end(until: Option<i64>, now: i64) -> i64 {
    until.map_or(i64::MAX, |until| until.max(now.saturating_add(1)))
}

impl Inventory {
    /// The least that is available of each kind at any moment from `start` up to `end` (exclusive), into `out`.
    pub(crate) fn least(
        &self,
        id: NodeId,
        now: i64,
        (start, end): (i64, i64),
        kinds: &[KindId],
        out: &mut Vec<u64>,
    ) {
        out.clear();
        let Some(book) = self.book(id).filter(|book| book.spec.is_some()) else {
            out.resize(kinds.len(), 0);
            return;
        };
        let reserved = self.reserved_on(id);
        out.resize(kinds.len(), u64::MAX);
        let starts = reserved.iter().map(|entry| entry.start).filter(|at| start < *at && *at < end);
        for point in std::iter::once(start).chain(starts) {
            for (kind, least) in kinds.iter().zip(out.iter_mut()) {
                let held = held_at(book, now, point, *kind);
                let promised: u128 = reserved
                    .iter()
                    .filter(|entry| entry.start <= point && point < entry.end)
                    .map(|entry| of_kind(&entry.needs, *kind))
                    .sum();
                let offer = u128::from(book.offer(*kind).allocatable);
                let left = offer.saturating_sub(held.saturating_add(promised));
                *least = (*least).min(u64::try_from(left).unwrap_or(u64::MAX));
            }
        }
    }

    /// Whether ports like these are taken at any moment from `start` up to `end` (exclusive).
    pub(crate) fn ports_taken(
        &self,
        id: NodeId,
        now: i64,
        (start, end): (i64, i64),
        ports: &[HostPort],
    ) -> bool {
        self.book(id).is_some_and(|book| book.clashes(ports, |hold| planned_end(hold.until, now) > start))
            || self
                .reserved_on(id)
                .iter()
                .filter(|entry| entry.start < end && start < entry.end)
                .any(|entry| entry.ports.iter().any(|a| ports.iter().any(|b| a.clashes(b))))
    }
}

/// What holders that are planned to be there at that moment hold.
fn held_at(book: &Book, now: i64, at: i64, kind: KindId) -> u128 {
    if at <= now {
        return book.sums(kind).held;
    }
    book.holds
        .iter()
        .filter(|(_, held)| planned_end(held.hold.until, now) > at)
        .map(|(_, held)| of_kind(&held.needs, kind))
        .sum()
}

fn of_kind(needs: &[(KindId, u64)], kind: KindId) -> u128 {
    needs.iter().find(|(k, _)| *k == kind).map_or(0, |(_, quantity)| u128::from(*quantity))
}
