//! Adds the vertices and edges of a JGF document to a graph.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::receiver::{Receiver, about};
use crate::document::{EdgeRecord, NodeRecord};
use crate::formats::error::ReadError;
use crate::graph::{Graph, PathId, VertexId, VertexSpec};

/// What a name in the document stands for.
#[derive(Clone, Copy)]
struct Known {
    vertex: VertexId,
    /// Made by this document, not met in the graph.
    new: bool,
}

/// Adds to a graph what comes. A vertex whose path is taken by one of the same rank is that vertex.
pub(super) struct Loader<'g> {
    graph: &'g mut Graph,
    /// Names that are plain decimal numbers, counting up from 0, which nearly all are.
    in_sequence: Vec<Known>,
    /// Other plain decimal numbers.
    by_number: BTreeMap<u64, Known>,
    by_text: BTreeMap<String, Known>,
    /// The path above the one last looked at: what comes next is mostly its sibling.
    above: Option<(String, PathId)>,
    /// Whether a subsystem that the graph does not have is an error.
    closed: bool,
}

impl<'g> Loader<'g> {
    pub(super) fn new(graph: &'g mut Graph) -> Self {
        Self {
            graph,
            closed: false,
            in_sequence: Vec::new(),
            by_number: BTreeMap::new(),
            by_text: BTreeMap::new(),
            above: None,
        }
    }

    /// For a graph that takes no further subsystems.
    pub(super) fn closed(graph: &'g mut Graph) -> Self {
        Self { closed: true, ..Self::new(graph) }
    }

    fn knows(&self, subsystem: &str) -> bool {
        !self.closed || self.graph.find_subsystem(subsystem).is_some()
    }

    /// Checks what can only be seen at the end: children of one vertex need different numbers.
    pub(super) fn finish(self) -> Result<(), ReadError> {
        let graph = self.graph;
        let mut targets: Vec<(i64, VertexId)> = Vec::new();
        for source in graph.vertex_ids() {
            targets.clear();
            targets.extend(graph.vertex(source).out_edges.iter().map(|&edge| {
                let target = graph.edge(edge).target;
                (graph.vertex(target).uniq_id, target)
            }));
            targets.sort_unstable();
            if let Some(pair) = targets.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(collision(graph, source, pair[1].1));
            }
        }
        graph.shrink_to_fit();
        Ok(())
    }

    fn find(&self, key: &str) -> Option<Known> {
        match decimal(key) {
            Some(number) => {
                let known = usize::try_from(number).ok().and_then(|at| self.in_sequence.get(at));
                known.or_else(|| self.by_number.get(&number)).copied()
            }
            None => self.by_text.get(key).copied(),
        }
    }

    fn remember(&mut self, key: String, known: Known) {
        match decimal(&key) {
            Some(number) if number == self.in_sequence.len() as u64 => self.in_sequence.push(known),
            Some(number) => drop(self.by_number.insert(number, known)),
            None => drop(self.by_text.insert(key, known)),
        }
    }

    /// The id of a path.
    fn path(&mut self, path: &str) -> PathId {
        let Some((above, last)) = path.rsplit_once('/').filter(|(above, _)| !above.is_empty()) else {
            return self.graph.intern_path(path);
        };
        let known = self.above.as_ref().filter(|(known, _)| known == above);
        let above = if let Some(&(_, id)) = known {
            id
        } else {
            let id = self.graph.intern_path(above);
            self.above = Some((above.to_owned(), id));
            id
        };
        self.graph.join_path(above, last)
    }

    /// The vertex of the graph that has one of a record's paths and its rank.
    fn existing(&self, node: &NodeRecord, paths: &[PathId]) -> Option<VertexId> {
        paths.iter().find_map(|&path| self.graph.at_path_of_rank(path, node.rank).first().copied())
    }

    fn add(&mut self, node: &NodeRecord, paths: &[PathId]) -> Result<VertexId, ReadError> {
        let properties: Vec<(&str, &str)> =
            node.properties.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let vertex = self.graph.add_vertex(&VertexSpec {
            type_name: &node.type_name,
            basename: &node.basename,
            name: &node.name,
            id: node.id,
            uniq_id: Some(node.uniq_id),
            rank: node.rank,
            size: node.size,
            unit: "",
            status: node.status,
            paths: &[],
            properties: &properties,
        })?;
        for ((subsystem, path), &id) in node.paths.iter().zip(paths) {
            let subsystem = self.graph.intern_subsystem(subsystem)?;
            self.graph.set_path(vertex, subsystem, id);
            if path.bytes().filter(|&byte| byte == b'/').count() == 1 {
                self.graph.set_root(subsystem, vertex).map_err(|error| {
                    let name = self.graph.subsystem_name(subsystem);
                    let what =
                        format!("failed to add root metadata for {name} subsystem. Possible duplicate root");
                    ReadError::jgf("add_graph_metadata", format!("{what} ({error})"))
                })?;
            }
        }
        Ok(vertex)
    }
}

impl Receiver for Loader<'_> {
    fn node(&mut self, node: NodeRecord) -> Result<(), ReadError> {
        if let Some(unknown) = node.paths.keys().find(|subsystem| !self.knows(subsystem)) {
            let what = format!("malformed metadata in an JGF node for {}", about(&node.key));
            let why = format!("{what} (the graph has no subsystem {})", about(unknown));
            return Err(ReadError::jgf("fill_fetcher", why));
        }
        let paths: SmallVec<[PathId; 2]> = node.paths.values().map(|path| self.path(path)).collect();
        let existing = self.existing(&node, &paths);
        if self.find(&node.key).is_some() {
            return Err(match existing {
                Some(_) => {
                    ReadError::jgf("update_vmap", format!("can't insert into vmap for {}", about(&node.key)))
                }
                None => {
                    ReadError::jgf("add_vtx", format!("found duplicate JGF node id for {}", about(&node.key)))
                }
            });
        }
        let known = match existing {
            Some(vertex) => Known { vertex, new: false },
            None => Known { vertex: self.add(&node, &paths)?, new: true },
        };
        self.remember(node.key, known);
        Ok(())
    }

    fn edge(&mut self, edge: EdgeRecord) -> Result<(), ReadError> {
        let (Some(source), Some(target)) = (self.find(&edge.source), self.find(&edge.target)) else {
            let ends = format!("{} -> {}", about(&edge.source), about(&edge.target));
            return Err(ReadError::jgf(
                "unpack_edge",
                format!("source and/or target vertex not found{ends}"),
            ));
        };
        if !self.knows(&edge.subsystem) {
            let why = format!("could not unpack edge metadata (no subsystem {})", about(&edge.subsystem));
            return Err(ReadError::jgf("unpack_edge", why));
        }
        if !source.new && !target.new {
            return Ok(());
        }
        let subsystem = self.graph.intern_subsystem(&edge.subsystem)?;
        let before = self.graph.edge_count();
        self.graph.add_edge(source.vertex, target.vertex, subsystem)?;
        if self.graph.edge_count() == before {
            return Err(collision(self.graph, source.vertex, target.vertex));
        }
        Ok(())
    }
}

fn collision(graph: &Graph, source: VertexId, target: VertexId) -> ReadError {
    let name = |vertex: VertexId| graph.text(graph.vertex(vertex).name);
    let ends = format!("{} -> {}", name(source), name(target));
    ReadError::jgf("unpack_edge", format!("error inserting an edge to outedge metadata map: {ends}"))
}

/// The value of a plain decimal number that prints as it stands.
fn decimal(key: &str) -> Option<u64> {
    let plain = key.bytes().all(|byte| byte.is_ascii_digit()) && (key.len() == 1 || !key.starts_with('0'));
    plain.then(|| key.parse().ok()).flatten()
}
