//! The earliest start of a request, and what blocks it if there is none.

use std::collections::BTreeMap;

use super::availability::Availability;
use super::filling::Work;
use super::later;
use super::now::try_now;
use super::plan::Plan;
use super::policy::{Blocked, NodePolicy};
use super::promised::NAMED;
use super::search::{place, still_holds};
use super::sweep::Sweep;
use crate::constraint::HostPort;
use crate::inventory::{AllocationKind, Inventory, KindId, planned_end};
use crate::request::{Planned, Request};

/// The times considered for a start, epoch seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Between {
    pub(crate) now: i64,
    /// The first one; a second after now at the earliest.
    pub(crate) from: i64,
    /// The first one that is too late.
    pub(crate) before: i64,
}

/// The earliest start at which the request fits for its whole duration, respecting reservations. Fails if no planned
/// end frees enough: [`Blocked::no_end`] lists the holders without one.
pub fn earliest(
    inventory: &Inventory,
    request: &Request,
    now: i64,
    policy: NodePolicy,
) -> Result<Planned, Blocked> {
    let mut work = Work::default();
    match try_now(inventory, request, now, policy, &mut work) {
        Ok(placement) => Ok(Planned { start: now, end: request.end(now), placement, assumed: false }),
        Err(_) => {
            first_start(inventory, request, Between { now, from: now, before: i64::MAX }, policy, &mut work)
        }
    }
}

/// As [`earliest`], for a request that is known not to start now, nor before a later time. There may be a time from
/// which on nothing is wanted: then a failure gives no reason.
pub(crate) fn first_start(
    inventory: &Inventory,
    request: &Request,
    Between { now, from, before }: Between,
    policy: NodePolicy,
    work: &mut Work,
) -> Result<Planned, Blocked> {
    let plan = Plan::new(inventory, request, policy);
    let mut sweep_work = Work { visited: work.visited, ..Work::default() };
    let planned = if plan.constrained {
        let from = from.max(now.saturating_add(1));
        later::first_start(&plan, request, now, from, &mut sweep_work)
            .filter(|planned| planned.start < before)
    } else if place(&plan, &Availability::late_unreserved(inventory, now), &mut sweep_work).is_some() {
        Sweep::new(&plan, request, now, from.max(now.saturating_add(1))).run(before, &mut sweep_work)
    } else {
        None
    };
    work.visited = sweep_work.visited;
    let Some(mut planned) = planned else {
        return Err(if before == i64::MAX { in_the_way(&plan, now) } else { Blocked::default() });
    };
    // Under constraints between Pods, anybody who is assumed to have left by then may be in the way.
    let assumed = || inventory.next_assumed_end().is_some_and(|end| end <= planned.start);
    planned.assumed = plan.constrained && assumed() || rests_on_assumption(inventory, request, &planned, now);
    Ok(planned)
}

/// A start at a time that is not before now, if it fits then.
pub(crate) fn start_at(
    inventory: &Inventory,
    request: &Request,
    start: i64,
    now: i64,
    policy: NodePolicy,
    work: &mut Work,
) -> Option<Planned> {
    let plan = Plan::new(inventory, request, policy);
    let end = request.end(start);
    let availability = Availability::window(inventory, now, start, end.unwrap_or(i64::MAX));
    let placement = place(&plan, &availability, work)?;
    let planned = Planned { start, end, placement, assumed: false };
    let assumed = rests_on_assumption(inventory, request, &planned, now);
    Some(Planned { assumed, ..planned })
}

/// The same start on the same nodes, if there still is room for it until a time: nothing else has been planned there, no
/// holder stays for longer, and the nodes are still eligible.
pub(crate) fn still_free(
    inventory: &Inventory,
    request: &Request,
    (planned, until): (&Planned, i64),
    now: i64,
    policy: NodePolicy,
) -> Option<Planned> {
    let (start, end) = (planned.start, request.end(planned.start));
    let plan = Plan::new(inventory, request, policy);
    let availability = Availability::window(inventory, now, start, until);
    if start <= now {
        return None;
    }
    let mut planned = planned.clone();
    if plan.constrained {
        // Others may have come where it was to be: it keeps its start, if not its nodes.
        planned.placement = place(&plan, &availability, &mut Work::default())?;
    } else if !still_holds(&plan, &availability, &planned.placement) {
        return None;
    }
    let assumed = rests_on_assumption(inventory, request, &planned, now);
    Some(Planned { end, assumed, ..planned })
}

/// Whether the plan would not fit if holders with an assumed end were still there.
fn rests_on_assumption(inventory: &Inventory, request: &Request, planned: &Planned, now: i64) -> bool {
    if !inventory.assumes() && !inventory.reservations().any(|(_, reservation)| reservation.end_assumed) {
        return false;
    }
    let (start, end) = (planned.start, planned.end.unwrap_or(i64::MAX));
    // The slots of a node are contiguous.
    planned.placement.slots.chunk_by(|a, b| a.node == b.node).any(|slots| {
        let Some((id, book)) = slots
            .first()
            .and_then(|slot| inventory.id(&slot.node))
            .and_then(|id| Some((id, inventory.book(id)?)))
        else {
            return false;
        };
        let shapes =
            || slots.iter().filter_map(|slot| Some((slot, request.shapes.get(slot.shape as usize)?)));
        let holds = || {
            book.holds
                .iter()
                .map(|(_, held)| held)
                .filter(|held| held.hold.end_assumed && planned_end(held.hold.until, now) <= start)
        };
        let promises =
            || inventory.reserved_on(id).iter().filter(|entry| entry.assumed && entry.end <= start);
        let ports = || shapes().flat_map(|(_, shape)| shape.ports.iter());
        let clash = |others: &[HostPort]| others.iter().any(|other| ports().any(|port| port.clashes(other)));
        if holds().any(|held| clash(&held.hold.ports)) || promises().any(|entry| clash(&entry.ports)) {
            return true;
        }
        let mut wanted: BTreeMap<KindId, u128> = BTreeMap::new();
        for (slot, shape) in shapes() {
            for (resource, need) in shape.needs.iter() {
                if let Some(kind) = inventory.columns().kind(resource) {
                    *wanted.entry(kind).or_default() += u128::from(need) * u128::from(slot.count);
                }
            }
        }
        let kinds: Vec<KindId> = wanted.keys().copied().collect();
        let mut available = Vec::new();
        inventory.least(id, now, (start, end), &kinds, &mut available);
        wanted.iter().zip(&available).any(|((kind, wanted), available)| {
            let needs = holds().map(|held| &held.needs).chain(promises().map(|entry| &entry.needs));
            let assumed = needs.flat_map(|needs| needs.iter()).filter(|(of, _)| of == kind);
            let assumed: u128 = assumed.map(|(_, quantity)| u128::from(*quantity)).sum();
            wanted + assumed > u128::from(*available)
        })
    })
}

impl Blocked {
    fn add_job(&mut self, job: u32) {
        if self.no_end_jobs.len() < NAMED && !self.no_end_jobs.contains(&job) {
            self.no_end_jobs.push(job);
        }
    }
}

/// Holders without a planned end on nodes that would have more room without them. None if only unavailable nodes are
/// missing.
pub(crate) fn in_the_way(plan: &Plan<'_>, now: i64) -> Blocked {
    let inventory = plan.inventory;
    let (late, most) = (Availability::late(inventory, now), Availability::most(inventory));
    let mut failure = Blocked::default();
    if place(plan, &late.recovered(), &mut Work::default()).is_some() {
        return failure;
    }
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
            // Jobs started in the same pass don't have a known holder yet.
            match hold.job.filter(|_| hold.kind == AllocationKind::Assumed) {
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
