//! What a document about part of a graph says, whatever its format: the input of attach, update and
//! partial cancel. Readers fill it in with the defaults of their format applied; nothing here has been
//! compared with a graph yet.

use std::collections::BTreeMap;

use crate::formats::idset::Idset;
use crate::graph::Status;

/// A vertex as a graph document describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRecord {
    /// The document's own name of it, which edges refer to.
    pub key: String,
    /// Type, such as `core`.
    pub type_name: String,
    /// The name without its number.
    pub basename: String,
    /// The full name.
    pub name: String,
    /// The number in the name; -1 for none.
    pub id: i64,
    /// The number that tells it from every other vertex.
    pub uniq_id: i64,
    /// Execution rank; -1 for none.
    pub rank: i32,
    /// How much of it there is, or is taken.
    pub size: u64,
    /// What the size counts.
    pub unit: String,
    /// Whether it may be used.
    pub status: Status,
    /// Whether it is taken exclusively.
    pub exclusive: bool,
    /// Path per name of subsystem.
    pub paths: BTreeMap<String, String>,
    /// Key and value of properties.
    pub properties: BTreeMap<String, String>,
}

/// An edge as a graph document describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeRecord {
    /// Key of the parent.
    pub source: String,
    /// Key of the child.
    pub target: String,
    /// Name of the subsystem.
    pub subsystem: String,
}

/// A graph document: JGF, with or without its shorthand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphDocument {
    /// The vertices, in order of the document.
    pub nodes: Vec<NodeRecord>,
    /// The edges, in order of the document.
    pub edges: Vec<EdgeRecord>,
    /// Ranks that are to be skipped by an update; none when the document does not say.
    pub free_ranks: Option<Idset>,
    /// Whether what is below an exclusive vertex is left out because it belongs to it.
    pub shorthand: bool,
}

/// What one execution rank contributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankRecord {
    /// The rank.
    pub rank: i32,
    /// Name of its host.
    pub host: String,
    /// Types and ids of its children, in order of the document.
    pub children: Vec<(String, Vec<i64>)>,
}

/// An execution document: the resources of ranks, as R has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankDocument {
    /// One entry per rank of every element, in order of the document.
    pub ranks: Vec<RankRecord>,
    /// Ranks that have a property, by its name.
    pub properties: Vec<(String, Vec<i32>)>,
}

/// Any document that says what a job holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// Vertices and edges.
    Graph(GraphDocument),
    /// Ranks with their children.
    Ranks(RankDocument),
}
