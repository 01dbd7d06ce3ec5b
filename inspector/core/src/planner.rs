//! What of one quantity is free when.
//!
//! A planner holds a total and the spans booked on it; time is seconds, spans are half-open, so one that
//! ends at 60 and one that starts at 60 do not meet. It does not know what the quantity is.

mod multi;
#[cfg(test)]
mod tests;

pub use multi::{MultiPlanner, MultiSpan};

use smallvec::SmallVec;

use crate::errno::Errno;

/// The end of time for a planner: no span reaches beyond it.
pub const END: i64 = i64::MAX;

/// The number of a span; they count up from 1 in each planner.
pub type SpanId = u32;

/// A moment at which what is free changes.
#[derive(Clone, Copy, Debug)]
struct Point {
    time: i64,
    /// Free from here up to the next point; negative after a total fell below what is booked.
    remaining: i64,
    /// What the time index believes is free. It lags behind after a change of the total.
    indexed: i64,
    /// Spans that start or end here.
    refs: u32,
    /// Looked at by the running iteration over times, and out of the index until that ends.
    out: bool,
}

/// An amount booked from `start` up to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    id: SpanId,
    /// First second of the span.
    pub start: i64,
    /// First second after the span.
    pub end: i64,
    /// How much is booked.
    pub amount: u64,
}

/// What a running iteration over times looks for.
#[derive(Clone, Copy, Debug)]
struct Search {
    not_before: i64,
    duration: i64,
    amount: i64,
    /// Points before this one have been looked at, or don't have enough.
    next: usize,
}

/// The planner of one quantity.
#[derive(Clone, Debug)]
pub struct Planner {
    total: u64,
    /// Sorted by time; empty as long as nothing was ever booked, which means: all free. One span needs no
    /// room elsewhere.
    points: SmallVec<[Point; 3]>,
    /// Sorted by id.
    spans: SmallVec<[Span; 1]>,
    last_id: SpanId,
    /// Boxed, because few planners are ever asked for times.
    search: Option<Box<Search>>,
}

/// What a reduction of a span did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduced {
    /// The span was taken away whole.
    Removed,
    /// The span is still there.
    Kept,
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

impl Planner {
    /// A planner with everything free from 0 to the end of time.
    pub fn new(total: u64) -> Self {
        Self { total, points: SmallVec::new(), spans: SmallVec::new(), last_id: 0, search: None }
    }

    /// How much there is in all.
    #[inline]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Number of spans booked.
    #[inline]
    pub fn span_count(&self) -> usize {
        self.spans.len()
    }

    /// A booked span.
    pub fn span(&self, id: SpanId) -> Option<&Span> {
        self.spans.binary_search_by_key(&id, |span| span.id).ok().map(|at| &self.spans[at])
    }

    /// First and last second for which anything is booked; none when nothing is.
    pub fn hull(&self) -> Option<(i64, i64)> {
        let first = self.spans.iter().map(|span| span.start).min()?;
        let last = self.spans.iter().map(|span| span.end).max()?;
        Some((first, last))
    }

    /// All booked spans by their id.
    pub fn spans(&self) -> impl Iterator<Item = (SpanId, &Span)> {
        self.spans.iter().map(|span| (span.id, span))
    }

    /// How much is free at a time.
    pub fn remaining_at(&self, time: i64) -> u64 {
        let at = self.points.partition_point(|point| point.time <= time);
        if at == 0 {
            return self.total;
        }
        u64::try_from(self.points[at - 1].remaining).unwrap_or(0)
    }

    /// The range of points in force in a half-open stretch of time.
    #[inline]
    fn in_force(&self, start: i64, end: i64) -> impl Iterator<Item = &Point> {
        let first = self.points.partition_point(|point| point.time <= start).saturating_sub(1);
        self.points[first..].iter().take_while(move |point| point.time < end || point.time <= start)
    }

    /// The least that is free at any moment of `duration` seconds from `start` on.
    ///
    /// Errors: `Einval` for a duration below 1, `Erange` when it reaches beyond the end of time.
    #[inline]
    pub fn min_during(&self, start: i64, duration: i64) -> Result<u64, Errno> {
        if duration < 1 {
            return Err(Errno::Einval);
        }
        let end = start.checked_add(duration).ok_or(Errno::Erange)?;
        if self.points.is_empty() {
            return Ok(self.total);
        }
        let least = self.in_force(start, end).map(|point| point.remaining).min();
        Ok(least.map_or(self.total, |least| u64::try_from(least).unwrap_or(0)))
    }

    /// Whether an amount is free throughout: `Erange` when there never is that much or the time is out
    /// of reach, `Ebusy` when something else is booked.
    pub fn available_during(&self, start: i64, duration: i64, amount: u64) -> Result<(), Errno> {
        if amount > self.total {
            return Err(Errno::Erange);
        }
        if duration < 1 {
            return Err(Errno::Einval);
        }
        let end = start.checked_add(duration).ok_or(Errno::Erange)?;
        // The first point with less decides; nothing is always free.
        let wanted = signed(amount);
        let short = amount > 0 && self.in_force(start, end).any(|point| point.remaining < wanted);
        if short { Err(Errno::Ebusy) } else { Ok(()) }
    }

    /// The stretches, start and end, over which less than an amount is free, in order; of those that are over
    /// before `from` none.
    pub fn shorts(&self, from: i64, amount: u64) -> impl Iterator<Item = (i64, i64)> + '_ {
        let wanted = signed(amount);
        let mut at = self.points.partition_point(|point| point.time <= from).saturating_sub(1);
        std::iter::from_fn(move || {
            let first = at + self.points[at..].iter().position(|point| point.remaining < wanted)?;
            let free = self.points[first..].iter().position(|point| point.remaining >= wanted);
            at = free.map_or(self.points.len(), |free| first + free);
            Some((self.points[first].time, self.points.get(at).map_or(END, |point| point.time)))
        })
    }

    /// Puts every point back into the index, as what it is now.
    fn end_search(&mut self) {
        if self.search.take().is_some() {
            for point in &mut self.points {
                if point.out {
                    point.out = false;
                    point.indexed = point.remaining;
                }
            }
        }
    }

    /// The position of the point at a time, which is made when missing.
    fn point_at(&mut self, time: i64) -> usize {
        if self.points.is_empty() {
            let all = signed(self.total);
            self.points.push(Point { time: 0, remaining: all, indexed: all, refs: 1, out: false });
        }
        match self.points.binary_search_by_key(&time, |point| point.time) {
            Ok(at) => at,
            Err(at) => {
                let before =
                    at.checked_sub(1).map_or(signed(self.total), |before| self.points[before].remaining);
                self.points
                    .insert(at, Point { time, remaining: before, indexed: before, refs: 0, out: false });
                at
            }
        }
    }

    /// Books an amount for `duration` seconds from `start` on. An amount of 0 is booked as well: it
    /// marks the times at which things change.
    ///
    /// Errors: `Einval` when it is not free throughout, or the times make no sense.
    pub fn add(&mut self, start: i64, duration: i64, amount: u64) -> Result<SpanId, Errno> {
        self.end_search();
        let end = start.checked_add(duration).ok_or(Errno::Einval)?;
        if start < 0 || duration < 1 || self.available_during(start, duration, amount).is_err() {
            return Err(Errno::Einval);
        }
        let id = self.last_id.checked_add(1).ok_or(Errno::Einval)?;
        self.last_id = id;
        self.spans.push(Span { id, start, end, amount });
        if self.points.is_empty() {
            self.add_first(start, end, amount);
            return Ok(id);
        }
        let first = self.point_at(start);
        self.points[first].refs += 1;
        let last = self.point_at(end);
        self.points[last].refs += 1;
        for point in &mut self.points[first..last] {
            point.remaining -= signed(amount);
            point.indexed = point.remaining;
        }
        Ok(id)
    }

    /// The points of the first span.
    fn add_first(&mut self, start: i64, end: i64, amount: u64) {
        let all = signed(self.total);
        let point = |time, remaining, refs| Point { time, remaining, indexed: remaining, refs, out: false };
        let left = all - signed(amount);
        if start == 0 {
            self.points.push(point(0, left, 2));
        } else {
            self.points.push(point(0, all, 1));
            self.points.push(point(start, left, 1));
        }
        self.points.push(point(end, all, 1));
    }

    fn give_back(&mut self, span: Span, amount: u64) {
        let first = self.points.partition_point(|point| point.time < span.start);
        for point in self.points[first..].iter_mut().take_while(|point| point.time < span.end) {
            point.remaining = point.remaining.saturating_add(signed(amount));
            point.indexed = point.remaining;
        }
    }

    /// Takes a span away. Errors: `Einval` for an unknown span.
    pub fn remove(&mut self, id: SpanId) -> Result<Span, Errno> {
        self.end_search();
        let at = self.spans.binary_search_by_key(&id, |span| span.id).map_err(|_| Errno::Einval)?;
        let span = self.spans.remove(at);
        self.give_back(span, span.amount);
        for time in [span.start, span.end] {
            if let Ok(at) = self.points.binary_search_by_key(&time, |point| point.time) {
                self.points[at].refs -= 1;
                if self.points[at].refs == 0 {
                    self.points.remove(at);
                }
            }
        }
        if self.spans.is_empty() && self.points.iter().all(|point| point.remaining == signed(self.total)) {
            self.points = SmallVec::new();
            self.spans = SmallVec::new();
        }
        Ok(span)
    }

    /// Gives back part of a span. All of it takes the span away, even when that is 0; otherwise 0
    /// changes nothing. Errors: `Einval` for an unknown span or more than it holds.
    pub fn reduce(&mut self, id: SpanId, amount: u64) -> Result<Reduced, Errno> {
        let at = self.spans.binary_search_by_key(&id, |span| span.id).map_err(|_| Errno::Einval)?;
        let span = self.spans[at];
        if amount == span.amount {
            self.remove(id)?;
            return Ok(Reduced::Removed);
        }
        if amount > span.amount {
            return Err(Errno::Einval);
        }
        if amount > 0 {
            self.end_search();
            self.give_back(span, amount);
            self.spans[at].amount -= amount;
        }
        Ok(Reduced::Kept)
    }

    /// Changes how much there is in all; what is booked stays booked. With `lag` the time index is not
    /// told and what is free stops at 0, both of which Fluxion does.
    pub fn set_total(&mut self, total: u64, lag: bool) {
        let change = signed(total) - signed(self.total);
        self.total = total;
        if let Some(search) = self.search.as_deref_mut() {
            search.next = 0;
        }
        for point in &mut self.points {
            point.remaining = point.remaining.saturating_add(change);
            if lag {
                point.remaining = point.remaining.max(0);
            } else {
                point.indexed = point.remaining;
            }
        }
    }

    /// Whether at any time more is booked than there is.
    pub fn is_overbooked(&self) -> bool {
        self.points.iter().any(|point| point.remaining < 0)
    }

    /// Whether the points say what total and spans say they should, for checkers.
    pub fn consistent(&self) -> bool {
        self.points.iter().all(|point| {
            let over = self.spans.iter().filter(|span| span.start <= point.time && point.time < span.end);
            let booked: u64 = over.map(|span| span.amount).sum();
            point.remaining == signed(self.total) - signed(booked)
        })
    }

    /// The first time from `not_before` on at which an amount is free for `duration` seconds. Only
    /// times at which something starts or ends are looked at.
    ///
    /// Errors: `Einval` when the times make no sense, `Erange` when there never is that much, `Enoent`
    /// when there is no such time.
    pub fn first_time(&mut self, not_before: i64, duration: i64, amount: u64) -> Result<i64, Errno> {
        self.end_search();
        if not_before < 0 || duration < 1 {
            return Err(Errno::Einval);
        }
        if amount > self.total {
            return Err(Errno::Erange);
        }
        if self.points.is_empty() {
            self.point_at(0);
        }
        self.search = Some(Box::new(Search { not_before, duration, amount: signed(amount), next: 0 }));
        self.next_time()
    }

    /// The next such time. Errors: `Enoent` when there is none, `Einval` when none was asked for.
    pub fn next_time(&mut self) -> Result<i64, Errno> {
        let search = self.search.as_deref_mut().ok_or(Errno::Einval)?;
        loop {
            let rest = self.points.get(search.next..).unwrap_or_default();
            let found = rest.iter().position(|p| !p.out && p.indexed >= search.amount);
            let Some(offset) = found else { return Err(Errno::Enoent) };
            let at = search.next + offset;
            search.next = at + 1;
            self.points[at].out = true;
            let start = self.points[at].time;
            if start < search.not_before {
                continue;
            }
            let end = start.saturating_add(search.duration);
            let mut covered = self.points[at..].iter().take_while(|p| p.time < end);
            if covered.any(|p| p.remaining < search.amount) {
                continue;
            }
            if start.checked_add(search.duration).is_none() {
                return Err(Errno::Enoent);
            }
            return Ok(start);
        }
    }
}
