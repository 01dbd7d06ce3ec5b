//! How the engine uses a matcher extension.

use std::any::Any;
use std::collections::BTreeSet;

use super::book::Booking;
use super::engine::Engine;
use super::extension::{Ask, Choice, Extension, Pieces, View};
use super::job::{AllocationKind, JobId};
use super::operation::{Failure, Found, Operation};
use super::scratch::Mark;
use super::sink::Sink;
use crate::errno::Errno;
use crate::graph::VertexId;
use crate::jobspec::Extra;

impl Engine {
    /// Sets the matcher extension, replacing any previous one.
    pub fn plug_in(&mut self, extension: impl Extension) {
        self.extension = Some(Box::new(extension));
    }

    /// Whether a matcher extension is set, so that pools are divisible.
    pub fn is_extended(&self) -> bool {
        self.extension.is_some()
    }

    /// The up-to-date matcher extension and its view; none if there is none of this type.
    pub fn extension<T: Extension>(&mut self) -> Option<(&mut T, View<'_>)> {
        let (extension, view) = self.caught_up()?;
        let extension: &mut dyn Any = extension;
        Some((extension.downcast_mut::<T>()?, view))
    }

    /// Allocates parts of pools to a job, from `start` for `duration` seconds: as an allocation if it starts at 0,
    /// otherwise as a reservation.
    ///
    /// Errors: `Einval` for pools that are not reachable from the root.
    pub fn book_pieces(
        &mut self,
        job: JobId,
        start: i64,
        duration: i64,
        pieces: &Pieces,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let hold = if start == 0 { AllocationKind::Allocation } else { AllocationKind::Reservation };
        self.take(job, (start, duration), Some(hold), pieces, sink)
    }

    pub(super) fn view(&self) -> View<'_> {
        View {
            graph: &self.graph,
            allocations: &self.allocations,
            dominant: self.dominant,
            node_type: self.node_type,
            policy: self.policy,
        }
    }

    /// Matches a request that only the extension understands; see [`Engine::match_job`].
    pub(super) fn match_extended(
        &mut self,
        operation: Operation,
        request: &Extra,
        job: JobId,
        now: i64,
        sink: &mut dyn Sink,
    ) -> Result<Found, Failure> {
        let Some((extension, view)) = self.caught_up() else {
            return Err(Failure::new(Errno::Einval, "no matcher supports this request"));
        };
        let Choice { at, duration, pieces } = extension.choose(view, Ask { operation, request, now })?;
        let found = Found { at, duration };
        if operation == Operation::Satisfiability {
            return Ok(found);
        }
        let hold = match (operation.allocates(), at == now) {
            (false, _) => None,
            (true, true) => Some(AllocationKind::Allocation),
            (true, false) => Some(AllocationKind::Reservation),
        };
        self.scratch.errno = Errno::Unset;
        self.take(job, (at, duration), hold, &pieces, sink)?;
        if self.scratch.errno != Errno::Unset {
            // The sums above the pools can't take it, although the pools can.
            let errno = self.scratch.errno;
            self.cancel(job)?;
            return Err(Failure::new(errno, "the amount exceeds the aggregates of the graph"));
        }
        if let Some(extension) = self.extension.as_deref_mut().filter(|_| operation.allocates()) {
            extension.booked(job);
        }
        Ok(found)
    }

    fn take(
        &mut self,
        job: JobId,
        (start, duration): (i64, i64),
        hold: Option<AllocationKind>,
        pieces: &Pieces,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        self.mark_pieces(pieces);
        let booking = Booking {
            job,
            start,
            duration,
            hold,
            spans_exist: false,
            divisible: true,
            exclusive_types: Vec::new(),
        };
        self.book(&booking, sink)
    }

    /// The extension, which is told what has changed in the allocations, and what it sees.
    fn caught_up(&mut self) -> Option<(&mut dyn Extension, View<'_>)> {
        let extension = self.extension.as_deref_mut()?;
        let changes = self.allocations.changes();
        let view = View {
            graph: &self.graph,
            allocations: &self.allocations,
            dominant: self.dominant,
            node_type: self.node_type,
            policy: self.policy,
        };
        extension.follow(view, changes);
        Some((extension, view))
    }

    /// Marks the pieces, and a way to each from the root.
    fn mark_pieces(&mut self, pieces: &Pieces) {
        self.scratch.start(&self.graph);
        let mut reached = BTreeSet::<VertexId>::new();
        for (&pool, &needs) in pieces {
            let mut at = pool;
            let mut mark = (needs, true);
            while let Some(edge) = self.extension.as_deref().and_then(|extension| extension.way_to(at)) {
                let parent = self.graph.edge(edge).source;
                self.scratch.mark(&self.graph, edge, mark.0, mark.1);
                if !reached.insert(parent) {
                    break;
                }
                at = parent;
                mark = (self.graph.vertex(at).size, false);
            }
        }
        if let Some(root) = self.root() {
            let needs = self.graph.vertex(root).size;
            self.scratch.root_mark = Mark { round: self.scratch.round, exclusive: false, needs };
        }
    }
}
