//! What is available on one node when: holders leave at their planned ends, reservations come and go.

use smallvec::SmallVec;

use super::id::{KindId, Quantities};
use super::reservation::NodeReservation;

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
    /// What is left of what a node offers, by resource in order of their ids, when holders have what they have until
    /// their planned ends.
    pub(super) fn new<'a>(
        offers: impl Iterator<Item = (KindId, u64)>,
        holders: impl Iterator<Item = (Option<i64>, &'a Quantities)>,
    ) -> Self {
        let (kinds, left) = offers.map(|(kind, amount)| (kind, signed(amount))).unzip();
        let mut timeline = Self { kinds, times: vec![0], left, falls: Vec::new() };
        for (until, needs) in holders {
            timeline.take(0, until.unwrap_or(END), needs);
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
    pub(super) fn least(&self, kinds: &[KindId], (start, end): (i64, i64), out: &mut [u64]) {
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
