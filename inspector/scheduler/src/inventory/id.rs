//! Numeric IDs of nodes and resources.

use std::sync::Arc;

/// Index of a node's numbers; stable while the node exists or has holders.
pub(crate) type NodeId = u32;

/// Index of a resource's numbers.
pub(crate) type KindId = u32;

/// Amounts by resource, ordered by ID.
pub(crate) type Quantities = Arc<[(KindId, u64)]>;
