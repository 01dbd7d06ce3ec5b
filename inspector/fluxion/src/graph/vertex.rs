//! Stored vertices, and descriptions of vertices to add.

use smallvec::SmallVec;

use super::ids::{EdgeId, PathId, Subsystem, Sym, TypeId};

/// Status of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// The resource can be allocated.
    #[default]
    Up,
    /// The resource must not be allocated.
    Down,
}

/// A resource: a node, a core, a pool of memory.
#[derive(Clone, Debug)]
pub struct Vertex {
    /// The number of its type.
    pub type_id: TypeId,
    /// The name without its number.
    pub basename: Sym,
    /// The full name.
    pub name: Sym,
    /// Unit of the size, such as `GB`; empty for a plain count.
    pub unit: Sym,
    /// The number in the name; -1 for none.
    pub id: i64,
    /// Unique id in the document it was loaded from.
    pub uniq_id: i64,
    /// Size in `unit`.
    pub size: u64,
    /// Execution rank; -1 for none.
    pub rank: i32,
    /// Status.
    pub status: Status,
    /// Removed from the graph: it has no edges and is in no index; only its id remains.
    pub removed: bool,
    /// Paths by subsystem, in the order in which they were added.
    pub paths: SmallVec<[(Subsystem, PathId); 1]>,
    /// Edges to its children in all subsystems, in order of insertion.
    pub out_edges: Vec<EdgeId>,
    /// Edges from its parents in all subsystems, in order of insertion.
    pub in_edges: SmallVec<[EdgeId; 2]>,
}

impl Vertex {
    /// Its path in one subsystem.
    pub fn path(&self, subsystem: Subsystem) -> Option<PathId> {
        self.paths.iter().find(|(of, _)| *of == subsystem).map(|&(_, path)| path)
    }
}

/// The description of a vertex to add.
#[derive(Clone, Debug)]
pub struct VertexSpec<'a> {
    /// Type, such as `core`.
    pub type_name: &'a str,
    /// The name without its number.
    pub basename: &'a str,
    /// The full name.
    pub name: &'a str,
    /// The number in the name; -1 for none.
    pub id: i64,
    /// Unique id; defaults to the position in the graph.
    pub uniq_id: Option<i64>,
    /// Execution rank; -1 for none.
    pub rank: i32,
    /// Size in `unit`.
    pub size: u64,
    /// Unit of the size; empty for a plain count.
    pub unit: &'a str,
    /// Status.
    pub status: Status,
    /// Subsystem and path; can also be set later.
    pub paths: &'a [(Subsystem, &'a str)],
    /// Keys and values of the properties.
    pub properties: &'a [(&'a str, &'a str)],
}

impl Default for VertexSpec<'_> {
    fn default() -> Self {
        Self {
            type_name: "",
            basename: "",
            name: "",
            id: -1,
            uniq_id: None,
            rank: -1,
            size: 1,
            unit: "",
            status: Status::Up,
            paths: &[],
            properties: &[],
        }
    }
}
