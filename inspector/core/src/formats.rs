//! Resource graphs and allocations as text: readers (GRUG, JGF, RV1, hwloc XML) and writers
//! (simple, JGF, R_lite, RV1), with the small syntaxes they share.
//!
//! Texts come in as bytes and go out as strings; files are the caller's affair.

pub mod hostlist;
pub mod idset;
