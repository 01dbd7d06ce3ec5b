//! Why a request does not start, as data and as user-facing facts.
//!
//! Counts nodes by reason for each shape, and determines what the gang as a whole is lacking and which node comes
//! closest. Jobs and holders are only identified by IDs: [`Names`] decides which of them the user may see.

mod facts;
mod look;
mod preferred;
mod why;

use crate::inventory::Inventory;
use crate::placement::{
    Availability, Between, NodePolicy, Plan, Work, first_start, in_the_way, place, place_now, satisfiable,
};
use crate::request::Request;

pub(crate) use facts::told;
pub use facts::{Nameless, Names, facts, utc};
pub use preferred::PreferenceMet;
pub(crate) use preferred::{Placed, preferences};
pub use why::{Count, GangWhy, NearestMiss, NodeReason, ShapeWhy, Short, WhyNot};

/// Why the request does not start now.
pub fn why_not(inventory: &Inventory, request: &Request, now: i64) -> WhyNot {
    if satisfiable(inventory, request) {
        why_not_now(inventory, request, now)
    } else {
        why_never(inventory, request)
    }
}

/// Why the request does not start now, regardless of whether it ever can.
pub fn why_not_now(inventory: &Inventory, request: &Request, now: i64) -> WhyNot {
    let plan = Plan::new(inventory, request, NodePolicy::Low);
    let end = request.end(now).unwrap_or(i64::MAX);
    let (here, late) = (Availability::window(inventory, now, now, end), Availability::late(inventory, now));
    let mut why = look::look(&plan, request, &here, now, false);
    let fits = |availability: Availability<'_>| place(&plan, &availability, &mut Work::default()).is_some();
    if let Err(failure) = place_now(inventory, request, now, NodePolicy::Low) {
        why.behind = failure.behind;
        why.down = fits(here.recovered());
    }
    // Whoever others wait for under constraints between Pods may have left at the end.
    let planned = if plan.constrained {
        first_start(
            inventory,
            request,
            Between { now, from: now, before: i64::MAX },
            NodePolicy::Low,
            &mut Work::default(),
        )
        .is_ok()
    } else {
        fits(late)
    };
    if !planned {
        let failure = in_the_way(&plan, now);
        why.no_estimate = true;
        why.down |= fits(late.recovered());
        why.no_end = failure.no_end;
        why.no_end_jobs = failure.no_end_jobs;
    }
    why
}

/// Why the request can never start on these nodes.
pub(crate) fn why_never(inventory: &Inventory, request: &Request) -> WhyNot {
    let plan = Plan::new(inventory, request, NodePolicy::Low);
    look::look(&plan, request, &Availability::most(inventory), 0, true)
}

#[cfg(test)]
mod tests;
