//! The seam at which another matcher is plugged into the engine: for requests that the canonical jobspec can't express.
//!
//! The extension decides where and when; what it chooses is booked on the graph, told and cancelled like every other
//! match. Its requests are read by a [`crate::jobspec::Reader`].

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;

use super::allocations::Allocations;
use super::job::JobId;
use super::operation::{Failure, Operation};
use super::policy::Policy;
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
    pub allocations: &'a Allocations,
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
    /// Errors: as those of [`super::Engine::match_job`].
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
