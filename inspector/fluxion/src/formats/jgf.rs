//! JGF: a resource graph, or the part of it allocated to a job, as JSON.
//!
//! The reader streams vertices and edges without storing them, so that a large document needs little more
//! memory than the resulting graph. `load` creates a graph; [`parse`] returns a [`GraphDocument`] for
//! update and partial cancel.

mod load;
mod node;
mod receiver;

use std::fmt;
use std::io::Read;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use self::load::Loader;
use self::node::RawNode;
use self::receiver::Receiver;
use super::error::ReadError;
use super::idset::Idset;
use crate::document::{EdgeRecord, GraphDocument, NodeRecord};
use crate::graph::Graph;

impl Receiver for GraphDocument {
    fn node(&mut self, node: NodeRecord) -> Result<(), ReadError> {
        self.nodes.push(node);
        Ok(())
    }

    fn edge(&mut self, edge: EdgeRecord) -> Result<(), ReadError> {
        self.edges.push(edge);
        Ok(())
    }
}

/// Reads a document and adds its vertices and edges to a graph. On error, the graph is left
/// incomplete. The shorthand format is loaded the same way.
pub fn load(graph: &mut Graph, source: impl Read) -> Result<(), ReadError> {
    let mut loader = Loader::new(graph);
    read(&mut loader, source)?;
    loader.finish()
}

/// Adds a document to a graph that already has all its subsystems. Additions before an error are kept;
/// call [`check`] first.
pub fn add(graph: &mut Graph, document: &[u8]) -> Result<(), ReadError> {
    let mut loader = Loader::closed(graph);
    read(&mut loader, document)?;
    loader.finish()
}

/// The parts that a document must have, with nothing in them looked at.
#[derive(Deserialize)]
struct Outline {
    graph: Option<OutlineBody>,
    free_ranks: Option<String>,
}

#[derive(Deserialize)]
struct OutlineBody {
    nodes: Option<IgnoredAny>,
    edges: Option<IgnoredAny>,
}

/// Checks that a document is JSON and has all required parts, without checking vertices and edges.
pub fn check(document: &[u8]) -> Result<(), ReadError> {
    let outline: Outline = serde_json::from_slice(document).map_err(|error| not_read(&error))?;
    let body = outline.graph.as_ref();
    required(&[
        (body.is_some(), "graph"),
        (body.is_some_and(|body| body.nodes.is_some()), "nodes"),
        (body.is_some_and(|body| body.edges.is_some()), "edges"),
    ])?;
    outline.free_ranks.as_deref().map_or(Ok(()), |text| free_ranks(text).map(drop))
}

/// Reads a document that describes part of a graph.
pub fn parse(source: impl Read, shorthand: bool) -> Result<GraphDocument, ReadError> {
    let mut document = GraphDocument { shorthand, ..GraphDocument::default() };
    document.free_ranks = read(&mut document, source)?;
    Ok(document)
}

fn free_ranks(text: &str) -> Result<Idset, ReadError> {
    Idset::parse(text).map_err(|_| ReadError::jgf("fetch_jgf", "failed to decode ranks"))
}

fn required(parts: &[(bool, &str)]) -> Result<(), ReadError> {
    match parts.iter().find(|(seen, _)| !seen) {
        Some((_, name)) => {
            Err(ReadError::jgf("fetch_jgf", format!("JGF does not contain a required key ({name})")))
        }
        None => Ok(()),
    }
}

fn not_read(error: &serde_json::Error) -> ReadError {
    if error.classify() == serde_json::error::Category::Data {
        ReadError::jgf("fill_fetcher", format!("malformed metadata in an JGF node or edge: {error}"))
    } else {
        ReadError::jgf("fetch_jgf", format!("json_loads returned an error: {error}"))
    }
}

/// What is met on the way through a document.
struct State<'r, R> {
    receiver: &'r mut R,
    /// The error of the receiver or of a rule, which serde's own error only announces.
    failure: Option<ReadError>,
    nodes_seen: bool,
    edges_seen: bool,
    graph_seen: bool,
    /// Edges that stand before the vertices in the document.
    early_edges: Vec<EdgeRecord>,
    free_ranks: Option<String>,
}

impl<R> State<'_, R> {
    fn check<E: Error>(&mut self, result: Result<(), ReadError>) -> Result<(), E> {
        result.map_err(|error| {
            let text = error.to_string();
            self.failure = Some(error);
            E::custom(text)
        })
    }
}

/// Reads a whole document into a receiver; answers the `free_ranks`.
fn read(receiver: &mut impl Receiver, source: impl Read) -> Result<Option<Idset>, ReadError> {
    let mut state = State {
        receiver,
        failure: None,
        nodes_seen: false,
        edges_seen: false,
        graph_seen: false,
        early_edges: Vec::new(),
        free_ranks: None,
    };
    let mut deserializer = serde_json::Deserializer::from_reader(source);
    let read = Top(&mut state).deserialize(&mut deserializer).and_then(|()| deserializer.end());
    if let Some(failure) = state.failure {
        return Err(failure);
    }
    read.map_err(|error| not_read(&error))?;
    required(&[(state.graph_seen, "graph"), (state.nodes_seen, "nodes"), (state.edges_seen, "edges")])?;
    for edge in std::mem::take(&mut state.early_edges) {
        state.receiver.edge(edge)?;
    }
    state.free_ranks.as_deref().map(free_ranks).transpose()
}

/// The outermost object.
struct Top<'a, 'r, R>(&'a mut State<'r, R>);
/// The object under `graph`.
struct Body<'a, 'r, R>(&'a mut State<'r, R>);
/// The array under `nodes`.
struct Nodes<'a, 'r, R>(&'a mut State<'r, R>);
/// The array under `edges`.
struct Edges<'a, 'r, R>(&'a mut State<'r, R>);

macro_rules! seed {
    ($name:ident, $method:ident) => {
        impl<'de, R: Receiver> DeserializeSeed<'de> for $name<'_, '_, R> {
            type Value = ();
            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
                deserializer.$method(self)
            }
        }
    };
}
seed!(Top, deserialize_map);
seed!(Body, deserialize_map);
seed!(Nodes, deserialize_seq);
seed!(Edges, deserialize_seq);

impl<'de, R: Receiver> Visitor<'de> for Top<'_, '_, R> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the key graph")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "graph" if !self.0.graph_seen => {
                    self.0.graph_seen = true;
                    map.next_value_seed(Body(&mut *self.0))?;
                }
                "free_ranks" => self.0.free_ranks = Some(map.next_value()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

impl<'de, R: Receiver> Visitor<'de> for Body<'_, '_, R> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the keys nodes and edges")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "nodes" if !self.0.nodes_seen => {
                    map.next_value_seed(Nodes(&mut *self.0))?;
                    self.0.nodes_seen = true;
                }
                "edges" if !self.0.edges_seen => {
                    map.next_value_seed(Edges(&mut *self.0))?;
                    self.0.edges_seen = true;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

impl<'de, R: Receiver> Visitor<'de> for Nodes<'_, '_, R> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of nodes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(node) = seq.next_element::<RawNode>()? {
            let taken = node.complete().and_then(|record| self.0.receiver.node(record));
            self.0.check(taken)?;
        }
        Ok(())
    }
}

/// An edge as it stands in a document.
#[derive(Deserialize)]
struct RawEdge {
    source: String,
    target: String,
    metadata: Option<RawEdgeMetadata>,
}

#[derive(Deserialize)]
struct RawEdgeMetadata {
    subsystem: Option<String>,
}

impl<'de, R: Receiver> Visitor<'de> for Edges<'_, '_, R> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of edges")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(edge) = seq.next_element::<RawEdge>()? {
            let subsystem = edge.metadata.and_then(|metadata| metadata.subsystem);
            let record = EdgeRecord {
                source: edge.source,
                target: edge.target,
                subsystem: subsystem.unwrap_or_else(|| "containment".to_owned()),
            };
            if self.0.nodes_seen {
                let taken = self.0.receiver.edge(record);
                self.0.check(taken)?;
            } else {
                self.0.early_edges.push(record);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
