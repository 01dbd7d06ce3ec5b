//! The domains of topology levels.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::id::NodeId;

/// The domains of one label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Domains {
    /// Values in natural order, each with its nodes in natural order.
    pub(crate) members: Vec<(Arc<str>, Vec<NodeId>)>,
}

/// Domains by label, with the generation of the graph for which they were computed.
pub(super) type Cache = imbl::OrdMap<Arc<str>, (u64, Arc<Domains>)>;

/// Additional domains of nodes besides those from their labels, by level.
pub(super) type Memberships = Arc<BTreeMap<Arc<str>, Vec<(Arc<str>, NodeId)>>>;
