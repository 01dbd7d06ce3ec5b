//! Adds the vertices and edges of a JGF document to a graph.

use std::collections::BTreeMap;

use super::{Receiver, about};
use crate::document::{EdgeRecord, NodeRecord};
use crate::formats::error::ReadError;
use crate::graph::{Graph, Subsystem, VertexId, VertexSpec};

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
    /// Names that are plain decimal numbers, which nearly all are.
    by_number: BTreeMap<u64, Known>,
    by_text: BTreeMap<String, Known>,
}

impl<'g> Loader<'g> {
    pub(super) fn new(graph: &'g mut Graph) -> Self {
        Self { graph, by_number: BTreeMap::new(), by_text: BTreeMap::new() }
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
            Some(number) => self.by_number.get(&number).copied(),
            None => self.by_text.get(key).copied(),
        }
    }

    fn remember(&mut self, key: String, known: Known) {
        match decimal(&key) {
            Some(number) => self.by_number.insert(number, known),
            None => self.by_text.insert(key, known),
        };
    }

    /// The vertex of the graph that has one of the record's paths and its rank.
    fn existing(&self, node: &NodeRecord) -> Option<VertexId> {
        node.paths.values().find_map(|path| {
            let here = self.graph.at_path_text(path);
            here.iter().copied().find(|&vertex| self.graph.vertex(vertex).rank == node.rank)
        })
    }

    fn add(&mut self, node: &NodeRecord) -> Result<VertexId, ReadError> {
        let mut paths: Vec<(Subsystem, &str)> = Vec::with_capacity(node.paths.len());
        for (subsystem, path) in &node.paths {
            paths.push((self.graph.intern_subsystem(subsystem)?, path));
        }
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
            paths: &paths,
            properties: &properties,
        })?;
        for (subsystem, path) in paths {
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
        let existing = self.existing(&node);
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
            None => Known { vertex: self.add(&node)?, new: true },
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
