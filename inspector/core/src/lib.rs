//! The Fluxion engine: what schedules, and nothing of where it runs.
//!
//! Pure by its manifest: no clock, randomness, network or files. Time is an argument.

pub mod document;
pub mod errno;
pub mod flux_constraint;
pub mod formats;
pub mod graph;
pub mod jobspec;
pub mod matcher;
pub mod planner;
pub mod quirks;
pub mod search;
