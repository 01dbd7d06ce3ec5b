//! Whose reservations are in the way.

use crate::inventory::{Inventory, NodeId};

/// Maximum number of blocking holders and jobs listed.
pub(super) const NAMED: usize = 16;

/// Jobs with reservations on these nodes, by ID.
pub(super) fn promised_to(inventory: &Inventory, nodes: impl Iterator<Item = NodeId>) -> Vec<u32> {
    let mut jobs: Vec<u32> =
        nodes.flat_map(|id| inventory.reserved_on(id)).map(|reservation| reservation.job).collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs.truncate(NAMED);
    jobs
}
