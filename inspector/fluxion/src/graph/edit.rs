//! Changes to a graph: adding and removing vertices, edges, status and properties.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;
use thiserror::Error;

use super::ids::{EdgeId, PathId, Subsystem, Sym, TypeId, VertexId};
use super::store::{Edge, Graph, NOBODY};
use super::vertex::{Status, Vertex, VertexSpec};

/// Why a change to the graph was rejected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GraphError {
    /// A second root for a subsystem.
    #[error("subsystem {0} already has a root: a graph can have only one root per subsystem")]
    DuplicateRoot(String),
    /// More than 255 subsystems.
    #[error("too many subsystems: at most 255 are supported")]
    TooManySubsystems,
    /// The vertex limit of the graph is reached.
    #[error("more than {0} vertices or edges: increase the limit or load a smaller graph")]
    TooLarge(usize),
}

impl Graph {
    /// Sets the maximum number of vertices (and of edges).
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit.min(u32::MAX as usize - 1);
    }

    /// Maximum number of vertices (and of edges).
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Reserves memory for additional vertices, with one edge to each.
    pub fn reserve(&mut self, vertices: usize) {
        self.vertices.reserve(vertices);
        self.edges.reserve(vertices);
        self.by_path.reserve(vertices);
    }

    /// Releases unused memory.
    pub fn shrink_to_fit(&mut self) {
        self.vertices.shrink_to_fit();
        self.edges.shrink_to_fit();
        self.by_path.shrink_to_fit();
        for vertex in &mut self.vertices {
            vertex.out_edges.shrink_to_fit();
        }
    }

    /// The symbol of a string.
    pub fn intern(&mut self, text: &str) -> Sym {
        self.strings.intern(text)
    }

    /// The id of a type, which is added if it is new.
    pub fn intern_type(&mut self, name: &str) -> TypeId {
        let sym = self.strings.intern(name);
        let types = &mut self.types;
        *self.type_index.entry(sym).or_insert_with(|| {
            types.push(sym);
            TypeId::from_index(types.len() - 1)
        })
    }

    /// The id of a subsystem, which is added if it is new.
    pub fn intern_subsystem(&mut self, name: &str) -> Result<Subsystem, GraphError> {
        if let Some(known) = self.find_subsystem(name) {
            return Ok(known);
        }
        let number = u8::try_from(self.subsystems.len()).map_err(|_| GraphError::TooManySubsystems)?;
        let sym = self.strings.intern(name);
        self.subsystems.push(sym);
        self.roots.push(None);
        Ok(Subsystem(number))
    }

    /// The id of a path.
    pub fn intern_path(&mut self, path: &str) -> PathId {
        self.paths.intern(&mut self.strings, path)
    }

    /// The id of a path one component below another.
    pub fn join_path(&mut self, parent: PathId, component: &str) -> PathId {
        let component = self.strings.intern(component);
        self.paths.join(parent, component)
    }

    /// Adds a vertex without edges. It does not become a root.
    pub fn add_vertex(&mut self, spec: &VertexSpec) -> Result<VertexId, GraphError> {
        if self.vertices.len() >= self.limit {
            return Err(GraphError::TooLarge(self.limit));
        }
        let id = VertexId::from_index(self.vertices.len());
        let type_id = self.intern_type(spec.type_name);
        let uniq_id = spec.uniq_id.unwrap_or(i64::from(id.0));
        let vertex = Vertex {
            type_id,
            basename: self.strings.intern(spec.basename),
            name: self.strings.intern(spec.name),
            unit: self.strings.intern(spec.unit),
            id: spec.id,
            uniq_id,
            size: spec.size,
            rank: spec.rank,
            status: spec.status,
            removed: false,
            paths: SmallVec::new(),
            out_edges: Vec::new(),
            in_edges: SmallVec::new(),
        };
        if !spec.properties.is_empty() {
            let strings = &mut self.strings;
            let pairs =
                spec.properties.iter().map(|(key, value)| (strings.intern(key), strings.intern(value)));
            self.properties.insert(id, pairs.collect::<BTreeMap<_, _>>());
        }
        self.vertices.push(vertex);
        if self.by_type.len() <= type_id.index() {
            self.by_type.resize_with(self.types.len(), Vec::new);
        }
        self.by_type[type_id.index()].push(id);
        self.by_rank.entry(spec.rank).or_default().push(id);
        for &(subsystem, path) in spec.paths {
            let path = self.intern_path(path);
            self.set_path(id, subsystem, path);
        }
        Ok(id)
    }

    /// Sets the path of a vertex in a subsystem, replacing any previous one, and registers it there.
    pub fn set_path(&mut self, id: VertexId, subsystem: Subsystem, path: PathId) {
        let paths = &mut self.vertices[id.index()].paths;
        match paths.iter_mut().find(|(of, _)| *of == subsystem) {
            Some(entry) => entry.1 = path,
            None => paths.push((subsystem, path)),
        }
        if self.by_path.len() <= path.index() {
            self.by_path.resize(self.paths.len(), NOBODY);
        }
        let first = &mut self.by_path[path.index()];
        if *first == NOBODY {
            *first = id;
            return;
        }
        let first = *first;
        if first != id {
            self.shared.add(path, first, self.vertices[first.index()].rank);
            self.shared.add(path, id, self.vertices[id.index()].rank);
        }
    }

    /// Makes a vertex the root of a subsystem.
    pub fn set_root(&mut self, subsystem: Subsystem, id: VertexId) -> Result<(), GraphError> {
        let root = &mut self.roots[usize::from(subsystem.0)];
        if root.is_some_and(|known| known != id) {
            return Err(GraphError::DuplicateRoot(self.subsystem_name(subsystem).to_owned()));
        }
        *root = Some(id);
        Ok(())
    }

    /// Adds an edge. If the vertices are already connected, that edge is moved to the given subsystem.
    pub fn add_edge(
        &mut self,
        source: VertexId,
        target: VertexId,
        subsystem: Subsystem,
    ) -> Result<EdgeId, GraphError> {
        if let Some(known) = self.find_edge(source, target) {
            self.edges[known.index()].subsystem = subsystem;
            return Ok(known);
        }
        if self.edges.len() >= self.limit {
            return Err(GraphError::TooLarge(self.limit));
        }
        let id = EdgeId::from_index(self.edges.len());
        self.edges.push(Edge { source, target, subsystem });
        self.vertices[source.index()].out_edges.push(id);
        self.vertices[target.index()].in_edges.push(id);
        Ok(id)
    }

    /// Sets the status of a vertex. Returns whether it changed.
    pub fn set_status(&mut self, id: VertexId, status: Status) -> bool {
        let vertex = &mut self.vertices[id.index()];
        let changed = vertex.status != status;
        vertex.status = status;
        changed
    }

    /// Sets a property, replacing any previous value.
    pub fn set_property(&mut self, id: VertexId, key: &str, value: &str) {
        let (key, value) = (self.strings.intern(key), self.strings.intern(value));
        self.properties.entry(id).or_default().insert(key, value);
    }

    /// Removes a property. Returns whether it existed.
    pub fn remove_property(&mut self, id: VertexId, key: &str) -> bool {
        let Some(key) = self.strings.find(key) else { return false };
        let Some(all) = self.properties.get_mut(&id) else { return false };
        let found = all.remove(&key).is_some();
        if all.is_empty() {
            self.properties.remove(&id);
        }
        found
    }

    /// Removes vertices, their edges and their index entries. Vertices below them are not removed.
    pub fn isolate(&mut self, gone: &[VertexId]) {
        let mut beside = BTreeSet::new();
        let (mut types, mut ranks) = (BTreeSet::new(), BTreeSet::new());
        for &id in gone {
            let vertex = &mut self.vertices[id.index()];
            vertex.removed = true;
            types.insert(vertex.type_id);
            ranks.insert(vertex.rank);
            let rank = vertex.rank;
            let out = std::mem::take(&mut vertex.out_edges);
            let inward = std::mem::take(&mut vertex.in_edges);
            let paths: SmallVec<[PathId; 2]> = vertex.paths.iter().map(|&(_, path)| path).collect();
            beside.extend(out.iter().map(|edge| self.edges[edge.index()].target));
            beside.extend(inward.iter().map(|edge| self.edges[edge.index()].source));
            for path in paths {
                self.leave_path(path, id, rank);
            }
        }
        for id in beside {
            let (mut out, mut inward) = {
                let vertex = &mut self.vertices[id.index()];
                (std::mem::take(&mut vertex.out_edges), std::mem::take(&mut vertex.in_edges))
            };
            out.retain(|edge| !self.is_removed(self.edges[edge.index()].target));
            inward.retain(|edge| !self.is_removed(self.edges[edge.index()].source));
            let vertex = &mut self.vertices[id.index()];
            (vertex.out_edges, vertex.in_edges) = (out, inward);
        }
        let vertices = &self.vertices;
        let here = |id: &VertexId| !vertices[id.index()].removed;
        for type_id in types {
            self.by_type[type_id.index()].retain(here);
        }
        for rank in ranks {
            if let Some(all) = self.by_rank.get_mut(&rank) {
                all.retain(here);
                if all.is_empty() {
                    self.by_rank.remove(&rank);
                }
            }
        }
        for root in &mut self.roots {
            *root = root.filter(here);
        }
    }

    fn is_removed(&self, id: VertexId) -> bool {
        self.vertices[id.index()].removed
    }

    fn leave_path(&mut self, path: PathId, id: VertexId, rank: i32) {
        if self.shared.all(path).is_none() {
            if self.by_path.get(path.index()) == Some(&id) {
                self.by_path[path.index()] = NOBODY;
            }
            return;
        }
        self.shared.remove(path, id, rank);
        let left = self.shared.all(path).unwrap_or_default();
        self.by_path[path.index()] = left.first().copied().unwrap_or(NOBODY);
        if left.len() < 2 {
            self.forget_shared(path);
        }
    }

    fn forget_shared(&mut self, path: PathId) {
        let vertices = &self.vertices;
        self.shared.forget(path, |id| vertices[id.index()].rank);
    }

    /// Unregisters all vertices of a path.
    pub fn drop_path(&mut self, path: PathId) {
        self.forget_shared(path);
        if let Some(first) = self.by_path.get_mut(path.index()) {
            *first = NOBODY;
        }
    }
}
