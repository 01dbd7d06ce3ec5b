//! A vertex as it is stored, and as it is described to be added.

use smallvec::SmallVec;

use super::ids::{EdgeId, PathId, Subsystem, Sym, TypeId};

/// Whether a resource may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Status {
    /// It may be used.
    #[default]
    Up,
    /// It must not be given to anybody.
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
    /// What the size counts, such as `GB`; empty for plain pieces.
    pub unit: Sym,
    /// The number in the name; -1 for none.
    pub id: i64,
    /// The number that tells it from every other vertex of the document it came from.
    pub uniq_id: i64,
    /// How much there is of it, in `unit`.
    pub size: u64,
    /// The execution rank it belongs to; -1 for none.
    pub rank: i32,
    /// Whether it may be used.
    pub status: Status,
    /// Cut out of the graph: it has no edges and is in no index, only its id remains.
    pub removed: bool,
    /// Its path in every subsystem it is part of, in the order in which it joined them.
    pub paths: SmallVec<[(Subsystem, PathId); 1]>,
    /// Edges to its children, of all subsystems, in order of insertion.
    pub out_edges: Vec<EdgeId>,
    /// Edges from its parents, of all subsystems, in order of insertion.
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
    /// The number that tells it from every other vertex; none means its position in the graph.
    pub uniq_id: Option<i64>,
    /// The execution rank; -1 for none.
    pub rank: i32,
    /// How much there is of it, in `unit`.
    pub size: u64,
    /// What the size counts; empty for plain pieces.
    pub unit: &'a str,
    /// Whether it may be used.
    pub status: Status,
    /// Subsystem and path; may also be given later.
    pub paths: &'a [(Subsystem, &'a str)],
    /// Key and value of properties.
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
