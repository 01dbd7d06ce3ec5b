//! The queue pass: jobs in queue order are started, promised a start, or told why neither.
//!
//! The definition is the simple loop: every reservation is made anew in each pass, in queue order. What runs skips
//! work whose outcome is known (within a pass nothing is freed, so what failed once fails again) and can be cut into
//! slices by counted work.
//!
//! A job that says nothing of its end may run for ever, and is started only where nothing is promised to others. For
//! those who are planned behind it, it is assumed to take as long as its queue's configuration says, so that the first
//! that waits always has a planned start and is never overtaken without end.

mod config;
mod known;
mod pass;

pub use config::{OnPartialBind, QueueConfig, QueuePolicy};
pub use known::KnownFailures;
pub use pass::{Carry, PassJob, PassResult, Refusal, pass};

#[cfg(test)]
mod tests;
