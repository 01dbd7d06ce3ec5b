//! Messages and effects of the interactive view.

use crossterm::event::KeyEvent;
use fluxion_api::client::Error;
use fluxion_api::graph::Finding;
use fluxion_api::{CancelAnswer, FluxionExplanation, FluxionJob, FluxionNode, FluxionQueue, ListMeta, Role};
use jiff::Timestamp;

use crate::cancel::Outcome;
use crate::failure::Failure;

/// Namespace and name.
pub type Key = (String, String);

/// Sequence number of a request to the server; outdated responses are ignored.
pub type Question = u64;

/// One of the two object streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Jobs,
    Nodes,
}

/// An event that changes the view.
#[derive(Debug)]
pub enum Message {
    Key(KeyEvent),
    /// The terminal was resized and must be redrawn.
    Resized,
    /// The current time.
    Tick(Timestamp),
    /// Name of the current server.
    Server(String),
    /// All jobs, and the role of the server.
    AllJobs(Vec<FluxionJob>, Role),
    Job(Box<FluxionJob>),
    JobGone(Key),
    AllNodes(Vec<FluxionNode>),
    Node(Box<FluxionNode>),
    NodeGone(Key),
    /// The server responded without changes.
    Alive(Source),
    Lost(Source, Error),
    /// Role of the server, age of its data, and warnings.
    Standing(ListMeta),
    /// Queues, and audit findings if the user is allowed to see them.
    Overview(Vec<FluxionQueue>, Option<Vec<Finding>>),
    /// Preview of a cancel, for the request with this number.
    Planned(Question, Box<FluxionJob>, Result<Box<CancelAnswer>, Outcome>),
    /// Job reference and outcome of a cancel.
    Cancelled(String, Outcome),
    /// Explanation, for the request with this number.
    Explained(Question, Key, Box<FluxionExplanation>),
    /// Terminate, e.g. because of a signal.
    Quit,
    /// Terminate because of an error.
    Failed(Failure),
}

/// An action to carry out.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// Request a preview of a cancel.
    Plan(Question, Box<FluxionJob>),
    Cancel(Box<FluxionJob>, Box<CancelAnswer>),
    Explain(Question, Key),
    /// Quit the view.
    Quit,
}
