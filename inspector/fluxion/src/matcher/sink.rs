//! Interface between the engine and the writers of its results.
//!
//! The traversal reports each vertex after its descendants, and each edge right after its target's
//! subtree, so the root comes last.

pub use crate::errno::Errno;
use crate::graph::{EdgeId, Graph, TypeId, VertexId};

/// Usage of one aggregate of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregateUse {
    /// The aggregated type.
    pub type_id: TypeId,
    /// The used amount.
    pub used: u64,
    /// The total amount below the vertex.
    pub total: u64,
}

/// A vertex of a result.
#[derive(Clone, Debug)]
pub struct VertexEvent<'a> {
    /// Depth; 1 for the root.
    pub depth: u32,
    /// The vertex.
    pub vertex: VertexId,
    /// The allocated amount.
    pub needs: u64,
    /// Whether it is allocated exclusively.
    pub exclusive: bool,
    /// Whether its parent is allocated exclusively.
    pub parent_exclusive: bool,
    /// The label of the request entry it was visited for.
    pub label: Option<&'a str>,
    /// Its aggregates, if the search requested them.
    pub aggregates: Option<&'a [AggregateUse]>,
}

/// Receives a result.
pub trait Sink {
    /// Reports a vertex, after its descendants.
    fn vertex(&mut self, graph: &Graph, event: &VertexEvent<'_>);
    /// Reports an edge, after the subtree of its target. `exclusive` refers to its source.
    fn edge(&mut self, graph: &Graph, edge: EdgeId, exclusive: bool);
    /// Reports the time range of the result in seconds, from `start` up to `end`.
    fn times(&mut self, start: i64, end: i64);
    /// Reports the queue of the request.
    fn queue(&mut self, queue: &str);
}

/// Formats the result that a [`Sink`] received.
pub trait Emit: Sink {
    /// Appends the text for the result received since the last call and clears it. On error,
    /// nothing is appended; whether the result is cleared depends on the format.
    fn emit(&mut self, graph: &Graph, out: &mut String) -> Result<(), Errno>;
}
