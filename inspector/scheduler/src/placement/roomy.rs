//! The nodes with room for a slot of a request, as a failed search came across them. All others were found wanting, and
//! still are unless something was freed on them, so the next search only has to look at these.

use super::availability::Availability;
use super::filling::Work;
use super::plan::Plan;
use crate::inventory::NodeId;

/// Maximum number of nodes remembered for a request.
const MOST: usize = 128;

/// Nodes with room for a slot, regardless of reservations, that a search came across.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    nodes: Vec<NodeId>,
    /// The search has looked at all nodes.
    whole: bool,
}

impl Seen {
    pub(super) fn begin(&mut self) {
        self.nodes.clear();
        self.whole = false;
    }

    pub(super) fn note(&mut self, id: NodeId) {
        if self.nodes.len() <= MOST {
            self.nodes.push(id);
        }
    }

    pub(super) fn end(&mut self) {
        self.whole = true;
    }

    /// The nodes, if these are all; none if there are too many.
    pub(super) fn all(&mut self, plan: &Plan<'_>) -> Option<Roomy> {
        let all = std::mem::take(&mut self.whole) && plan.is_plain() && self.nodes.len() <= MOST;
        let freed = plan.inventory.freed_generation();
        let mut nodes = std::mem::take(&mut self.nodes);
        nodes.sort_unstable_by_key(|id| plan.inventory.rank(*id));
        all.then_some(Roomy { nodes, freed })
    }
}

/// All nodes with room for a slot of a request, regardless of reservations, and some without.
#[derive(Clone, Debug)]
pub(crate) struct Roomy {
    nodes: Vec<NodeId>,
    /// As of this generation ([`crate::inventory::Inventory::freed_generation`]).
    freed: u64,
}

impl Roomy {
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
        let lens = Availability::unreserved(inventory, now);
        let mut sums = vec![0_u64; plan.shapes.len()];
        let mut available = Vec::with_capacity(plan.kinds.len());
        self.nodes.retain(|id| {
            work.visited += plan.shapes.len() as u64;
            if inventory.rank(*id) == usize::MAX {
                return false;
            }
            lens.available(*id, &plan.kinds, &mut available);
            let mut any = false;
            for (sum, shape) in sums.iter_mut().zip(&plan.shapes) {
                let room = lens.capacity(shape, *id, &available);
                *sum += u64::from(room);
                any |= room > 0;
            }
            any
        });
        let enough = plan.shapes.iter().zip(&sums).all(|(shape, sum)| u64::from(shape.count) <= *sum);
        (self.nodes.len() <= MOST).then_some(if enough { &self.nodes } else { &[] })
    }
}
