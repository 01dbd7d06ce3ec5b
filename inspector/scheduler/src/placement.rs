//! Places gangs on nodes: all slots of a request at once or none (or, if there is a minimum, at least that many), each
//! within one node.
//!
//! Decides where a request can start now ([`place_now`]), when it can start at the earliest ([`earliest`]), and
//! whether it ever can ([`satisfiable`]). They share one search and differ in what counts as available. Knows nothing
//! about queues, Pods or names of jobs.

mod alternatives;
mod availability;
mod board;
mod changes;
mod constrained;
mod counting;
mod denied;
mod earliest;
mod filling;
mod later;
mod most;
mod now;
mod order;
mod plan;
mod policy;
mod promised;
mod roomy;
mod rules;
mod scored;
mod search;
mod sweep;
mod tally;

pub use denied::Denied;
pub use earliest::earliest;
pub use now::{place_now, satisfiable};
pub use policy::{Blocked, NodePolicy};

pub(crate) use availability::Availability;
pub(crate) use earliest::{Between, first_start, in_the_way, start_at, still_free};
pub(crate) use filling::Work;
pub(crate) use now::{FailedStart, allows, start_now};
pub(crate) use plan::{Plan, PlannedShape};
pub(crate) use roomy::Roomy;
pub(crate) use rules::Rules;
pub(crate) use scored::WEIGHT;
pub(crate) use search::{Room, place, room};

#[cfg(test)]
mod tests;
