//! Reads and validates Flux jobspecs.
//!
//! Like Fluxion, this module accepts versions 1 to 9999 and parses integers as C++ streams do (`010` is 8).
//! It accepts the same documents as Fluxion, except those that would make it hang. A custom [`Reader`] can
//! handle resources that Fluxion does not support.

mod count;
mod error;
mod extra;
pub mod number;
mod read;
mod spec;
mod tasks;
#[cfg(test)]
mod tests;
pub mod yaml;

pub use count::{Count, Operator};
pub use error::JobspecError;
pub use extra::{Extra, Reader};
pub use spec::{Jobspec, Resource};
