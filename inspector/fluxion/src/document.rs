//! Format-independent contents of documents that describe part of a graph: the input of update and partial
//! cancel. Readers apply the defaults of their format; the contents have not been checked against a graph
//! yet.

use std::collections::BTreeMap;

use crate::formats::idset::Idset;
use crate::graph::Status;

/// A vertex as a graph document describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRecord {
    /// Id in the document, which edges refer to.
    pub key: String,
    /// Type, such as `core`.
    pub type_name: String,
    /// The name without its number.
    pub basename: String,
    /// The full name.
    pub name: String,
    /// The number in the name; -1 for none.
    pub id: i64,
    /// Unique id.
    pub uniq_id: i64,
    /// Execution rank; -1 for none.
    pub rank: i32,
    /// Size, or allocated amount.
    pub size: u64,
    /// Unit of the size.
    pub unit: String,
    /// Whether it is up.
    pub status: Status,
    /// Whether it is allocated exclusively.
    pub exclusive: bool,
    /// Path by subsystem name.
    pub paths: BTreeMap<String, String>,
    /// Keys and values of the properties.
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
    /// Ranks to skip in an update; none if not specified.
    pub free_ranks: Option<Idset>,
    /// Whether vertices below an exclusive vertex are omitted because they are implied.
    pub shorthand: bool,
}

/// Resources of one execution rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankRecord {
    /// The rank.
    pub rank: i32,
    /// Host name.
    pub host: String,
    /// Types and ids of its children, in order of the document.
    pub children: Vec<(String, Vec<i64>)>,
}

/// An execution document: the resources of ranks, as in R.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankDocument {
    /// One entry per rank of every element, in order of the document.
    pub ranks: Vec<RankRecord>,
    /// Ranks that have a property, by its name.
    pub properties: Vec<(String, Vec<i32>)>,
}

/// A document that describes the allocation of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// Vertices and edges.
    Graph(GraphDocument),
    /// Ranks with their children.
    Ranks(RankDocument),
}
