//! The Fluxion engine: what schedules, and nothing of where it runs.
//!
//! Pure by its manifest: no clock, randomness, network or files. Time is an argument.

pub mod check;
pub mod constraint;
pub mod document;
pub mod duration;
pub mod errno;
pub mod event;
pub mod explain;
pub mod flux_constraint;
pub mod formats;
pub mod graph;
pub mod inventory;
pub mod jobspec;
pub mod matcher;
pub mod model;
pub mod planner;
pub mod quantity;
pub mod queue;
pub mod quirks;
pub mod record;
pub mod request;
pub mod resources;
pub mod search;
pub mod sim;
pub mod state;

#[cfg(test)]
mod testing;
