//! Standalone mode: the scheduler without a cluster.
//!
//! A small substitute of the API server, in this process, feeds the same engine with the same objects that a
//! cluster would, and carries out its effects; virtual Pods run for their time.

pub mod manifest;
pub mod object;
mod unknown_fields;
