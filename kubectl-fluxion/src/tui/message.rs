//! What can happen to the live screen, and what it can ask to be done.

use crossterm::event::KeyEvent;
use fluxion_api::client::Error;
use fluxion_api::graph::Finding;
use fluxion_api::{CancelAnswer, FluxionExplanation, FluxionJob, FluxionNode, FluxionQueue, ListMeta, Role};
use jiff::Timestamp;

use crate::cancel::Outcome;
use crate::failure::Failure;

/// Namespace and name.
pub type Key = (String, String);

/// The number of a question to the server: answers come in any order, and one that is late belongs to nobody.
pub type Question = u64;

/// Which of the two streams of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Jobs,
    Nodes,
}

/// One thing that happened.
#[derive(Debug)]
pub enum Message {
    Key(KeyEvent),
    /// The terminal has another size; it is drawn anew.
    Resized,
    /// Time went on.
    Tick(Timestamp),
    /// What the server is called that answers now.
    Server(String),
    /// All jobs there are, and the server's role.
    AllJobs(Vec<FluxionJob>, Role),
    Job(Box<FluxionJob>),
    JobGone(Key),
    AllNodes(Vec<FluxionNode>),
    Node(Box<FluxionNode>),
    NodeGone(Key),
    /// The server lives and has nothing new.
    Alive(Source),
    Lost(Source, Error),
    /// What the server says of itself and its data: its role, when the data was current, what else has to be known.
    Standing(ListMeta),
    /// Queues, and what the audit found where the user may see it.
    Overview(Vec<FluxionQueue>, Option<Vec<Finding>>),
    /// What a cancel would do, as the question of this number asked.
    Planned(Question, Box<FluxionJob>, Result<Box<CancelAnswer>, Outcome>),
    /// What became of a cancel; the job as users write it.
    Cancelled(String, Outcome),
    /// The answer to the question of this number.
    Explained(Question, Key, Box<FluxionExplanation>),
    /// Somebody outside wants it to end.
    Quit,
    /// It cannot go on.
    Failed(Failure),
}

/// One thing to be done outside.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// Ask what cancelling would do.
    Plan(Question, Box<FluxionJob>),
    Cancel(Box<FluxionJob>, Box<CancelAnswer>),
    Explain(Question, Key),
    /// Leave.
    Quit,
}
