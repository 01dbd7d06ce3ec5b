//! Whose reservations are in the way.

use crate::inventory::{Inventory, NodeId};

/// Holders and jobs that are named as standing in the way, at most.
pub(super) const NAMED: usize = 16;

/// Jobs that these nodes are promised to, by id.
pub(super) fn promised_to(inventory: &Inventory, nodes: impl Iterator<Item = NodeId>) -> Vec<u32> {
    let mut jobs: Vec<u32> =
        nodes.flat_map(|id| inventory.reserved_on(id)).map(|reservation| reservation.job).collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs.truncate(NAMED);
    jobs
}
