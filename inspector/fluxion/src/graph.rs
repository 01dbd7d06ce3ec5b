//! The resource graph: what exists and how it hangs together.
//!
//! Vertices and edges live in arenas and are named by small ids, strings are interned, paths are kept
//! as parent and last component, so that a machine of 100,000 nodes fits in memory. The graph knows
//! what there is (also whether it is up and which properties it carries), but not who uses it: what is
//! booked when belongs to the matcher.

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
