//! API shared by the inspector and `kubectl fluxion`: the types of `fluxion.flux-framework.org/v1alpha1`,
//! errors, exit codes and the client.
//!
//! This crate contains no scheduling logic.

pub mod cancel;
#[cfg(feature = "client")]
pub mod client;
pub mod exit;
pub mod explain;
pub mod graph;
#[cfg(feature = "client")]
pub mod instant;
pub mod job;
pub mod meta;
pub mod names;
pub mod node;
pub mod queue;
pub mod reason;
#[cfg(feature = "schema")]
pub mod schema;
#[cfg(feature = "client")]
pub mod server_file;
pub mod status;
pub mod words;

pub use cancel::{CancelAnswer, CancelOutcome, CancelTarget};
#[cfg(feature = "client")]
pub use client::Client;
pub use exit::Exit;
pub use explain::{FluxionExplanation, Preference};
pub use graph::{FluxionAudit, FluxionGraph, FluxionTimeline};
pub use job::FluxionJob;
pub use meta::{List, ListMeta, ObjectMeta, Quantities, WatchEvent};
pub use names::{API_VERSION, GROUP, JobRef, VERSION};
pub use node::FluxionNode;
pub use queue::FluxionQueue;
pub use reason::Reason;
pub use status::Status;
pub use words::{JobState, NodeReasonClass, ReasonClass, Role};
