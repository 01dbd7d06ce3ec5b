//! Kept reservations on other nodes, at the same times.
//!
//! A gap may be wide enough for a job and yet lie on different nodes at its beginning and at its end, because of the nodes
//! that reservations happen to be on. A reservation promises a time, not nodes: if there is enough in total, all
//! reservations from then on are put on nodes again in the order of their starts. Where nodes are equal and jobs have
//! them for themselves, that always succeeds; if it does not, everything stays as it was.

use std::sync::Arc;

use super::job::PassJob;
use super::turn::Turn;
use crate::placement::start_at;
use crate::request::{Planned, Request};

/// Maximum number of failed attempts in a pass.
const IN_VAIN: u32 = 4;
/// Maximum number of nodes looked at in an attempt.
const MOST: usize = 1_000_000;

/// Whether the totals may tell when it fits.
fn simple(request: &Request) -> bool {
    matches!(&request.shapes[..], [shape] if shape.peer.is_none())
        && request.minimum.is_none()
        && request.level.is_none()
}

impl Turn<'_> {
    /// Makes room for a start of a job at a time at which there is enough in total, if that keeps the times of all
    /// reservations. The job's own reservation is not made.
    pub(super) fn rearrange(&mut self, job: &PassJob, place: usize, start: i64) -> Option<Planned> {
        let memory = Arc::make_mut(&mut self.carry.memory);
        let request = memory.request(place);
        let wants = memory.wants(place, self.inventory);
        if self.carry.in_vain >= IN_VAIN || !simple(&request) || !self.inventory.totals_hold(&wants) {
            return None;
        }
        let plans = memory.plans.clone();
        let there = |id: &u32| *id != job.id && self.inventory.reservation(*id).is_some();
        let mut later: Vec<(i64, u32)> = (plans.iter())
            .filter(|(id, kept)| kept.planned.start >= start && there(id))
            .map(|(id, kept)| (kept.planned.start, *id))
            .collect();
        if later.is_empty() || later.len().saturating_mul(self.inventory.node_count()) > MOST {
            return None;
        }
        later.sort_unstable();
        for (_, id) in &later {
            self.inventory.clear_reservation(*id);
        }
        let mut placed: Vec<(u32, Arc<Request>, Planned)> = Vec::with_capacity(later.len() + 1);
        let wanted = later.iter().filter_map(|(at, id)| Some((*id, plans.get(id)?.whole.clone(), *at)));
        for (id, request, at) in std::iter::once((job.id, request, start)).chain(wanted) {
            let found =
                start_at(self.inventory, &request, at, self.now, self.config.node_policy, &mut self.work);
            let Some(planned) = found else { break };
            self.inventory.promise(id, &request, &planned, self.config.assumed_duration);
            placed.push((id, request, planned));
        }
        if placed.len() <= later.len() {
            for (id, ..) in &placed {
                self.inventory.clear_reservation(*id);
            }
            for (_, id) in &later {
                let Some(kept) = plans.get(id) else { continue };
                self.inventory.promise(*id, &kept.whole, &kept.planned, self.config.assumed_duration);
            }
            self.carry.in_vain += 1;
            return None;
        }
        self.inventory.clear_reservation(job.id);
        let memory = Arc::make_mut(&mut self.carry.memory);
        memory.end();
        let mut placed = placed.into_iter();
        let own = placed.next().map(|(.., planned)| planned);
        for (id, _, planned) in placed {
            if let Some(kept) = memory.plans.get_mut(&id)
                && kept.planned.placement != planned.placement
            {
                kept.planned = Arc::new(planned.clone());
                self.result.reserved.push((id, planned));
            }
        }
        own
    }
}
