//! Several quantities planned together: the aggregates of the resources below a vertex.

use std::num::NonZeroU32;

use super::{Planner, Reduced, SpanId};
use crate::errno::Errno;
use crate::graph::TypeId;

/// Id of a span over all quantities; ids start at 1.
pub type MultiSpan = NonZeroU32;

/// One planner per type. The order is significant: the first planner proposes the times to try.
#[derive(Clone, Debug, Default)]
pub struct MultiPlanner {
    kinds: Vec<(TypeId, Planner)>,
    /// Per span, sorted by its number: the span in each planner, where it has one.
    spans: Vec<(MultiSpan, Vec<(TypeId, SpanId)>)>,
    /// 0 before the first.
    last_id: u32,
    search: Option<(i64, Vec<u64>)>,
}

impl MultiPlanner {
    /// Creates a planner with these types and totals.
    pub fn new(totals: impl IntoIterator<Item = (TypeId, u64)>) -> Self {
        let kinds = totals.into_iter().map(|(of, total)| (of, Planner::new(total))).collect();
        Self { kinds, ..Self::default() }
    }

    /// The types, in order.
    pub fn types(&self) -> impl Iterator<Item = TypeId> + '_ {
        self.kinds.iter().map(|(of, _)| *of)
    }

    /// Types and planners, in order.
    pub fn planners(&self) -> impl Iterator<Item = (TypeId, &Planner)> {
        self.kinds.iter().map(|(of, planner)| (*of, planner))
    }

    /// The planner of a type.
    pub fn planner(&self, of: TypeId) -> Option<&Planner> {
        self.kinds.iter().find(|(kind, _)| *kind == of).map(|(_, planner)| planner)
    }

    /// The planner of the last type.
    pub fn last(&self) -> Option<&Planner> {
        self.kinds.last().map(|(_, planner)| planner)
    }

    /// Number of spans.
    pub fn span_count(&self) -> usize {
        self.spans.len()
    }

    /// First and last second of all spans; none if there are no spans.
    pub fn hull(&self) -> Option<(i64, i64)> {
        let all = self.kinds.iter().filter_map(|(_, planner)| planner.hull());
        all.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Whether a span exists.
    pub fn has_span(&self, id: MultiSpan) -> bool {
        self.position(id).is_some()
    }

    fn position(&self, id: MultiSpan) -> Option<usize> {
        self.spans.binary_search_by_key(&id, |(span, _)| *span).ok()
    }

    /// The amount of a type in a span.
    pub fn amount(&self, id: MultiSpan, of: TypeId) -> u64 {
        let Some(at) = self.position(id) else { return 0 };
        let part = self.spans[at].1.iter().find(|(kind, _)| *kind == of);
        part.and_then(|&(_, span)| self.planner(of)?.span(span)).map_or(0, |span| span.amount)
    }

    /// Allocates an amount of every type, as returned by `amount`; 0 also adds a span.
    pub fn add(
        &mut self,
        start: i64,
        duration: i64,
        amount: impl Fn(TypeId) -> u64,
    ) -> Result<MultiSpan, Errno> {
        let mut parts: Vec<(TypeId, SpanId)> = Vec::with_capacity(self.kinds.len());
        for at in 0..self.kinds.len() {
            let (of, planner) = &mut self.kinds[at];
            match planner.add(start, duration, amount(*of)) {
                Ok(span) => parts.push((*of, span)),
                Err(errno) => {
                    for ((_, planner), (_, span)) in self.kinds.iter_mut().zip(parts) {
                        planner.remove(span)?;
                    }
                    return Err(errno);
                }
            }
        }
        let id = self.last_id.checked_add(1).and_then(NonZeroU32::new).ok_or(Errno::Einval)?;
        self.last_id = id.get();
        self.spans.push((id, parts));
        Ok(id)
    }

    /// Allocates an amount of another type as part of a span, if there is a planner for the type and the span does not
    /// include it yet. Errors: `Einval` for an unknown span, or if the amount is not free.
    pub fn extend(
        &mut self,
        id: MultiSpan,
        of: TypeId,
        start: i64,
        duration: i64,
        amount: u64,
    ) -> Result<(), Errno> {
        let at = self.position(id).ok_or(Errno::Einval)?;
        let parts = &mut self.spans[at].1;
        let Some((_, planner)) = self.kinds.iter_mut().find(|(kind, _)| *kind == of) else { return Ok(()) };
        if !parts.iter().any(|(kind, _)| *kind == of) {
            parts.push((of, planner.add(start, duration, amount)?));
        }
        Ok(())
    }

    /// Removes a span from all planners. Errors: `Einval` for an unknown span.
    pub fn remove(&mut self, id: MultiSpan) -> Result<(), Errno> {
        let at = self.position(id).ok_or(Errno::Einval)?;
        let (_, parts) = self.spans.remove(at);
        for (of, span) in parts {
            if let Some((_, planner)) = self.kinds.iter_mut().find(|(kind, _)| *kind == of) {
                planner.remove(span)?;
            }
        }
        Ok(())
    }

    /// Reduces a span by the amount of each type returned by `amount`. If nothing is left of any type, the
    /// span is removed. Errors: `Einval` for an unknown span or more than its amount; types after the
    /// one that failed are not changed.
    pub fn reduce(&mut self, id: MultiSpan, amount: impl Fn(TypeId) -> u64) -> Result<Reduced, Errno> {
        let at = self.position(id).ok_or(Errno::Einval)?;
        let mut parts = std::mem::take(&mut self.spans[at].1);
        let mut outcome = Ok(());
        parts.retain(|&(of, span)| {
            if outcome.is_err() {
                return true;
            }
            let planner = self.kinds.iter_mut().find(|(kind, _)| *kind == of);
            match planner.map(|(_, planner)| planner.reduce(span, amount(of))) {
                Some(Ok(Reduced::Removed)) | None => false,
                Some(Ok(Reduced::Kept)) => true,
                Some(Err(errno)) => {
                    outcome = Err(errno);
                    true
                }
            }
        });
        let gone = parts.is_empty();
        self.spans[at].1 = parts;
        outcome?;
        if gone {
            self.spans.remove(at);
            return Ok(Reduced::Removed);
        }
        Ok(Reduced::Kept)
    }

    /// Changes the types, their order and totals. Planners of existing types keep their spans, new
    /// planners have none, and omitted types are removed.
    pub fn reshape(&mut self, totals: &[(TypeId, u64)], lag: bool) {
        let mut old = std::mem::take(&mut self.kinds);
        for &(of, total) in totals {
            let known = old.iter().position(|(kind, _)| *kind == of);
            let planner = match known {
                Some(at) => {
                    let mut planner = old.swap_remove(at).1;
                    planner.set_total(total, lag);
                    planner
                }
                None => Planner::new(total),
            };
            self.kinds.push((of, planner));
        }
        for (_, parts) in &mut self.spans {
            parts.retain(|(of, _)| totals.iter().any(|(kind, _)| kind == of));
        }
        self.search = None;
    }

    /// Whether an amount of every type is free the whole time; the error is that of the first type that fails.
    pub fn available_during(
        &self,
        start: i64,
        duration: i64,
        amount: impl Fn(TypeId) -> u64,
    ) -> Result<(), Errno> {
        self.kinds.iter().try_for_each(|(of, planner)| planner.available_during(start, duration, amount(*of)))
    }

    /// The first time at which all amounts are free; see [`Planner::first_time`].
    pub fn first_time(
        &mut self,
        not_before: i64,
        duration: i64,
        amount: impl Fn(TypeId) -> u64,
    ) -> Result<i64, Errno> {
        let amounts: Vec<u64> = self.kinds.iter().map(|(of, _)| amount(*of)).collect();
        let (Some((_, first)), Some(&wanted)) = (self.kinds.first_mut(), amounts.first()) else {
            return Err(Errno::Enoent);
        };
        self.search = Some((duration, amounts));
        let time = first.first_time(not_before, duration, wanted)?;
        self.accept(time)
    }

    /// The next such time.
    pub fn next_time(&mut self) -> Result<i64, Errno> {
        let Some((_, first)) = self.kinds.first_mut() else { return Err(Errno::Enoent) };
        let time = first.next_time()?;
        self.accept(time)
    }

    fn accept(&mut self, mut time: i64) -> Result<i64, Errno> {
        let Some((duration, amounts)) = self.search.take() else { return Err(Errno::Einval) };
        let found = loop {
            let mut others = self.kinds.iter().zip(&amounts).skip(1);
            if others.all(|((_, planner), &amount)| planner.available_during(time, duration, amount).is_ok())
            {
                break Ok(time);
            }
            match self.kinds[0].1.next_time() {
                Ok(next) => time = next,
                Err(errno) => break Err(errno),
            }
        };
        self.search = Some((duration, amounts));
        found
    }
}
