//! The queue pass: in queue order, jobs are started, get a reservation, or get a reason for neither.
//!
//! By definition it is a simple loop: in each pass, all reservations are recomputed in queue order. The implementation
//! skips work with a known result (within a pass nothing is freed, so what failed once fails again) and can be split
//! into slices by counted work.
//!
//! A conservative queue keeps its reservations instead, unless it is told to plan again ([`Planning`]).
//!
//! A job without a time limit may run forever, and only starts on resources without reservations. To plan the jobs
//! behind it, it is assumed to run for the time configured for its queue, so that the first waiting job always has a
//! planned start and is never overtaken indefinitely.

mod config;
mod job;
mod keep;
mod known;
mod pass;
mod rearrange;
mod restore;
mod turn;

pub use config::{OnPartialBind, Planning, QueueConfig, QueuePolicy};
pub use job::{Carry, PassJob, PassResult, PassTally, Refusal, Rest, start_holder};
pub use known::KnownFailures;
pub use pass::pass;

#[cfg(test)]
mod tests;
