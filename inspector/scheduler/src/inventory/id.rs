//! Numbers that stand for nodes and resources.

use std::sync::Arc;

/// Where a node's numbers lie; stays the same while the node, or somebody on it, is there.
pub(crate) type NodeId = u32;

/// Where a resource's numbers lie.
pub(crate) type KindId = u32;

/// Quantities by resource, in order of their ids.
pub(crate) type Quantities = Arc<[(KindId, u64)]>;
