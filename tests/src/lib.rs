//! A real control plane for tests, and what tests say to it.
//!
//! [`Cluster::start`] gives an etcd, a kube-apiserver, a kube-controller-manager and fake kubelets of one's own
//! in about ten seconds; everything ends when it is dropped. [`inspector`] runs the project's inspector against
//! it as a plain process with the rights of its chart, and [`plugin`] asks it as a user would. [`cases`] plays
//! clusters with trouble in them.
//!
//! Errors here are read by people only: they are `anyhow` chains, not types.

pub mod admission;
pub mod apply;
pub mod balancer;
pub mod cases;
pub mod clock;
pub mod cluster;
pub mod deployed;
pub mod door;
pub mod gang_watch;
pub mod helm;
pub mod inspector;
pub mod manifests;
pub mod nodes;
pub mod owners;
pub mod plugin;
pub mod postgres;
pub mod programs;
pub mod provisioner;
pub mod random;
pub mod registration;
pub mod scale;
pub mod server;
pub mod slow;
pub mod stage;
pub mod standalone;
pub mod tools;
pub mod trial;
pub mod usage;
pub mod valve;
pub mod wait;

pub use cluster::{Cluster, Kubelets, Options, Scheduler};
