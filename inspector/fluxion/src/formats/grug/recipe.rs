//! What a GRUG document asks for: generators of vertices, and the rules between them.

use crate::formats::error::ReadError;

/// One kind of vertex to make.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Generator {
    pub root: bool,
    pub type_name: String,
    pub basename: String,
    pub unit: String,
    pub size: u64,
    pub subsystem: String,
}

/// How vertices come about along an edge of the recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// New children of each vertex of the source.
    Multiply,
    /// Vertices that exist already, all of the type.
    AssociateIn,
    /// Vertices that exist already, those with a common path prefix.
    AssociateByPathIn,
    /// An unknown name, which generates nothing.
    Nothing,
}

/// An edge of the recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub source: usize,
    pub target: usize,
    pub subsystem: String,
    pub method: Method,
    pub id_scope: i64,
    pub id_start: i64,
    pub id_stride: i64,
    pub multi_scale: i64,
    pub target_subsystem: String,
    pub target_up: i64,
    pub source_up: i64,
}

/// What a document asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Recipe {
    pub generators: Vec<Generator>,
    pub rules: Vec<Rule>,
}

pub(super) fn bad(what: impl Into<String>) -> ReadError {
    ReadError::Grug(what.into())
}
