//! What a match, an update or a search tells whoever writes it down.
//!
//! The walk calls for every vertex after everything below it, and for an edge right after the subtree
//! it leads to; so the root comes last.

pub use crate::errno::Errno;
use crate::graph::{EdgeId, Graph, TypeId, VertexId};

/// Use of one aggregate of a vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregateUse {
    /// The type that is summed up.
    pub type_id: TypeId,
    /// How much of it is used.
    pub used: u64,
    /// How much of it there is below the vertex.
    pub total: u64,
}

/// One vertex of an answer.
#[derive(Clone, Debug)]
pub struct VertexEvent<'a> {
    /// Its distance from above the root: 1 for the root.
    pub depth: u32,
    /// Which vertex.
    pub vertex: VertexId,
    /// How much of it is taken.
    pub needs: u64,
    /// Whether nobody else may use it.
    pub exclusive: bool,
    /// Whether its parent is taken exclusively.
    pub parent_exclusive: bool,
    /// The label of the request entry it was visited for.
    pub label: Option<&'a str>,
    /// Its aggregates, when a search asked for them.
    pub aggregates: Option<&'a [AggregateUse]>,
}

/// Takes down an answer.
pub trait Sink {
    /// A vertex, after everything below it.
    fn vertex(&mut self, graph: &Graph, event: &VertexEvent<'_>);
    /// An edge, after the subtree of its target. `exclusive` tells about its source.
    fn edge(&mut self, graph: &Graph, edge: EdgeId, exclusive: bool);
    /// When the answer holds, in seconds: from `start` up to `end`.
    fn times(&mut self, start: i64, end: i64);
    /// The queue the request names.
    fn queue(&mut self, queue: &str);
}

/// Turns what a [`Sink`] gathered into text.
pub trait Emit: Sink {
    /// Appends the text for everything gathered since the last call and forgets it. On an error
    /// nothing is appended; whether what was gathered is kept depends on the format.
    fn emit(&mut self, graph: &Graph, out: &mut String) -> Result<(), Errno>;
}
