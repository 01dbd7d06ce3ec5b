//! What a job asks for: the Flux jobspec, read and validated.
//!
//! Fluxion accepts versions 1 to 9999 alike and takes integers the way C++ streams do (`010` is 8);
//! what is accepted here is what it accepts, apart from documents that would make it hang. A [`Reader`] of
//! one's own can take over the resources that it knows, and Fluxion does not.

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
