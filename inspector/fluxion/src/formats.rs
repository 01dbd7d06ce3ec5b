//! Text formats of resource graphs and allocations: readers (GRUG, JGF, RV1, hwloc XML), writers
//! (simple, JGF, `R_lite`, RV1), and the syntaxes they share.
//!
//! Readers take bytes and writers produce strings; the caller handles files.

mod error;
pub mod grug;
pub mod hostlist;
pub mod hwloc;
pub mod idset;
pub mod jgf;
pub mod rv1;
pub mod writer;

pub use error::ReadError;
