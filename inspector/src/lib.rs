//! The inspector: the server that runs the engine, feeds it from a cluster or from files, carries out its decisions,
//! and serves its state over HTTP.
//!
//! The engine itself (what is placed where, and why) is `fluxion-scheduler`; nothing in here makes such decisions.

pub mod access;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod deletion;
pub mod engine;
mod failpoint;
pub mod health;
pub mod history;
pub mod http;
pub mod journal;
pub mod kube;
pub mod logs;
pub mod metrics;
pub mod open_files;
mod plural;
pub mod signals;
pub mod standalone;
pub mod state_dir;
pub mod submit;
pub mod supervise;
pub mod telemetry;
pub mod tls;
pub mod trial;
pub mod view;
