//! Interface for matcher extensions, for requests that the canonical jobspec can't express.
//!
//! The extension selects resources and start times; the engine allocates, reports and cancels them like any other
//! match. Its requests are parsed by a [`crate::jobspec::Reader`].

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;

use super::allocations::Allocations;
use super::job::JobId;
use super::operation::{Failure, Operation};
use super::policy::Policy;
use crate::graph::{EdgeId, Graph, Subsystem, TypeId, VertexId};
use crate::jobspec::Extra;

/// The amount allocated from each pool, which can be less than its size.
pub type Pieces = BTreeMap<VertexId, u64>;

/// An extension's view of the engine.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The allocations.
    pub allocations: &'a Allocations,
    /// The dominant subsystem, which is traversed, allocated and printed.
    pub dominant: Subsystem,
    /// The type of nodes.
    pub node_type: TypeId,
    /// The match policy.
    pub policy: Policy,
}

/// A request to an extension.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The operation.
    pub operation: Operation,
    /// The request, as parsed by the reader of the extension.
    pub request: &'a Extra,
    /// Duration in seconds.
    pub now: i64,
}

/// The selection made by an extension.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Start, in seconds.
    pub at: i64,
    /// Duration in seconds.
    pub duration: i64,
    /// The selected amounts; empty if the operation only checks satisfiability.
    pub pieces: Pieces,
}

/// A matcher extension. While one is set, pools are divisible: jobs can use part of a vertex.
pub trait Extension: Any + Debug + Send + Sync {
    /// Creates a copy for a cloned engine.
    fn boxed_clone(&self) -> Box<dyn Extension>;

    /// Called when the graph has changed, to invalidate derived data.
    fn forget(&mut self);

    /// Called before every request: the allocations of these vertices may have changed since the last call, or those of
    /// any vertex if none are specified.
    fn follow(&mut self, view: View<'_>, changed: Option<Vec<VertexId>>);

    /// Selects the resources and start time for a request.
    ///
    /// Errors: those of [`super::Engine::match_job`].
    fn choose(&mut self, view: View<'_>, ask: Ask<'_>) -> Result<Choice, Failure>;

    /// Called when the last selection has been allocated to a job.
    fn booked(&mut self, job: JobId);

    /// Called when a job has no resources left.
    fn cancelled(&mut self, job: JobId);

    /// The edge by which a vertex is reachable from the root.
    fn way_to(&self, id: VertexId) -> Option<EdgeId>;

    /// Checks the invariants and returns descriptions of violations. The allocations of `pending` may have changed since
    /// the last [`Extension::follow`].
    fn check(&self, view: View<'_>, pending: &[VertexId]) -> Vec<String>;
}

impl Clone for Box<dyn Extension> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}
