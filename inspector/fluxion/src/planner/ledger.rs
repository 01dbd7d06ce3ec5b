//! Many spans of one planner: the points in time between which what is free stays the same, kept up to date with
//! each span, and the iteration over times at which enough is free.

use super::{Ledger, Point, Span, SpanId, signed};
use crate::errno::Errno;

impl Ledger {
    pub(super) fn position(&self, id: SpanId) -> Option<usize> {
        self.spans.binary_search_by_key(&id, |(span, _)| *span).ok()
    }

    /// Puts every point back into the index, as what it is now.
    pub(super) fn end_search(&mut self) {
        if self.search.take().is_some() {
            for point in self.points.iter_mut().filter(|point| point.out) {
                point.out = false;
                point.indexed = point.remaining;
            }
        }
    }

    /// The position of the point at a time, which is made when missing.
    pub(super) fn point_at(&mut self, time: i64, total: u64) -> usize {
        let all = signed(total);
        if self.points.is_empty() {
            self.points.push(Point { time: 0, remaining: all, indexed: all, refs: 1, out: false });
        }
        self.points.binary_search_by_key(&time, |point| point.time).unwrap_or_else(|at| {
            let before = at.checked_sub(1).map_or(all, |before| self.points[before].remaining);
            let point = Point { time, remaining: before, indexed: before, refs: 0, out: false };
            self.points.insert(at, point);
            at
        })
    }

    /// Adds a span that is known to fit, with an id larger than all others.
    pub(super) fn add(&mut self, id: SpanId, span: Span, total: u64) {
        self.spans.push((id, span));
        let first = self.point_at(span.start, total);
        self.points[first].refs += 1;
        let last = self.point_at(span.end, total);
        self.points[last].refs += 1;
        for point in &mut self.points[first..last] {
            point.remaining -= signed(span.amount);
            point.indexed = point.remaining;
        }
    }

    fn give_back(&mut self, span: Span, amount: u64) {
        let first = self.points.partition_point(|point| point.time < span.start);
        for point in self.points[first..].iter_mut().take_while(|point| point.time < span.end) {
            point.remaining = point.remaining.saturating_add(signed(amount));
            point.indexed = point.remaining;
        }
    }

    pub(super) fn remove(&mut self, id: SpanId) -> Result<Span, Errno> {
        self.end_search();
        let at = self.position(id).ok_or(Errno::Einval)?;
        let (_, span) = self.spans.remove(at);
        self.give_back(span, span.amount);
        for time in [span.start, span.end] {
            if let Ok(at) = self.points.binary_search_by_key(&time, |point| point.time) {
                self.points[at].refs -= 1;
                if self.points[at].refs == 0 {
                    self.points.remove(at);
                }
            }
        }
        Ok(span)
    }

    /// Gives back less than a span holds.
    pub(super) fn reduce(&mut self, id: SpanId, amount: u64) {
        self.end_search();
        if let Some(at) = self.position(id) {
            self.give_back(self.spans[at].1, amount);
            self.spans[at].1.amount -= amount;
        }
    }

    pub(super) fn next_time(&mut self) -> Result<i64, Errno> {
        let search = self.search.as_mut().ok_or(Errno::Einval)?;
        loop {
            let rest = self.points.get(search.next..).unwrap_or_default();
            let found = rest.iter().position(|point| !point.out && point.indexed >= search.amount);
            let Some(offset) = found else { return Err(Errno::Enoent) };
            let at = search.next + offset;
            search.next = at + 1;
            self.points[at].out = true;
            let start = self.points[at].time;
            if start < search.not_before {
                continue;
            }
            let end = start.saturating_add(search.duration);
            let mut covered = self.points[at..].iter().take_while(|point| point.time < end);
            if covered.any(|point| point.remaining < search.amount) {
                continue;
            }
            if start.checked_add(search.duration).is_none() {
                return Err(Errno::Enoent);
            }
            return Ok(start);
        }
    }
}
