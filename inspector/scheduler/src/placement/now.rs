//! Immediate starts, and satisfiability.

use super::availability::Availability;
use super::filling::{Taken, Work};
use super::plan::Plan;
use super::policy::{Blocked, NodePolicy};
use super::promised::promised_to;
use super::roomy::Roomy;
use super::rules::Rules;
use super::search::{fillings, place, still_takes};
use crate::inventory::Inventory;
use crate::request::{Placement, Request, Shape};

/// A placement that can start now and conflicts with no reservation during its duration.
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
    start_now(&Plan::new(inventory, request, policy), request, now, work)
        .map_err(|failed| Blocked { behind: failed.behind, ..Blocked::default() })
}

/// A start that failed.
#[derive(Clone, Debug)]
pub(crate) struct FailedStart {
    /// It would start if these jobs had no reservations.
    pub(crate) behind: Vec<u32>,
    /// Where it would start then.
    unreserved: Option<Taken>,
    /// The nodes that have room for some of it, if these are known.
    pub(crate) roomy: Option<Roomy>,
}

/// As [`try_now`], with more details on failure. The plan is one of the request.
pub(crate) fn start_now(
    plan: &Plan<'_>,
    request: &Request,
    now: i64,
    work: &mut Work,
) -> Result<Placement, FailedStart> {
    let end = request.end(now).unwrap_or(i64::MAX);
    if let Some(placement) = place(plan, &Availability::window(plan.inventory, now, now, end), work) {
        return Ok(placement);
    }
    // The second search is independent of the results of the first.
    let first = std::mem::replace(&mut work.skip, 0).max(work.first);
    let failed = FailedStart::behind_promises(plan, now, work);
    work.first = first;
    Err(failed)
}

impl FailedStart {
    fn behind_promises(plan: &Plan<'_>, now: i64, work: &mut Work) -> Self {
        let inventory = plan.inventory;
        let unreserved = if inventory.reservations().next().is_none() {
            None
        } else {
            fillings(plan, &Availability::unreserved(inventory, now), work)
        };
        let nodes = unreserved.iter().flatten().map(|(node, _)| *node);
        let mut behind = promised_to(inventory, nodes);
        if behind.is_empty() && unreserved.is_some() && plan.constrained {
            // What is promised elsewhere may be in the way too, e.g. a volume.
            behind = promised_to(inventory, inventory.promised().map(|(_, node)| node));
        }
        // Without reservations, the first search was the same.
        let roomy = if unreserved.is_none() { Roomy::of(&mut work.seen, plan) } else { None };
        Self { behind, unreserved, roomy }
    }

    /// Determines again which jobs are in the way, after slots were allocated and reservations added: at the same
    /// time, what failed fails again. If that is not certain, it does nothing and returns this.
    ///
    /// A search for several shapes may end by its budget, and later find what it missed; one for a single shape is
    /// complete. It uses everything available on each node in order, so nodes without room still have none, and as
    /// long as the others have room for their slots, it ends on the same nodes.
    pub(crate) fn look_again(&mut self, plan: &Plan<'_>, now: i64, work: &mut Work) -> bool {
        if plan.shapes.len() != 1 || plan.constrained {
            return false;
        }
        let availability = Availability::unreserved(plan.inventory, now);
        match &self.unreserved {
            Some(taken) if plan.minimum.is_none() && still_takes(plan, &availability, taken, work) => {
                self.behind = promised_to(plan.inventory, taken.iter().map(|(node, _)| *node));
            }
            _ => *self = Self::behind_promises(plan, now, work),
        }
        true
    }
}

/// Whether constraints between Pods allow a slot of this shape on the node now, regardless of its resources.
pub(crate) fn allows(inventory: &Inventory, node: &str, shape: &Shape, now: i64) -> bool {
    let request = Request { shapes: vec![Shape { count: 1, ..shape.clone() }], ..Request::default() };
    let plan = Plan::new(inventory, &request, NodePolicy::Low);
    let rules = Rules::new(&plan, &Availability::unreserved(inventory, now));
    rules.is_none_or(|rules| inventory.id(node).is_some_and(|id| rules.check(0, id).is_ok()))
}

/// Whether the request could run if everything except permanent holders were gone, and temporary conditions (cordons,
/// readiness) no longer applied. The members of the gang are counted together.
pub fn satisfiable(inventory: &Inventory, request: &Request) -> bool {
    let plan = Plan::new(inventory, request, NodePolicy::Low);
    place(&plan, &Availability::most(inventory), &mut Work::default()).is_some()
}
