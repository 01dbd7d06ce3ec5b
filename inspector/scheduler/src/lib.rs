//! The state machine of a cluster: schedules gangs of Pods, independently of where it runs.
//!
//! [`state::State::step`] takes events and returns effects. Below it, from the bottom: [`resources`], [`constraint`]
//! and [`request`], the [`inventory`] of nodes, the [`placement`] of a gang on them, and the [`queue`] that decides
//! which jobs start when. [`explain`] explains why a job waits, [`check`] verifies everything independently, [`sim`]
//! runs it with a virtual clock, and [`extension`] plugs gangs into the engine of [`fluxion`].
//!
//! Pure by its manifest: no clock, randomness, network or files. Time is an argument.

pub mod check;
pub mod constraint;
pub mod duration;
pub mod event;
pub mod explain;
pub mod extension;
pub mod inventory;
pub mod job;
pub mod marks;
pub mod model;
pub mod placement;
pub mod queue;
pub mod record;
pub mod request;
pub mod resources;
pub mod sim;
pub mod small_set;
pub mod state;

#[cfg(test)]
mod testing;
