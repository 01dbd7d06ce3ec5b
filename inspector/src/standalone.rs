//! Standalone mode: the scheduler without a cluster.
//!
//! A small substitute of the API server, in this process, feeds the same engine with the same objects that a
//! cluster would, and carries out its effects; virtual Pods run for their time.

pub mod admission;
pub mod cluster;
pub mod controllers;
pub mod examples;
pub mod feed;
pub mod kubelet;
pub mod manifest;
pub mod names;
pub mod object;
pub mod server;
pub mod store;
mod unknown_fields;
