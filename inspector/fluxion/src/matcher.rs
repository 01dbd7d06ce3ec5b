//! Finds and allocates resources for a request, by Fluxion's rules.
//!
//! [`Engine`] holds a graph and its allocations, and reports matches to a [`sink::Sink`]. Output formats, job
//! tables and command lines are handled elsewhere.

mod account;
pub mod allocations;
mod book;
mod cancel;
mod change;
mod check;
mod engine;
mod exact;
mod extended;
pub mod extension;
pub mod filter;
mod find;
mod job;
mod memo;
mod notes;
mod operation;
mod operations;
mod partial;
pub mod policy;
mod request;
mod resum;
mod scratch;
mod shorts;
mod siblings;
pub mod sink;
mod sort;
mod sums;
#[cfg(test)]
mod tests;
mod units;
mod update;
pub mod why;

pub use crate::quirks::Quirks;
pub use engine::{Engine, EngineError, Options};
pub use job::{AllocationKind, JobId};
pub use operation::{Failure, Found, LIFETIME, Operation, effective_duration};
pub use policy::Policy;
pub use why::WhyNot;
