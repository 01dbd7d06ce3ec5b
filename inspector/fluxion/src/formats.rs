//! Resource graphs and allocations as text: readers (GRUG, JGF, RV1, hwloc XML) and writers
//! (simple, JGF, `R_lite`, RV1), with the small syntaxes they share.
//!
//! Texts come in as bytes and go out as strings; files are the caller's affair.

mod error;
pub mod grug;
pub mod hostlist;
pub mod hwloc;
pub mod idset;
pub mod jgf;
pub mod rv1;
pub mod writer;

pub use error::ReadError;
