//! Whose reservations are in the way.

use crate::inventory::Inventory;
use crate::request::Placement;

/// Holders and jobs that are named as standing in the way, at most.
pub(super) const NAMED: usize = 16;

/// Jobs that the nodes of a placement are promised to, by id.
pub(super) fn promised_to(inventory: &Inventory, placement: &Placement) -> Vec<u32> {
    let nodes = placement.slots.iter().filter_map(|slot| inventory.id(&slot.node));
    let mut jobs: Vec<u32> =
        nodes.flat_map(|id| inventory.reserved_on(id)).map(|reservation| reservation.job).collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs.truncate(NAMED);
    jobs
}
