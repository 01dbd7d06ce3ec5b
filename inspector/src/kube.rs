//! The edge to Kubernetes: watches in, writes out.
//!
//! It translates and carries out; it decides nothing.

pub mod connect;
pub mod lease;
pub mod translate;
pub mod watch;
pub mod writer;
