//! Free amounts of one quantity over time.
//!
//! A planner has a total and the spans allocated from it. Times are in seconds; spans are half-open, so a span
//! ending at 60 and one starting at 60 do not overlap.

mod ledger;
mod multi;
#[cfg(test)]
mod tests;

pub use multi::{MultiPlanner, MultiSpan};

use std::ops::Deref;

use smallvec::SmallVec;

use crate::errno::Errno;

/// The end of the planning horizon; no span can extend beyond it.
pub const END: i64 = i64::MAX;

/// Id of a span; ids start at 1 in each planner.
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

/// An amount allocated from `start` up to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First second of the span.
    pub start: i64,
    /// First second after the span.
    pub end: i64,
    /// The allocated amount.
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

/// What is booked, and the times at which that changes.
#[derive(Clone, Debug, Default)]
struct Ledger {
    /// Sorted by time; empty when nothing is booked, which means: all free.
    points: Vec<Point>,
    /// Sorted by id.
    spans: Vec<(SpanId, Span)>,
    search: Option<Search>,
}

/// The planner of one quantity.
///
/// One that has one span, as most have, keeps it in itself and no points: those follow from the span. Everything
/// else has a ledger.
#[derive(Clone, Debug)]
pub struct Planner {
    total: u64,
    last_id: SpanId,
    /// The number of the only span; 0 without one.
    sole_id: SpanId,
    sole: Span,
    ledger: Option<Box<Ledger>>,
}

/// The points of a planner.
enum Points<'a> {
    Kept(&'a [Point]),
    Made(SmallVec<[Point; 3]>),
}

impl Deref for Points<'_> {
    type Target = [Point];

    fn deref(&self) -> &[Point] {
        match self {
            Self::Kept(points) => points,
            Self::Made(points) => points,
        }
    }
}

/// Result of reducing a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduced {
    /// The span was removed.
    Removed,
    /// The span still exists.
    Kept,
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// No span.
const NONE: Span = Span { start: 0, end: 0, amount: 0 };

impl Planner {
    /// Creates a planner with the total free from 0 to the end of the planning horizon.
    pub fn new(total: u64) -> Self {
        Self { total, last_id: 0, sole_id: 0, sole: NONE, ledger: None }
    }

    /// The total.
    #[inline]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The only span, when there is no ledger.
    #[inline]
    fn sole(&self) -> Option<(SpanId, &Span)> {
        (self.sole_id != 0).then_some((self.sole_id, &self.sole))
    }

    fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_deref()
    }

    /// Number of spans.
    #[inline]
    pub fn span_count(&self) -> usize {
        self.ledger().map_or(usize::from(self.sole_id != 0), |ledger| ledger.spans.len())
    }

    /// A span by id.
    pub fn span(&self, id: SpanId) -> Option<&Span> {
        match self.ledger() {
            Some(ledger) => ledger.position(id).map(|at| &ledger.spans[at].1),
            None => self.sole().filter(|(sole, _)| *sole == id).map(|(_, span)| span),
        }
    }

    /// First and last second of all spans; none if there are no spans.
    pub fn hull(&self) -> Option<(i64, i64)> {
        let first = self.spans().map(|(_, span)| span.start).min()?;
        let last = self.spans().map(|(_, span)| span.end).max()?;
        Some((first, last))
    }

    /// All spans by id.
    pub fn spans(&self) -> impl Iterator<Item = (SpanId, &Span)> {
        let kept = self.ledger().map_or(&[][..], |ledger| &ledger.spans);
        self.sole().into_iter().chain(kept.iter().map(|(id, span)| (*id, span)))
    }

    /// How much is left while a span is booked, and nothing else.
    #[inline]
    fn left_by(&self, span: &Span) -> u64 {
        self.total.saturating_sub(span.amount)
    }

    fn points(&self) -> Points<'_> {
        match self.ledger() {
            Some(ledger) => Points::Kept(&ledger.points),
            None => Points::Made(self.sole_points()),
        }
    }

    /// The points that follow from the only span.
    fn sole_points(&self) -> SmallVec<[Point; 3]> {
        let mut points = SmallVec::new();
        let Some((_, span)) = self.sole() else { return points };
        let all = signed(self.total);
        let left = all - signed(span.amount);
        let point = |time, remaining, refs| Point { time, remaining, indexed: remaining, refs, out: false };
        if span.start == 0 {
            points.push(point(0, left, 2));
        } else {
            points.push(point(0, all, 1));
            points.push(point(span.start, left, 1));
        }
        points.push(point(span.end, all, 1));
        points
    }

    /// The ledger, which is opened when there is none.
    fn open(&mut self) -> &mut Ledger {
        if self.ledger.is_none() {
            let spans = self.sole().map(|(id, span)| (id, *span)).into_iter().collect();
            let ledger = Ledger { points: self.sole_points().into_vec(), spans, search: None };
            self.sole_id = 0;
            self.ledger = Some(Box::new(ledger));
        }
        self.ledger.get_or_insert_default()
    }

    /// The amount that is free at a time.
    pub fn remaining_at(&self, time: i64) -> u64 {
        let Some(ledger) = self.ledger() else {
            let here = self.sole().filter(|(_, span)| (span.start..span.end).contains(&time));
            return here.map_or(self.total, |(_, span)| self.left_by(span));
        };
        let at = ledger.points.partition_point(|point| point.time <= time);
        if at == 0 {
            return self.total;
        }
        u64::try_from(ledger.points[at - 1].remaining).unwrap_or(0)
    }

    /// The minimum free amount during the `duration` seconds from `start` on.
    ///
    /// Errors: `Einval` for a duration below 1, `Erange` if it extends beyond the planning horizon.
    #[inline]
    pub fn min_during(&self, start: i64, duration: i64) -> Result<u64, Errno> {
        if duration < 1 {
            return Err(Errno::Einval);
        }
        let end = start.checked_add(duration).ok_or(Errno::Erange)?;
        match self.ledger() {
            Some(ledger) => {
                let least = in_force(&ledger.points, start, end).map(|point| point.remaining).min();
                Ok(least.map_or(self.total, |least| u64::try_from(least).unwrap_or(0)))
            }
            None => Ok(self.sole_during(start, end).map_or(self.total, |span| self.left_by(span))),
        }
    }

    /// The only span, if it meets a stretch of time.
    #[inline]
    fn sole_during(&self, start: i64, end: i64) -> Option<&Span> {
        self.sole().map(|(_, span)| span).filter(|span| span.start < end && start < span.end)
    }

    /// Whether an amount is free the whole time. Errors: `Erange` if it exceeds the total or the time is out
    /// of range, `Ebusy` if too much is allocated.
    #[inline]
    pub fn available_during(&self, start: i64, duration: i64, amount: u64) -> Result<(), Errno> {
        if amount > self.total {
            return Err(Errno::Erange);
        }
        if duration < 1 {
            return Err(Errno::Einval);
        }
        let end = start.checked_add(duration).ok_or(Errno::Erange)?;
        let short = match self.ledger() {
            // The first point with less decides; nothing is always free.
            Some(ledger) => {
                let wanted = signed(amount);
                amount > 0 && in_force(&ledger.points, start, end).any(|point| point.remaining < wanted)
            }
            None => self.sole_during(start, end).is_some_and(|span| self.left_by(span) < amount),
        };
        if short { Err(Errno::Ebusy) } else { Ok(()) }
    }

    /// The stretches, start and end, over which less than an amount is free, in order; of those that are over
    /// before `from` none.
    pub fn shorts(&self, from: i64, amount: u64) -> impl Iterator<Item = (i64, i64)> + '_ {
        let (points, wanted) = (self.points(), signed(amount));
        let mut at = points.partition_point(|point| point.time <= from).saturating_sub(1);
        std::iter::from_fn(move || {
            let first = at + points[at..].iter().position(|point| point.remaining < wanted)?;
            let free = points[first..].iter().position(|point| point.remaining >= wanted);
            at = free.map_or(points.len(), |free| first + free);
            Some((points[first].time, points.get(at).map_or(END, |point| point.time)))
        })
    }

    fn end_search(&mut self) {
        if let Some(ledger) = self.ledger.as_deref_mut() {
            ledger.end_search();
        }
    }

    /// Allocates an amount for `duration` seconds from `start` on. An amount of 0 also adds a span: it
    /// marks times at which the free amount can change.
    ///
    /// Errors: `Einval` if the amount is not free the whole time, or the times are invalid.
    #[inline]
    pub fn add(&mut self, start: i64, duration: i64, amount: u64) -> Result<SpanId, Errno> {
        self.end_search();
        let end = start.checked_add(duration).ok_or(Errno::Einval)?;
        if start < 0 || duration < 1 || self.available_during(start, duration, amount).is_err() {
            return Err(Errno::Einval);
        }
        let id = self.last_id.checked_add(1).ok_or(Errno::Einval)?;
        self.last_id = id;
        let span = Span { start, end, amount };
        if self.ledger.is_none() && self.sole_id == 0 {
            (self.sole_id, self.sole) = (id, span);
        } else {
            let total = self.total;
            self.open().add(id, span, total);
        }
        Ok(id)
    }

    /// Removes a span. Errors: `Einval` for an unknown span.
    pub fn remove(&mut self, id: SpanId) -> Result<Span, Errno> {
        let all = signed(self.total);
        let Some(ledger) = self.ledger.as_deref_mut() else {
            let (_, span) = self.sole().filter(|(sole, _)| *sole == id).ok_or(Errno::Einval)?;
            let span = *span;
            self.sole_id = 0;
            return Ok(span);
        };
        let span = ledger.remove(id)?;
        if ledger.spans.is_empty() && ledger.points.iter().all(|point| point.remaining == all) {
            self.ledger = None;
        }
        Ok(span)
    }

    /// Reduces the amount of a span. Reducing it by its whole amount removes the span, even if that is 0;
    /// otherwise 0 changes nothing. Errors: `Einval` for an unknown span or more than its amount.
    pub fn reduce(&mut self, id: SpanId, amount: u64) -> Result<Reduced, Errno> {
        let held = self.span(id).ok_or(Errno::Einval)?.amount;
        if amount == held {
            self.remove(id)?;
            return Ok(Reduced::Removed);
        }
        if amount > held {
            return Err(Errno::Einval);
        }
        match self.ledger.as_deref_mut() {
            Some(ledger) if amount > 0 => ledger.reduce(id, amount),
            Some(_) => {}
            None => self.sole.amount -= amount,
        }
        Ok(Reduced::Kept)
    }

    /// Changes the total; spans are kept. With `lag`, the time index is not updated and free amounts do not
    /// drop below 0, as in Fluxion.
    pub fn set_total(&mut self, total: u64, lag: bool) {
        if self.sole_id != 0 {
            self.open();
        }
        let change = signed(total) - signed(self.total);
        self.total = total;
        let Some(ledger) = self.ledger.as_deref_mut() else { return };
        if let Some(search) = &mut ledger.search {
            search.next = 0;
        }
        for point in &mut ledger.points {
            point.remaining = point.remaining.saturating_add(change);
            if lag {
                point.remaining = point.remaining.max(0);
            } else {
                point.indexed = point.remaining;
            }
        }
    }

    /// Whether the allocated amount exceeds the total at any time.
    pub fn is_overbooked(&self) -> bool {
        self.points().iter().any(|point| point.remaining < 0)
    }

    /// Whether the points are consistent with the total and spans.
    pub fn consistent(&self) -> bool {
        self.points().iter().all(|point| {
            let over = self.spans().filter(|(_, span)| span.start <= point.time && point.time < span.end);
            let booked: u64 = over.map(|(_, span)| span.amount).sum();
            point.remaining == signed(self.total) - signed(booked)
        })
    }

    /// The first time from `not_before` on at which an amount is free for `duration` seconds. Only the start
    /// and end times of spans are considered.
    ///
    /// Errors: `Einval` if the times are invalid, `Erange` if the amount exceeds the total, `Enoent` if there
    /// is no such time.
    pub fn first_time(&mut self, not_before: i64, duration: i64, amount: u64) -> Result<i64, Errno> {
        self.end_search();
        if not_before < 0 || duration < 1 {
            return Err(Errno::Einval);
        }
        if amount > self.total {
            return Err(Errno::Erange);
        }
        let total = self.total;
        let ledger = self.open();
        if ledger.points.is_empty() {
            ledger.point_at(0, total);
        }
        ledger.search = Some(Search { not_before, duration, amount: signed(amount), next: 0 });
        self.next_time()
    }

    /// The next such time. Errors: `Enoent` if there is none, `Einval` if no search is active.
    pub fn next_time(&mut self) -> Result<i64, Errno> {
        self.ledger.as_deref_mut().ok_or(Errno::Einval)?.next_time()
    }
}

/// The points in force in a half-open stretch of time.
#[inline]
fn in_force(points: &[Point], start: i64, end: i64) -> impl Iterator<Item = &Point> {
    let first = points.partition_point(|point| point.time <= start).saturating_sub(1);
    points[first..].iter().take_while(move |point| point.time < end || point.time <= start)
}
