//! The interface to Kubernetes: watches in, writes out.
//!
//! It converts and executes; it makes no decisions.

pub mod connect;
pub mod lease;
pub mod pin;
pub(crate) mod suspendable;
pub mod translate;
pub mod watch;
pub mod writer;
