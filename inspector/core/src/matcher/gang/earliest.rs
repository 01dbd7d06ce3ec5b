//! The earliest start of a request, and who stands in the way where there is none.

use super::lens::Lens;
use super::plan::Plan;
use super::search::{Work, place};
use super::sweep::Sweep;
use super::{Failure, NodePolicy, Placement, Planned, try_now};
use crate::inventory::{HoldKind, Inventory};
use crate::request::Request;

/// Holders and jobs that are named as standing in the way, at most.
const NAMED: usize = 16;

/// The earliest start at which the request fits for as long as it runs, between the reservations there are. Fails
/// when no planned end makes room for it: [`Failure::no_end`] names who has none.
pub fn earliest(
    inventory: &Inventory,
    request: &Request,
    now: i64,
    policy: NodePolicy,
) -> Result<Planned, Failure> {
    let mut work = Work::default();
    match try_now(inventory, request, now, policy, &mut work) {
        Ok(placement) => Ok(Planned { start: now, end: request.end(now), placement }),
        Err(_) => first_start(inventory, request, (now, now), policy, &mut work),
    }
}

/// As [`earliest`], for a request that is known not to start now, nor before a later time.
pub(crate) fn first_start(
    inventory: &Inventory,
    request: &Request,
    (now, not_before): (i64, i64),
    policy: NodePolicy,
    work: &mut Work,
) -> Result<Planned, Failure> {
    let plan = Plan::new(inventory, request, policy);
    let mut sweep_work = Work { visited: work.visited, ..Work::default() };
    let planned = if place(&plan, &Lens::late_unreserved(inventory, now), &mut sweep_work).is_some() {
        Sweep::new(&plan, request, now, not_before.max(now.saturating_add(1))).run(&mut sweep_work)
    } else {
        None
    };
    work.visited = sweep_work.visited;
    planned.ok_or_else(|| in_the_way(&plan, now))
}

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

impl Failure {
    fn add_job(&mut self, job: u32) {
        if self.no_end_jobs.len() < NAMED && !self.no_end_jobs.contains(&job) {
            self.no_end_jobs.push(job);
        }
    }
}

/// Who has no planned end on nodes that would take more without them.
pub(crate) fn in_the_way(plan: &Plan<'_>, now: i64) -> Failure {
    let inventory = plan.inventory;
    let (late, most) = (Lens::late(inventory, now), Lens::most(inventory));
    let mut failure = Failure::default();
    let (mut at_most, mut at_last) = (Vec::new(), Vec::new());
    let nodes = plan.group_order().filter_map(|group| plan.group(group)).flat_map(|(_, nodes)| nodes);
    for id in nodes.copied() {
        most.available(id, &plan.kinds, &mut at_most);
        late.available(id, &plan.kinds, &mut at_last);
        let blocked = plan.shapes.iter().find(|shape| {
            late.admits(shape, id) && most.capacity(shape, id, &at_most) > late.capacity(shape, id, &at_last)
        });
        let (Some(shape), Some(book)) = (blocked, inventory.book(id)) else { continue };
        let wants = |kind: u32| shape.needs.iter().any(|(at, _)| plan.kinds[*at] == kind);
        for (holder, held) in &book.holds {
            let hold = &held.hold;
            let uses = held.needs.iter().any(|(kind, _)| wants(*kind));
            if hold.until.is_some() || hold.permanent || !uses {
                continue;
            }
            // What starts in the same pass has no holder that anybody else knows.
            match hold.job.filter(|_| hold.kind == HoldKind::Assumed) {
                Some(job) => failure.add_job(job),
                None if failure.no_end.len() < NAMED => failure.no_end.push(holder.clone()),
                None => {}
            }
        }
        for reservation in inventory.reserved_on(id) {
            if reservation.end == i64::MAX {
                failure.add_job(reservation.job);
            }
        }
        if failure.no_end.len() == NAMED {
            break;
        }
    }
    failure.no_end_jobs.sort_unstable();
    failure
}
