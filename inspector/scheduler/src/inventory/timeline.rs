//! What is available over a window of time: holders leave at their planned ends, reservations come and go.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Book, Inventory, KindId, NodeId, NodeReservation};
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

    /// The least that is available of each kind at any moment from `start` (`now` or later) up to `end` (exclusive),
    /// into `out`.
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
        // Whoever is past his planned end is there until a second from now.
        for (kind, least) in kinds.iter().zip(out) {
            let reserved =
                self.reserved_on(id).iter().filter(|entry| entry.start <= start && start < entry.end);
            let reserved = reserved.flat_map(|entry| entry.needs.iter()).filter(|(of, _)| of == kind);
            let taken = book.sums(*kind).held + reserved.map(|(_, amount)| u128::from(*amount)).sum::<u128>();
            let left = u128::from(book.offer(*kind).allocatable).saturating_sub(taken);
            *least = (*least).min(u64::try_from(left).unwrap_or(u64::MAX));
        }
    }

    /// What is available when on a node that exists, later than now.
    pub(crate) fn timeline<'a>(&'a self, id: NodeId, book: &'a Book) -> &'a Timeline {
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

/// The end of time: nothing is planned to be given back then.
const END: i64 = i64::MAX;

/// What is planned to be available of each resource of one node, from its books. Those past their planned end are gone.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    kinds: Vec<KindId>,
    /// When anything changes, host ports included; sorted, the first is 0.
    times: Vec<i64>,
    /// What is left of each kind from each of these times on, time by time; below 0 for a deficit.
    left: Vec<i64>,
    /// When something begins to be taken; sorted. At all other times something is given back.
    falls: Vec<i64>,
}

impl Timeline {
    /// What the holders leave.
    pub(super) fn new(book: &Book) -> Self {
        let kinds: Vec<KindId> = book.kinds().into_iter().collect();
        let left = kinds.iter().map(|kind| signed(book.offer(*kind).allocatable)).collect();
        let mut timeline = Self { kinds, times: vec![0], left, falls: Vec::new() };
        for (_, held) in &book.holds {
            timeline.take(0, held.hold.until.unwrap_or(END), &held.needs);
        }
        timeline
    }

    pub(super) fn reserve(&mut self, entry: &NodeReservation) {
        self.take(entry.start, entry.end, &entry.needs);
        if let Err(at) = self.falls.binary_search(&entry.start) {
            self.falls.insert(at, entry.start);
        }
    }

    fn take(&mut self, start: i64, end: i64, needs: &[(KindId, u64)]) {
        let start = start.max(0);
        if end <= start {
            return;
        }
        let first = self.row_from(start);
        let last = if end == END { self.times.len() } else { self.row_from(end) };
        let width = self.kinds.len();
        for (kind, amount) in needs {
            let Ok(column) = self.kinds.binary_search(kind) else { continue };
            for row in first..last {
                let left = &mut self.left[row * width + column];
                // Nothing is ever given back, so what is below everything may stay there.
                *left = left.saturating_sub(signed(*amount));
            }
        }
    }

    /// The row that begins at a time, which is made when missing.
    fn row_from(&mut self, time: i64) -> usize {
        self.times.binary_search(&time).unwrap_or_else(|at| {
            let width = self.kinds.len();
            self.times.insert(at, time);
            let before: Vec<i64> = self.left[(at - 1) * width..at * width].to_vec();
            self.left.splice(at * width..at * width, before);
            at
        })
    }

    /// The row in force at a time.
    fn row_at(&self, time: i64) -> usize {
        self.times.partition_point(|at| *at <= time).saturating_sub(1)
    }

    fn columns<'a>(&'a self, kinds: &'a [KindId]) -> impl Iterator<Item = Option<usize>> + 'a {
        kinds.iter().map(|kind| self.kinds.binary_search(kind).ok())
    }

    /// The least of each kind at any moment from `start` up to `end`, into `out`; of no time all there could be.
    fn least(&self, kinds: &[KindId], (start, end): (i64, i64), out: &mut [u64]) {
        let width = self.kinds.len();
        let first = self.falls.partition_point(|at| *at <= start);
        let falls = &self.falls[first..];
        let falls = &falls[..falls.partition_point(|at| *at < end)];
        let here = self.row_at(start) * width;
        for (column, least) in self.columns(kinds).zip(out) {
            *least = match column {
                None => 0,
                Some(_) if end <= start => u64::MAX,
                Some(column) => {
                    let then = falls.iter().map(|at| self.left[self.row_at(*at) * width + column]);
                    unsigned(then.fold(self.left[here + column], i64::min))
                }
            };
        }
    }

    /// The first time after `time` at which what is available for `length` seconds (none: for ever) may differ.
    pub(crate) fn next_change(&self, time: i64, length: Option<i64>) -> Option<i64> {
        let after = |time: i64| self.times.get(self.times.partition_point(|at| *at <= time)).copied();
        let last = length.map(|length| length.saturating_sub(1));
        // From then on something that begins is reached before the end.
        let reached = last.and_then(|last| Some(after(time.saturating_add(last))? - last));
        [after(time), reached].into_iter().flatten().min()
    }

    /// Hands over what is available of each kind from when on, beginning at `start`.
    pub(crate) fn steps(&self, kinds: &[KindId], start: i64, mut tell: impl FnMut(i64, &[u64])) {
        let columns: SmallVec<[Option<usize>; 8]> = self.columns(kinds).collect();
        let mut free: SmallVec<[u64; 8]> = SmallVec::from_elem(0, kinds.len());
        let (width, first) = (self.kinds.len(), self.row_at(start));
        for (row, time) in self.times.iter().enumerate().skip(first) {
            for (column, free) in columns.iter().zip(&mut free) {
                *free = column.map_or(0, |column| unsigned(self.left[row * width + column]));
            }
            tell((*time).max(start), &free);
        }
    }
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

fn unsigned(left: i64) -> u64 {
    u64::try_from(left).unwrap_or(0)
}
