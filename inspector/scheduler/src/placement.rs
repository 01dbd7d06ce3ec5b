//! Gangs onto nodes: all slots of a request at once or none (or, where fewer are enough, at least its minimum), each
//! within one node.
//!
//! Decides where a request starts now ([`place_now`]), when it can start at the earliest ([`earliest`]) and whether
//! it could ever ([`satisfiable`]). One search serves all three; they differ in what they take for available. Knows
//! nothing of queues, Pods or names of jobs.

mod alternatives;
mod earliest;
mod lens;
mod most;
mod plan;
mod search;
mod sweep;

use std::sync::Arc;

pub use earliest::earliest;

pub(crate) use earliest::{first_start, in_the_way};
pub(crate) use lens::Lens;
pub(crate) use plan::{Plan, PlannedShape};
pub(crate) use search::{Work, place, room};

use crate::explain::{WhyNot, why_never};
use crate::inventory::Inventory;
use crate::request::Request;

/// Which of the nodes that fit are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodePolicy {
    /// The first in natural order of names.
    #[default]
    Low,
    /// The last in natural order of names.
    High,
}

/// Slots of one shape on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Index into the request's shapes.
    pub shape: u32,
    /// The node.
    pub node: Arc<str>,
    /// How many of them; at least 1.
    pub count: u32,
}

/// Where the slots of a request lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// By node in order of the search, then by shape.
    pub slots: Vec<Slot>,
    /// The domain that all share, where the request asks for a level.
    pub domain: Option<Arc<str>>,
}

/// A placement with its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Epoch seconds.
    pub start: i64,
    /// When it ends; none without a time limit.
    pub end: Option<i64>,
    /// Where.
    pub placement: Placement,
    /// The start rests on an end that is only assumed.
    pub assumed: bool,
}

/// Why a request does not start, as far as the search itself knows; [`crate::explain`] says more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// It would start but for what these jobs are promised.
    pub behind: Vec<u32>,
    /// Holders without a planned end that stand in the way (at most 16), where no start can be planned.
    pub no_end: Vec<Arc<str>>,
    /// Jobs that are about to hold, or are promised, something without an end that stands in the way (at most 16).
    pub no_end_jobs: Vec<u32>,
}

/// A placement that can start now and collides with no reservation as long as it runs.
pub fn place_now(
    inventory: &Inventory,
    request: &Request,
    now: i64,
    policy: NodePolicy,
) -> Result<Placement, Failure> {
    try_now(inventory, request, now, policy, &mut Work::default())
}

/// As [`place_now`], counting its work.
pub(crate) fn try_now(
    inventory: &Inventory,
    request: &Request,
    now: i64,
    policy: NodePolicy,
    work: &mut Work,
) -> Result<Placement, Failure> {
    let plan = Plan::new(inventory, request, policy);
    let end = request.end(now).unwrap_or(i64::MAX);
    if let Some(placement) = place(&plan, &Lens::window(inventory, now, now, end), work) {
        return Ok(placement);
    }
    // The second search is not bound by what the first one saw.
    let first = std::mem::replace(&mut work.skip, 0).max(work.first);
    let behind = if inventory.reservations().next().is_none() {
        Vec::new()
    } else {
        place(&plan, &Lens::unreserved(inventory, now), work)
            .map_or_else(Vec::new, |placement| earliest::promised_to(inventory, &placement))
    };
    work.first = first;
    Err(Failure { behind, ..Failure::default() })
}

/// Whether the request could run if everything but what never leaves a node were gone, and what passes by itself
/// (cordons, readiness) had passed. The members of the gang count together.
#[expect(clippy::result_large_err, reason = "the reasons are the answer, asked for once per job and graph")]
pub fn satisfiable(inventory: &Inventory, request: &Request) -> Result<(), WhyNot> {
    let plan = Plan::new(inventory, request, NodePolicy::Low);
    match place(&plan, &Lens::most(inventory), &mut Work::default()) {
        Some(_) => Ok(()),
        None => Err(why_never(inventory, request)),
    }
}

#[cfg(test)]
mod tests;
