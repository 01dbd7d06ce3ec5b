//! The seam at which another matcher is plugged into the engine: for requests that the canonical jobspec can't express.
//!
//! The extension decides where and when; what it chooses is booked on the graph, told and cancelled like every other
//! match. Its requests are read by a [`crate::jobspec::Reader`].

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;

use super::book::Booking;
use super::books::{Books, Hold, JobId};
use super::engine::{Engine, Failure};
use super::operations::{Found, Operation};
use super::policy::Policy;
use super::scratch::Mark;
use super::sink::Sink;
use crate::errno::Errno;
use crate::graph::{EdgeId, Graph, Subsystem, TypeId, VertexId};
use crate::jobspec::Extra;

/// How much is taken of each pool, which may be less than its size.
pub type Pieces = BTreeMap<VertexId, u64>;

/// What an extension sees of the engine.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// What is booked on it.
    pub books: &'a Books,
    /// The subsystem that is walked, booked and printed.
    pub dominant: Subsystem,
    /// The type of vertices that are nodes.
    pub node_type: TypeId,
    /// Which candidates come first.
    pub policy: Policy,
}

/// What is asked of an extension.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// What is to be done.
    pub operation: Operation,
    /// The request, as the reader of the extension left it.
    pub request: &'a Extra,
    /// Seconds.
    pub now: i64,
}

/// What an extension chose.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Start, in seconds.
    pub at: i64,
    /// Seconds for which it holds.
    pub duration: i64,
    /// What is taken; empty where the operation only asks whether the request could ever be met.
    pub pieces: Pieces,
}

/// Another matcher. While one is plugged in, pools are divisible: jobs may hold part of a vertex.
pub trait Extension: Any + Debug + Send + Sync {
    /// A copy, for an engine that is cloned.
    fn boxed_clone(&self) -> Box<dyn Extension>;

    /// The graph has changed: what followed from it is out of date.
    fn forget(&mut self);

    /// The books of these vertices may have changed since the last call; those of any vertex where none are named.
    /// Called before every question.
    fn follow(&mut self, view: View<'_>, changed: Option<Vec<VertexId>>);

    /// Where and when a request starts, and what it takes there.
    ///
    /// Errors: as those of [`Engine::match_job`].
    fn choose(&mut self, view: View<'_>, ask: Ask<'_>) -> Result<Choice, Failure>;

    /// What was chosen last is now held by a job.
    fn booked(&mut self, job: JobId);

    /// A job no longer holds anything.
    fn cancelled(&mut self, job: JobId);

    /// The edge by which a vertex is reached from the root.
    fn way_to(&self, id: VertexId) -> Option<EdgeId>;

    /// Everything that does not add up, in words. The books of `pending` may have changed since the last
    /// [`Extension::follow`].
    fn check(&self, view: View<'_>, pending: &[VertexId]) -> Vec<String>;
}

impl Clone for Box<dyn Extension> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

impl Engine {
    /// Plugs another matcher in, in place of one that was.
    pub fn plug_in(&mut self, extension: impl Extension) {
        self.extension = Some(Box::new(extension));
    }

    /// Whether another matcher is plugged in, so that pools are divisible.
    pub fn is_extended(&self) -> bool {
        self.extension.is_some()
    }

    /// The matcher that is plugged in, up to date, with what it sees; none where none of this type is.
    pub fn extension<T: Extension>(&mut self) -> Option<(&mut T, View<'_>)> {
        let (extension, view) = self.caught_up()?;
        let extension: &mut dyn Any = extension;
        Some((extension.downcast_mut::<T>()?, view))
    }

    /// Books what is taken of pools for a job, from `start` for `duration` seconds, as an allocation when it starts at
    /// 0 and as a reservation otherwise.
    ///
    /// Errors: `Einval` for pieces that no way from the root leads to.
    pub fn book_pieces(
        &mut self,
        job: JobId,
        start: i64,
        duration: i64,
        pieces: &Pieces,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        let hold = if start == 0 { Hold::Allocation } else { Hold::Reservation };
        self.take(job, (start, duration), Some(hold), pieces, sink)
    }

    pub(super) fn view(&self) -> View<'_> {
        View {
            graph: &self.graph,
            books: &self.books,
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
            return Err(Failure::new(
                Errno::Einval,
                "no matcher that understands this request is plugged in",
            ));
        };
        let Choice { at, duration, pieces } = extension.choose(view, Ask { operation, request, now })?;
        let found = Found { at, duration };
        if operation == Operation::Satisfiability {
            return Ok(found);
        }
        let hold = match (operation.books(), at == now) {
            (false, _) => None,
            (true, true) => Some(Hold::Allocation),
            (true, false) => Some(Hold::Reservation),
        };
        self.scratch.errno = Errno::Unset;
        self.take(job, (at, duration), hold, &pieces, sink)?;
        if self.scratch.errno != Errno::Unset {
            // The sums above the pools can't take it, although the pools can.
            let errno = self.scratch.errno;
            self.cancel(job)?;
            return Err(Failure::new(errno, "the sums of the graph can't hold as much"));
        }
        if let Some(extension) = self.extension.as_deref_mut().filter(|_| operation.books()) {
            extension.booked(job);
        }
        Ok(found)
    }

    fn take(
        &mut self,
        job: JobId,
        (start, duration): (i64, i64),
        hold: Option<Hold>,
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

    /// The extension, which is told what has changed in the books, and what it sees.
    fn caught_up(&mut self) -> Option<(&mut dyn Extension, View<'_>)> {
        let extension = self.extension.as_deref_mut()?;
        let changes = self.books.changes();
        let view = View {
            graph: &self.graph,
            books: &self.books,
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
        let mut reached = std::collections::BTreeSet::new();
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
