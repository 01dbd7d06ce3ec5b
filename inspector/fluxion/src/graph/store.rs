//! The arenas and indices of a graph, and read-only access to them.

use std::collections::BTreeMap;

use super::ids::{EdgeId, PathId, Subsystem, Sym, TypeId, VertexId};
use super::intern::{Interner, PathTable};
use super::shared::Shared;
use super::vertex::Vertex;

/// Types that exist in every graph, in the order of their ids.
pub const BUILT_IN_TYPES: [&str; 12] =
    ["cluster", "core", "socket", "gpu", "node", "rack", "slot", "xor_slot", "ssd", "storage_node", "*", ""];

/// One edge; it belongs to exactly one subsystem.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// The parent.
    pub source: VertexId,
    /// The child.
    pub target: VertexId,
    /// The subsystem it belongs to.
    pub subsystem: Subsystem,
}

/// The resource graph.
#[derive(Clone, Debug)]
pub struct Graph {
    pub(super) strings: Interner,
    pub(super) paths: PathTable,
    pub(super) vertices: Vec<Vertex>,
    pub(super) edges: Vec<Edge>,
    pub(super) subsystems: Vec<Sym>,
    pub(super) roots: Vec<Option<VertexId>>,
    pub(super) types: Vec<Sym>,
    pub(super) type_index: BTreeMap<Sym, TypeId>,
    pub(super) by_type: Vec<Vec<VertexId>>,
    pub(super) by_rank: BTreeMap<i32, Vec<VertexId>>,
    /// First vertex registered under each path; `NOBODY` for a path that is only a prefix.
    pub(super) by_path: Vec<VertexId>,
    /// All vertices of the paths that more than one is registered under.
    pub(super) shared: Shared,
    /// Key and value, for the few vertices that have properties.
    pub(super) properties: BTreeMap<VertexId, BTreeMap<Sym, Sym>>,
    pub(super) limit: usize,
}

/// Stands in `by_path` for a path without a vertex.
pub(super) const NOBODY: VertexId = VertexId(u32::MAX);

/// Default maximum number of vertices and of edges.
const DEFAULT_LIMIT: usize = 64_000_000;

impl Default for Graph {
    fn default() -> Self {
        let mut graph = Self {
            strings: Interner::default(),
            paths: PathTable::default(),
            vertices: Vec::new(),
            edges: Vec::new(),
            subsystems: Vec::new(),
            roots: Vec::new(),
            types: Vec::new(),
            type_index: BTreeMap::new(),
            by_type: Vec::new(),
            by_rank: BTreeMap::new(),
            by_path: Vec::new(),
            shared: Shared::default(),
            properties: BTreeMap::new(),
            limit: DEFAULT_LIMIT,
        };
        let containment = graph.strings.intern("containment");
        graph.subsystems.push(containment);
        graph.roots.push(None);
        for name in BUILT_IN_TYPES {
            graph.intern_type(name);
        }
        graph
    }
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// A vertex.
    ///
    /// # Panics
    /// If the id does not belong to this graph.
    #[inline]
    pub fn vertex(&self, id: VertexId) -> &Vertex {
        &self.vertices[id.index()]
    }

    /// An edge.
    ///
    /// # Panics
    /// If the id does not belong to this graph.
    #[inline]
    pub fn edge(&self, id: EdgeId) -> Edge {
        self.edges[id.index()]
    }

    /// Number of vertices ever added, including removed ones.
    #[inline]
    pub fn vertex_count(&self) -> usize {
        self.vertices.len()
    }

    /// Number of edges ever added, including removed ones.
    #[inline]
    pub fn edge_count(&self) -> usize {
        self.edges.len()
    }

    /// All vertices in order of creation, excluding removed ones.
    pub fn vertex_ids(&self) -> impl Iterator<Item = VertexId> + '_ {
        self.vertices.iter().enumerate().filter(|(_, v)| !v.removed).map(|(at, _)| VertexId::from_index(at))
    }

    /// The edges of one subsystem to the children of a vertex, in order of insertion.
    #[inline]
    pub fn children(
        &self,
        of: VertexId,
        subsystem: Subsystem,
    ) -> impl Iterator<Item = (EdgeId, VertexId)> + '_ {
        self.vertex(of).out_edges.iter().filter_map(move |&id| {
            let edge = self.edge(id);
            (edge.subsystem == subsystem).then_some((id, edge.target))
        })
    }

    /// The edges of one subsystem from the parents of a vertex, in order of insertion.
    #[inline]
    pub fn parents(
        &self,
        of: VertexId,
        subsystem: Subsystem,
    ) -> impl Iterator<Item = (EdgeId, VertexId)> + '_ {
        self.vertex(of).in_edges.iter().filter_map(move |&id| {
            let edge = self.edge(id);
            (edge.subsystem == subsystem).then_some((id, edge.source))
        })
    }

    /// The edge between two vertices in any subsystem.
    pub fn find_edge(&self, source: VertexId, target: VertexId) -> Option<EdgeId> {
        let (out, inward) = (&self.vertex(source).out_edges, &self.vertex(target).in_edges);
        let hit = |&&id: &&EdgeId| self.edge(id).source == source && self.edge(id).target == target;
        if out.len() < inward.len() {
            out.iter().find(hit).copied()
        } else {
            inward.iter().find(hit).copied()
        }
    }

    /// The root of a subsystem.
    pub fn root(&self, subsystem: Subsystem) -> Option<VertexId> {
        self.roots.get(usize::from(subsystem.0)).copied().flatten()
    }

    /// The id of a subsystem by name.
    pub fn find_subsystem(&self, name: &str) -> Option<Subsystem> {
        let sym = self.strings.find(name)?;
        let at = self.subsystems.iter().position(|&known| known == sym)?;
        u8::try_from(at).ok().map(Subsystem)
    }

    /// The name of a subsystem.
    pub fn subsystem_name(&self, subsystem: Subsystem) -> &str {
        self.strings.text(self.subsystems[usize::from(subsystem.0)])
    }

    /// Number of subsystems.
    pub fn subsystem_count(&self) -> usize {
        self.subsystems.len()
    }

    /// The id of a type by name, if it exists.
    pub fn find_type(&self, name: &str) -> Option<TypeId> {
        self.type_index.get(&self.strings.find(name)?).copied()
    }

    /// The name of a type.
    #[inline]
    pub fn type_name(&self, type_id: TypeId) -> &str {
        self.strings.text(self.types[type_id.index()])
    }

    /// Number of types.
    pub fn type_count(&self) -> usize {
        self.types.len()
    }

    /// The text of a symbol.
    #[inline]
    pub fn text(&self, sym: Sym) -> &str {
        self.strings.text(sym)
    }

    /// The symbol of a string, if it exists.
    pub fn find_text(&self, text: &str) -> Option<Sym> {
        self.strings.find(text)
    }

    /// The paths of the graph.
    pub fn path_table(&self) -> &PathTable {
        &self.paths
    }

    /// The text of a path.
    pub fn path_text(&self, path: PathId) -> String {
        let mut text = String::new();
        self.paths.write(&self.strings, path, &mut text);
        text
    }

    /// Appends the text of a path.
    pub fn write_path(&self, path: PathId, out: &mut String) {
        self.paths.write(&self.strings, path, out);
    }

    /// The length of the text of a path, in bytes.
    pub fn path_length(&self, path: PathId) -> usize {
        self.paths.text_len(&self.strings, path)
    }

    /// The id of a path, if it exists; prefixes of paths count.
    pub fn find_path(&self, path: &str) -> Option<PathId> {
        self.paths.find(&self.strings, path)
    }

    /// The vertices registered under a path, in order of registration.
    pub fn at_path(&self, path: PathId) -> &[VertexId] {
        if let Some(all) = self.shared.all(path) {
            return all;
        }
        match self.by_path.get(path.index()) {
            Some(first) if *first != NOBODY => std::slice::from_ref(first),
            _ => &[],
        }
    }

    /// The vertices registered under a path that have a given rank, in order of registration.
    pub fn at_path_of_rank(&self, path: PathId, rank: i32) -> &[VertexId] {
        if self.shared.all(path).is_some() {
            return self.shared.of_rank(path, rank);
        }
        match self.at_path(path) {
            all @ [only] if self.vertex(*only).rank == rank => all,
            _ => &[],
        }
    }

    /// The vertices registered under a path given as text.
    pub fn at_path_text(&self, path: &str) -> &[VertexId] {
        self.find_path(path).map_or(&[], |id| self.at_path(id))
    }

    /// The vertices of a type, in order of creation.
    pub fn of_type(&self, type_id: TypeId) -> &[VertexId] {
        self.by_type.get(type_id.index()).map_or(&[], Vec::as_slice)
    }

    /// The vertices of a rank, in order of creation.
    pub fn of_rank(&self, rank: i32) -> &[VertexId] {
        self.by_rank.get(&rank).map_or(&[], Vec::as_slice)
    }

    /// All ranks with vertices, including -1, in ascending order, with their vertices.
    pub fn ranks(&self) -> impl Iterator<Item = (i32, &[VertexId])> {
        self.by_rank.iter().map(|(&rank, all)| (rank, all.as_slice()))
    }

    /// Number of distinct types, names and paths in use, for load statistics.
    pub fn index_sizes(&self) -> (usize, usize, usize) {
        let types = self.by_type.iter().filter(|all| !all.is_empty()).count();
        let mut names: Vec<Sym> = self.vertex_ids().map(|id| self.vertex(id).name).collect();
        names.sort_unstable();
        names.dedup();
        let paths = self.by_path.iter().filter(|first| **first != NOBODY).count();
        (types, names.len(), paths)
    }

    /// Properties of a vertex, sorted by key in byte order.
    pub fn properties(&self, of: VertexId) -> Vec<(&str, &str)> {
        let Some(all) = self.properties.get(&of) else { return Vec::new() };
        let mut pairs: Vec<_> = all.iter().map(|(&key, &value)| (self.text(key), self.text(value))).collect();
        pairs.sort_unstable();
        pairs
    }

    /// Whether a vertex has a property with this key.
    pub fn has_property(&self, of: VertexId, key: Sym) -> bool {
        self.properties.get(&of).is_some_and(|all| all.contains_key(&key))
    }

    /// The value of a property.
    pub fn property(&self, of: VertexId, key: Sym) -> Option<&str> {
        self.properties.get(&of)?.get(&key).map(|&value| self.text(value))
    }
}
