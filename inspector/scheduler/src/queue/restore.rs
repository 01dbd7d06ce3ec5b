//! Reservations that were stored, which a pass begins with.
//!
//! They may be out of date, or for something else: only those with the slots that their job requests now, on nodes on which
//! there is room for them, are made.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::job::PassJob;
use super::known::Kept;
use super::turn::Turn;
use crate::inventory::planned_or_assumed;
use crate::placement::still_free;
use crate::request::{Placement, Planned, Request};

/// Seconds after which no start is believed to be planned: a hundred years.
const FARTHEST: i64 = 100 * 365 * 86_400;

impl Turn<'_> {
    /// Makes the stored reservations, in queue order, instead of those known.
    pub(super) fn restore(&mut self, jobs: &[PassJob]) {
        let Some(stored) = self.carry.stored.take() else { return };
        let known: Vec<u32> = self.carry.memory.plans.keys().copied().collect();
        for job in known {
            self.inventory.clear_reservation(job);
        }
        let memory = Arc::make_mut(&mut self.carry.memory);
        memory.plans.clear();
        memory.end();
        let (now, policy, length) = (self.now, self.config.node_policy, self.config.assumed_duration);
        for job in jobs {
            let Some(planned) = stored.get(&job.id) else { continue };
            let place = self.place(job);
            let whole = self.carry.memory.request(place);
            let ahead = planned.start > now && planned.start < now.saturating_add(FARTHEST);
            if !ahead || !fills(&whole, &planned.placement) {
                continue;
            }
            // Whoever is planned behind a job without a limit was planned behind its assumed end.
            let (until, _) =
                planned_or_assumed(whole.end(planned.start), planned.start, length, planned.start);
            let until = until.unwrap_or(i64::MAX);
            let assumed = planned.assumed;
            let free = still_free(self.inventory, &whole, (planned, until), now, policy);
            let Some(planned) = free.map(|free| Planned { assumed, ..free }) else { continue };
            self.inventory.promise(job.id, &whole, &planned, length);
            let (request, planned) = (job.request.clone(), Arc::new(planned));
            let kept = Kept { request, whole, priority: job.priority, planned };
            Arc::make_mut(&mut self.carry.memory).plans.insert(job.id, kept);
        }
    }
}

/// Whether the slots are those of the request, once each, and the slots of a node are contiguous.
fn fills(request: &Request, placement: &Placement) -> bool {
    let mut counts = vec![0_u64; request.shapes.len()];
    let mut nodes = BTreeSet::new();
    for slots in placement.slots.chunk_by(|a, b| a.node == b.node) {
        let mut shapes = BTreeSet::new();
        for slot in slots {
            let Some(count) = counts.get_mut(slot.shape as usize) else { return false };
            if slot.count == 0 || !shapes.insert(slot.shape) {
                return false;
            }
            *count += u64::from(slot.count);
        }
        if !nodes.insert(&slots[0].node) {
            return false;
        }
    }
    let mut shapes = request.shapes.iter().zip(&counts);
    let counted = match request.minimum {
        None => shapes.all(|(shape, count)| u64::from(shape.count) == *count),
        Some(_) => shapes.all(|(shape, count)| u64::from(shape.count) >= *count),
    };
    counted
        && counts.iter().sum::<u64>() >= request.needed()
        && request.level.is_some() == placement.domain.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Shape, Slot};

    fn shape(count: u32) -> Shape {
        let none = Arc::default();
        Shape {
            count,
            needs: none,
            constraint: Arc::default(),
            ports: Arc::default(),
            peer: None,
            preferences: None,
        }
    }

    #[test]
    fn a_placement_of_something_else_fills_no_request() {
        let request = Request { shapes: vec![shape(3), shape(1)], ..Request::default() };
        let placed = |slots: &[(u32, &str, u32)]| Placement {
            slots: slots
                .iter()
                .map(|&(shape, node, count)| Slot { shape, node: node.into(), count })
                .collect(),
            domain: None,
        };
        let whole = [(0, "a", 2), (1, "a", 1), (0, "b", 1)];
        assert!(fills(&request, &placed(&whole)));
        for other in [
            &whole[..2],
            &[(0, "a", 3), (1, "a", 1), (2, "a", 1)],
            &[(0, "a", 4), (1, "a", 1)],
            &[(0, "a", 3), (1, "b", 1), (0, "b", 0)],
            &[(0, "a", 2), (0, "a", 1), (1, "b", 1)],
            &[(0, "a", 2), (1, "b", 1), (0, "a", 1)],
            &[],
        ] {
            assert!(!fills(&request, &placed(other)), "{other:?}");
        }
        let fewer = Request { minimum: Some(3), ..request.clone() };
        assert!(fills(&fewer, &placed(&whole[..2])) && fills(&fewer, &placed(&whole)));
        assert!(!fills(&fewer, &placed(&[(0, "a", 2)])));
        let level = Request { level: Some("rack".into()), ..request };
        assert!(!fills(&level, &placed(&whole)));
        assert!(fills(&level, &Placement { domain: Some("r1".into()), ..placed(&whole) }));
    }
}
