//! Availability over a period: holders leave at their planned ends, reservations start and end.

use std::sync::Arc;

use super::Inventory;
use super::book::NodeAllocations;
use super::id::{KindId, NodeId};
use super::timeline::Timeline;
use crate::constraint::HostPort;
use crate::inventory::planned_end;

impl Inventory {
    /// The minimum amount of a resource on a node at any time from 0 on, considering holders and reservations.
    pub(crate) fn available(&self, node: &str, resource: &str, start: i64, end: Option<i64>) -> u64 {
        let (Some(id), Some(kind)) = (self.id(node), self.columns.kind(resource)) else { return 0 };
        let mut out = Vec::new();
        self.least(id, 0, (start, end.unwrap_or(i64::MAX)), &[kind], &mut out);
        out.first().copied().unwrap_or(0)
    }

    /// The minimum of each kind available between `start` (`now` or later) and `end` (exclusive), into `out`.
    pub(crate) fn least(
        &self,
        id: NodeId,
        now: i64,
        (start, end): (i64, i64),
        kinds: &[KindId],
        out: &mut Vec<u64>,
    ) {
        out.clear();
        out.resize(kinds.len(), 0);
        let Some(book) = self.book(id).filter(|book| book.spec.is_some()) else { return };
        let timeline = self.timeline(id, book);
        timeline.least(kinds, (start.max(now.saturating_add(1)), end), out);
        if now < start {
            return;
        }
        // A holder past its planned end stays until one second from now.
        for (kind, least) in kinds.iter().zip(out) {
            let reserved =
                self.reserved_on(id).iter().filter(|entry| entry.start <= start && start < entry.end);
            let reserved = reserved.flat_map(|entry| entry.needs.iter()).filter(|(of, _)| of == kind);
            let taken = book.sums(*kind).held + reserved.map(|(_, amount)| u128::from(*amount)).sum::<u128>();
            let left = u128::from(book.offer(*kind).allocatable).saturating_sub(taken);
            *least = (*least).min(u64::try_from(left).unwrap_or(u64::MAX));
        }
    }

    /// Availability over time on an existing node, later than now.
    pub(crate) fn timeline<'a>(&'a self, id: NodeId, book: &'a NodeAllocations) -> &'a Timeline {
        match self.reserved.get(id).and_then(Option::as_ref) {
            Some(reserved) => reserved.timeline.get_or_init(|| {
                let mut timeline = book.timeline().clone();
                for entry in &reserved.entries {
                    timeline.reserve(entry);
                }
                Arc::new(timeline)
            }),
            None => book.timeline(),
        }
    }

    /// Whether conflicting ports are in use at any time from `start` up to `end` (exclusive).
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
