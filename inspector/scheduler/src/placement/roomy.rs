//! The nodes with room for a slot of a request, as a failed search came across them. All others were found wanting, and
//! still are unless something was freed on them, so the next search only has to look at these.

use super::availability::Availability;
use super::filling::{MOST_SEEN, Seen, Work};
use super::plan::Plan;
use crate::inventory::NodeId;

/// All nodes with room for a slot of a request, regardless of reservations, and some without.
#[derive(Clone, Debug)]
pub(crate) struct Roomy {
    nodes: Vec<NodeId>,
    /// As of this generation ([`crate::inventory::Inventory::freed_generation`]).
    freed: u64,
}

impl Roomy {
    /// The nodes that the last search came across, if these are all; none if there are too many.
    pub(super) fn of(seen: &mut Seen, plan: &Plan<'_>) -> Option<Self> {
        let mut nodes = seen.take_all().filter(|_| plan.is_plain())?;
        nodes.sort_unstable_by_key(|id| plan.inventory.rank(*id));
        Some(Self { nodes, freed: plan.inventory.freed_generation() })
    }

    /// The nodes with room now; empty if there is not enough for the request on all of them together. None if that is
    /// unknown.
    pub(crate) fn nodes_now(&mut self, plan: &Plan<'_>, now: i64, work: &mut Work) -> Option<&[NodeId]> {
        let inventory = plan.inventory;
        let generation = inventory.freed_generation();
        if !plan.is_plain() {
            return None;
        }
        if generation != self.freed {
            self.nodes.extend(inventory.freed_since(self.freed)?);
            self.freed = generation;
            self.nodes.sort_unstable_by_key(|id| (inventory.rank(*id), *id));
            self.nodes.dedup();
        }
        let availability = Availability::unreserved(inventory, now);
        let mut sums = vec![0_u64; plan.shapes.len()];
        let mut available = Vec::with_capacity(plan.kinds.len());
        self.nodes.retain(|id| {
            work.visited += plan.shapes.len() as u64;
            if inventory.rank(*id) == usize::MAX {
                return false;
            }
            availability.available(*id, &plan.kinds, &mut available);
            let mut any = false;
            for (sum, shape) in sums.iter_mut().zip(&plan.shapes) {
                let room = availability.capacity(shape, *id, &available);
                *sum += u64::from(room);
                any |= room > 0;
            }
            any
        });
        let enough = plan.shapes.iter().zip(&sums).all(|(shape, sum)| u64::from(shape.count) <= *sum);
        (self.nodes.len() <= MOST_SEEN).then_some(if enough { &self.nodes } else { &[] })
    }
}
