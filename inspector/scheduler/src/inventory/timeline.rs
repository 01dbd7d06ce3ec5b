//! Availability on one node over time: holders leave at their planned ends, reservations start and end.

use smallvec::SmallVec;

use super::id::{KindId, Quantities};
use super::reservation::NodeReservation;

/// The end of time: no release is planned then.
const END: i64 = i64::MAX;

/// Planned availability of each resource of one node. Holders past their planned end count as gone.
///
/// Searches read the timelines of all nodes in sequence, so the data of each is contiguous.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    kinds: SmallVec<[KindId; 6]>,
    /// Times of all changes, including host ports, and the remaining amount of each kind from then on; row by row,
    /// sorted. The first row begins at 0; negative amounts are deficits.
    rows: Vec<i64>,
    /// For each row, the number of holders and reservations that begin or end at its time. One at which none does is
    /// removed; the first one stays.
    uses: Vec<u32>,
    /// Times at which reservations begin, sorted, each as often as it occurs. At all other times, something is released.
    falls: Vec<i64>,
    /// The last of these.
    last_fall: i64,
    /// No amount was cut off at the largest or smallest number, so that what was taken can be given back.
    exact: bool,
}

impl Timeline {
    /// The remaining amounts of a node's resources, ordered by ID, if holders stay until their planned ends.
    pub(super) fn new<'a>(
        offers: impl Iterator<Item = (KindId, u64)>,
        holders: impl Iterator<Item = (Option<i64>, &'a Quantities)>,
    ) -> Self {
        let mut kinds = SmallVec::new();
        let mut rows = vec![0];
        let mut exact = true;
        for (kind, amount) in offers {
            exact &= i64::try_from(amount).is_ok();
            kinds.push(kind);
            rows.push(signed(amount));
        }
        let mut timeline = Self { kinds, rows, uses: vec![0], falls: Vec::new(), last_fall: i64::MIN, exact };
        for (until, needs) in holders {
            timeline.hold(until, needs);
        }
        timeline
    }

    /// Adds a holder.
    pub(super) fn hold(&mut self, until: Option<i64>, needs: &Quantities) {
        self.take(0, until.unwrap_or(END), needs);
    }

    /// Removes a holder; false if the timeline has to be made anew.
    pub(super) fn release(&mut self, until: Option<i64>, needs: &Quantities) -> bool {
        self.give_back(0, until.unwrap_or(END), needs)
    }

    /// Whether it has all of these resources.
    pub(super) fn covers(&self, needs: &Quantities) -> bool {
        needs.iter().all(|(kind, _)| self.kinds.binary_search(kind).is_ok())
    }

    /// Adds a reservation.
    pub(super) fn reserve(&mut self, entry: &NodeReservation) {
        self.take(entry.start, entry.end, &entry.needs);
        self.falls.insert(self.falls.partition_point(|at| *at < entry.start), entry.start);
        self.last_fall = self.last_fall.max(entry.start);
    }

    /// Removes a reservation; false if the timeline has to be made anew.
    pub(super) fn unreserve(&mut self, entry: &NodeReservation) -> bool {
        let Ok(at) = self.falls.binary_search(&entry.start) else { return false };
        self.falls.remove(at);
        self.last_fall = self.falls.last().copied().unwrap_or(i64::MIN);
        self.give_back(entry.start, entry.end, &entry.needs)
    }

    fn take(&mut self, start: i64, end: i64, needs: &[(KindId, u64)]) {
        let start = start.max(0);
        if end <= start {
            return;
        }
        let first = self.row_from(start);
        let last = if end == END { self.len() } else { self.row_from(end) };
        self.change(first..last, needs, i64::checked_sub, i64::MIN);
    }

    fn give_back(&mut self, start: i64, end: i64, needs: &[(KindId, u64)]) -> bool {
        let start = start.max(0);
        if end <= start {
            return true;
        }
        let first = self.row_at(start);
        let last = if end == END { self.len() } else { self.row_at(end) };
        if !self.exact || self.time(first) != start || end != END && self.time(last) != end {
            return false;
        }
        self.change(first..last, needs, i64::checked_add, i64::MAX);
        if end != END {
            self.leave_row(last);
        }
        self.leave_row(first);
        self.exact
    }

    fn change(
        &mut self,
        rows: std::ops::Range<usize>,
        needs: &[(KindId, u64)],
        change: fn(i64, i64) -> Option<i64>,
        limit: i64,
    ) {
        let width = self.width();
        let rows = &mut self.rows[rows.start * width..rows.end * width];
        for (kind, amount) in needs {
            let Ok(column) = self.kinds.binary_search(kind) else { continue };
            self.exact &= i64::try_from(*amount).is_ok();
            let amount = signed(*amount);
            for row in rows.chunks_exact_mut(width) {
                let changed = change(row[column + 1], amount);
                self.exact &= changed.is_some();
                row[column + 1] = changed.unwrap_or(limit);
            }
        }
    }

    /// Removes a row at whose time nothing changes any more.
    fn leave_row(&mut self, row: usize) {
        self.uses[row] = self.uses[row].saturating_sub(1);
        if row > 0 && self.uses[row] == 0 {
            let width = self.width();
            self.rows.drain(row * width..(row + 1) * width);
            self.uses.remove(row);
        }
    }

    /// The row that begins at a time, created if missing.
    fn row_from(&mut self, time: i64) -> usize {
        let row = self.row_at(time);
        if self.time(row) == time {
            self.uses[row] += 1;
            return row;
        }
        let (width, next) = (self.width(), row + 1);
        let at = next * width;
        self.rows.extend_from_within(at - width..at);
        self.rows[at..].rotate_right(width);
        self.rows[at] = time;
        self.uses.insert(next, 1);
        next
    }

    /// Numbers per row: its time, and one for each kind.
    fn width(&self) -> usize {
        self.kinds.len() + 1
    }

    fn len(&self) -> usize {
        self.rows.len() / self.width()
    }

    fn time(&self, row: usize) -> i64 {
        self.rows[row * self.width()]
    }

    /// The first row that begins after a time.
    fn row_after(&self, time: i64) -> usize {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from.midpoint(to);
            if self.time(middle) <= time {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }

    /// The row in force at a time.
    pub(crate) fn row_at(&self, time: i64) -> usize {
        self.row_after(time).saturating_sub(1)
    }

    /// Positions of these kinds in a row.
    pub(crate) fn columns<'a>(&'a self, kinds: &'a [KindId]) -> impl Iterator<Item = Option<usize>> + 'a {
        kinds.iter().map(|kind| self.kinds.binary_search(kind).ok())
    }

    /// The minimum of each kind between `start` and `end`, into `out`; for an empty period, the maximum.
    pub(super) fn least(&self, kinds: &[KindId], (start, end): (i64, i64), out: &mut [u64]) {
        let first = self.falls.partition_point(|at| *at <= start);
        let falls = &self.falls[first..];
        let falls = &falls[..falls.partition_point(|at| *at < end)];
        let here = self.row(self.row_at(start));
        for (column, least) in self.columns(kinds).zip(out) {
            *least = match column {
                None => 0,
                Some(_) if end <= start => u64::MAX,
                Some(column) => {
                    let then = falls.iter().map(|at| self.row(self.row_at(*at))[column]);
                    unsigned(then.fold(here[column], i64::min))
                }
            };
        }
    }

    /// When something of these kinds was last given back by a time; none if it has been there all along.
    pub(crate) fn risen_at(&self, kinds: &[KindId], time: i64) -> Option<i64> {
        let mut row = self.row_at(time);
        while row > 0 {
            let (before, here) = (self.row(row - 1), self.row(row));
            if self.columns(kinds).flatten().any(|column| before[column] < here[column]) {
                return Some(self.time(row));
            }
            row -= 1;
        }
        None
    }

    /// When something begins to be taken next, after a time; `i64::MAX` for never.
    pub(crate) fn next_fall(&self, time: i64) -> i64 {
        self.falls.get(self.falls.partition_point(|at| *at <= time)).copied().unwrap_or(END)
    }

    /// The first time after `time` at which availability for `length` seconds (none: forever) may change.
    pub(crate) fn next_change(&self, time: i64, length: Option<i64>) -> Option<i64> {
        let after = |time: i64| self.begin(self.row_after(time));
        let last = length.map(|length| length.saturating_sub(1));
        // From then on, an allocation that begins is reached before the end.
        let reached = last.and_then(|last| Some(after(time.saturating_add(last))? - last));
        [after(time), reached].into_iter().flatten().min()
    }

    /// The resources that the node has or that are held on it, ordered by ID.
    pub(crate) fn kinds(&self) -> &[KindId] {
        &self.kinds
    }

    /// When a row begins; the first one begins before any time that is queried.
    pub(crate) fn begin(&self, row: usize) -> Option<i64> {
        self.rows.get(row * self.width()).copied()
    }

    /// The remaining amounts of a row.
    pub(crate) fn left(&self, row: usize) -> Left<'_> {
        Left(self.row(row))
    }

    fn row(&self, row: usize) -> &[i64] {
        let width = self.width();
        &self.rows[row * width..][1..width]
    }

    /// Nothing is allocated after this time.
    pub(crate) fn only_rises(&self, from: i64) -> bool {
        self.last_fall <= from
    }
}

/// The remaining amount of each kind in one row.
#[derive(Clone, Copy)]
pub(crate) struct Left<'a>(&'a [i64]);

impl Left<'_> {
    /// The available amount of the kind in this column.
    pub(crate) fn of(self, column: usize) -> u64 {
        unsigned(self.0[column])
    }
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

fn unsigned(left: i64) -> u64 {
    u64::try_from(left).unwrap_or(0)
}
