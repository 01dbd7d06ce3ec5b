//! Starts at this moment, and whether there could ever be one.

use super::availability::Availability;
use super::filling::Work;
use super::plan::Plan;
use super::policy::{Blocked, NodePolicy};
use super::promised::promised_to;
use super::search::place;
use crate::inventory::Inventory;
use crate::request::{Placement, Request};

/// A placement that can start now and collides with no reservation as long as it runs.
pub fn place_now(
    inventory: &Inventory,
    request: &Request,
    now: i64,
    policy: NodePolicy,
) -> Result<Placement, Blocked> {
    try_now(inventory, request, now, policy, &mut Work::default())
}

/// As [`place_now`], counting its work.
pub(crate) fn try_now(
    inventory: &Inventory,
    request: &Request,
    now: i64,
    policy: NodePolicy,
    work: &mut Work,
) -> Result<Placement, Blocked> {
    let plan = Plan::new(inventory, request, policy);
    let end = request.end(now).unwrap_or(i64::MAX);
    if let Some(placement) = place(&plan, &Availability::window(inventory, now, now, end), work) {
        return Ok(placement);
    }
    // The second search is not bound by what the first one saw.
    let first = std::mem::replace(&mut work.skip, 0).max(work.first);
    let behind = if inventory.reservations().next().is_none() {
        Vec::new()
    } else {
        place(&plan, &Availability::unreserved(inventory, now), work)
            .map_or_else(Vec::new, |placement| promised_to(inventory, &placement))
    };
    work.first = first;
    Err(Blocked { behind, ..Blocked::default() })
}

/// Whether the request could run if everything but what never leaves a node were gone, and what passes by itself
/// (cordons, readiness) had passed. The members of the gang count together.
pub fn satisfiable(inventory: &Inventory, request: &Request) -> bool {
    let plan = Plan::new(inventory, request, NodePolicy::Low);
    place(&plan, &Availability::most(inventory), &mut Work::default()).is_some()
}
