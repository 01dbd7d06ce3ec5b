//! What is available over a window of time: holders leave at their planned ends, reservations come and go.

use smallvec::SmallVec;

use super::{Inventory, KindId, NodeId};
use crate::constraint::HostPort;

/// When a holder is planned to leave: one past its planned end is planned to leave a second from now.
pub(crate) fn planned_end(until: Option<i64>, now: i64) -> i64 {
    until.map_or(i64::MAX, |until| until.max(now.saturating_add(1)))
}

impl Inventory {
    /// The least that a node has of a resource at any moment of a time from 0 on, between what is held and reserved.
    pub(crate) fn available(&self, node: &str, resource: &str, start: i64, end: Option<i64>) -> u64 {
        let (Some(id), Some(kind)) = (self.id(node), self.columns.kind(resource)) else { return 0 };
        let mut out = Vec::new();
        self.least(id, 0, (start, end.unwrap_or(i64::MAX)), &[kind], &mut out);
        out.first().copied().unwrap_or(0)
    }

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
        let mut sums: SmallVec<[u128; 8]> = SmallVec::new();
        for point in std::iter::once(start).chain(starts) {
            sums.clear();
            if point <= now {
                sums.extend(kinds.iter().map(|kind| book.sums(*kind).held));
            } else {
                sums.resize(kinds.len(), 0);
                let staying = book.holds.iter().filter(|(_, held)| planned_end(held.hold.until, now) > point);
                for (_, held) in staying {
                    add(&mut sums, kinds, &held.needs);
                }
            }
            for entry in reserved.iter().filter(|entry| entry.start <= point && point < entry.end) {
                add(&mut sums, kinds, &entry.needs);
            }
            for ((kind, sum), least) in kinds.iter().zip(&sums).zip(out.iter_mut()) {
                let left = u128::from(book.offer(*kind).allocatable).saturating_sub(*sum);
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

/// Adds what is needed of the kinds that are asked for.
fn add(sums: &mut [u128], kinds: &[KindId], needs: &[(KindId, u64)]) {
    for (kind, quantity) in needs {
        if let Some(at) = kinds.iter().position(|wanted| wanted == kind) {
            sums[at] += u128::from(*quantity);
        }
    }
}
