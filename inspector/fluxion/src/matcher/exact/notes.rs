//! What a walk notes when somebody asks why: at which vertices it turned back, for which reason, and from
//! when on that reason is gone.
//!
//! A walk that nobody asks looks once at an empty place on its way back, and notes nothing.

use super::collector::Collector;
use super::walk::Walk;
use crate::graph::VertexId;
use crate::matcher::allocations::{Account, JobEntry};
use crate::matcher::notes::{Missing, Note};
use crate::matcher::operation::LIFETIME;
use crate::matcher::request::EntryId;
use crate::matcher::why::Reason;
use crate::planner::MultiPlanner;

impl Walk<'_, '_, '_> {
    /// Whether to turn back at a vertex. The error number says so; with notes, a vertex of which only the
    /// sums are too low is noted and looked into all the same.
    pub(super) fn turn_back(&mut self, id: VertexId, reason: Reason, list: &[EntryId]) -> bool {
        self.scratch.errno = reason.errno();
        if self.scratch.notes.is_none() {
            return true;
        }
        let until = self.gone_at(id, reason, list);
        self.note(id, Note { reason, until, summed: true });
        !matches!(reason, Reason::Aggregate | Reason::TooSmall)
    }

    /// Notes that what is below a vertex does not make what its entries ask for.
    pub(super) fn note_shortage(&mut self, id: VertexId, list: &[EntryId], found: &Collector) {
        if self.scratch.notes.is_none() {
            return;
        }
        self.note_small(id);
        let of = self.ask.graph.vertex(id).type_id;
        for entry in self.ask.request.list(list).filter(|entry| entry.type_id == of) {
            self.note_missing(&entry.with, found);
        }
    }

    /// Notes that a vertex can't give what is asked for.
    pub(super) fn note_small(&mut self, id: VertexId) {
        self.note(id, Note { reason: Reason::TooSmall, until: None, summed: false });
    }

    /// Notes what is missing of a list. Choices are made from below, so the last one is the topmost.
    pub(super) fn note_missing(&mut self, list: &[EntryId], found: &Collector) {
        let Some(notes) = &mut self.scratch.notes else { return };
        let counted = self.ask.request.list(list).map(|entry| Missing {
            type_id: entry.type_id,
            wanted: u64::from(entry.count.min),
            found: found.qualified(entry.type_id),
        });
        let missing: Vec<Missing> = counted.filter(|missing| missing.found < missing.wanted).collect();
        if !missing.is_empty() {
            notes.missing = missing;
        }
    }

    fn note(&mut self, id: VertexId, note: Note) {
        if let Some(notes) = &mut self.scratch.notes {
            notes.turned_back.entry(id).or_insert(note);
        }
    }

    /// The first end of something booked after which the reason no longer holds.
    fn gone_at(&self, id: VertexId, reason: Reason, list: &[EntryId]) -> Option<i64> {
        let ask = &self.ask;
        let account = ask.allocations.get(id)?;
        let free = |at: i64| match reason {
            Reason::Held => account.plan.min_during(at, ask.duration).is_ok_and(|free| free > 0),
            Reason::Exclusive => !account.is_visited(at, at.saturating_add(ask.duration)),
            Reason::Aggregate => self.sums_suffice(id, at, list),
            _ => false,
        };
        let mut ends = ends(account, reason);
        ends.retain(|end| *end > ask.at);
        ends.sort_unstable();
        ends.dedup();
        ends.into_iter().find(|&end| free(end)).filter(|end| *end < LIFETIME)
    }

    fn sums_suffice(&self, id: VertexId, at: i64, list: &[EntryId]) -> bool {
        let of = self.ask.graph.vertex(id).type_id;
        let mut asking = self.ask.request.list(list).filter(|entry| entry.type_id == of || entry.is_slot);
        asking.all(|entry| self.prune_aggregates(id, at, entry).is_ok())
    }
}

/// When things end that are booked at a vertex.
fn ends(account: &Account, reason: Reason) -> Vec<i64> {
    match reason {
        Reason::Held => account.plan.spans().map(|(_, span)| span.end).collect(),
        Reason::Exclusive => {
            account.entries().iter().filter_map(JobEntry::presence).map(|(_, end)| end).collect()
        }
        _ => {
            let sums = account.aggregates.as_deref().into_iter().flat_map(MultiPlanner::planners);
            sums.flat_map(|(_, planner)| planner.spans()).map(|(_, span)| span.end).collect()
        }
    }
}
