//! The queue pass: jobs in queue order are started, promised a start, or told why neither.
//!
//! The definition is the simple loop: every reservation is made anew in each pass, in queue order. What runs skips
//! work whose outcome is known (within a pass nothing is freed, so what failed once fails again) and can be cut into
//! slices by counted work.

mod config;
mod known;
mod pass;

pub use config::{OnPartialBind, QueueConfig, QueuePolicy};
pub use known::Memory;
pub use pass::{Carry, PassJob, PassResult, Refusal, pass};

#[cfg(test)]
mod tests;
