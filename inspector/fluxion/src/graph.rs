//! The resource graph: resources and their relationships.
//!
//! Vertices and edges are stored in arenas and identified by small ids, strings are interned, and paths are
//! stored as parent and last component, so that a machine with 100,000 nodes fits in memory. The graph
//! contains the resources with their status and properties, but not their usage: allocations are part of
//! the matcher.

mod edit;
mod ids;
mod intern;
mod shared;
mod store;
mod vertex;

pub use edit::GraphError;
pub use ids::{EdgeId, PathId, Subsystem, Sym, TypeId, VertexId};
pub use intern::{Interner, PathTable};
pub use store::{BUILT_IN_TYPES, Edge, Graph};
pub use vertex::{Status, Vertex, VertexSpec};
