//! What a reader of JGF hands on, and how it names an element in an error.

use crate::document::{EdgeRecord, NodeRecord};
use crate::formats::error::ReadError;
use crate::formats::idset::shorten;

/// Takes what a document holds, in its order, except that all vertices come before the edges.
pub(super) trait Receiver {
    fn node(&mut self, node: NodeRecord) -> Result<(), ReadError>;
    fn edge(&mut self, edge: EdgeRecord) -> Result<(), ReadError>;
}

/// Names an element of a document in an error.
pub(super) fn about(id: &str) -> String {
    shorten(id)
}
