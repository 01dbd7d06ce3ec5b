//! State and reason of a job, and valid state transitions.

use std::sync::Arc;

use fluxion_api::reason::{self, Fact};
use serde::{Deserialize, Serialize};

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum JobState {
    /// Fewer members exist than are required.
    Gathering,
    Pending,
    /// Pending, with a planned start and nodes.
    Reserved,
    /// Can never run on this graph; evaluated again when the graph changes.
    Unsatisfiable,
    Binding,
    Running,
    /// Its owner is suspended: it holds nothing, and is scheduled again when resumed.
    Suspended,
    /// All its Pods are terminating and still hold their resources.
    Releasing,
    Completed,
    Failed,
    Cancelled,
}

impl JobState {
    /// The name shown to users.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gathering => "Gathering",
            Self::Pending => "Pending",
            Self::Reserved => "Reserved",
            Self::Unsatisfiable => "Unsatisfiable",
            Self::Binding => "Binding",
            Self::Running => "Running",
            Self::Suspended => "Suspended",
            Self::Releasing => "Releasing",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
        }
    }

    /// Whether the state is final.
    pub fn ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Not started yet.
    pub fn waiting(self) -> bool {
        matches!(
            self,
            Self::Gathering | Self::Pending | Self::Reserved | Self::Unsatisfiable | Self::Suspended
        )
    }
}

/// The published classes of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ReasonClass {
    Gathering,
    GroupNotFound,
    SizesDisagree,
    InvalidRequest,
    QueueOrder,
    Reserved,
    Busy,
    ConstraintNotMet,
    NodesDown,
    Unsatisfiable,
    UnsupportedConstraint,
    Gated,
    Held,
    BindFailed,
    DeadlineBeforeStart,
    /// Ended: a time limit ended it.
    DeadlineExceeded,
    /// Ended: a container failed.
    PodFailed,
    /// Ended: evicted or preempted.
    Disrupted,
    /// Ended: deleted by its user.
    Cancelled,
}

impl ReasonClass {
    /// The stable name, for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gathering => "Gathering",
            Self::GroupNotFound => "GroupNotFound",
            Self::SizesDisagree => "SizesDisagree",
            Self::InvalidRequest => "InvalidRequest",
            Self::QueueOrder => "QueueOrder",
            Self::Reserved => "Reserved",
            Self::Busy => "Busy",
            Self::ConstraintNotMet => "ConstraintNotMet",
            Self::NodesDown => "NodesDown",
            Self::Unsatisfiable => "Unsatisfiable",
            Self::UnsupportedConstraint => "UnsupportedConstraint",
            Self::Gated => "Gated",
            Self::Held => "Held",
            Self::BindFailed => "BindFailed",
            Self::DeadlineBeforeStart => "DeadlineBeforeStart",
            Self::DeadlineExceeded => "DeadlineExceeded",
            Self::PodFailed => "PodFailed",
            Self::Disrupted => "Disrupted",
            Self::Cancelled => "Cancelled",
        }
    }
}

/// Why a job is in its state, as data; contains nothing from other namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredReason")]
pub struct Reason {
    pub class: ReasonClass,
    /// The facts; shared by jobs with the same request.
    pub facts: Arc<[Fact]>,
}

impl Reason {
    /// A reason with one fact.
    pub fn new(class: ReasonClass, fact: Fact) -> Self {
        Self { class, facts: Arc::new([fact]) }
    }

    /// A reason with a message.
    pub fn message(class: ReasonClass, text: impl Into<String>) -> Self {
        Self::new(class, Fact::Message { text: text.into() })
    }

    /// One line of text for users.
    pub fn text(&self) -> String {
        reason::line(&self.facts)
    }
}

/// A reason as stored in a journal.
#[derive(Deserialize)]
struct StoredReason {
    class: ReasonClass,
    #[serde(default)]
    facts: Vec<Fact>,
    /// Instead of facts, in journals of older versions.
    #[serde(default)]
    text: Option<String>,
}

impl From<StoredReason> for Reason {
    fn from(stored: StoredReason) -> Self {
        let StoredReason { class, mut facts, text } = stored;
        facts.extend(text.map(|text| Fact::Message { text }));
        Self { class, facts: facts.into() }
    }
}

/// A transition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    pub time: i64,
    pub state: JobState,
    pub class: Option<ReasonClass>,
    pub reason: String,
}

/// Maximum number of history entries kept per job: the first ones and the latest.
pub(crate) const HISTORY_MAX: usize = 64;

/// Valid state transitions. After a restart, jobs may be in any state, so a new job may enter any state; the state of
/// a finished job never changes.
pub(crate) fn may_follow(from: JobState, to: JobState) -> bool {
    use JobState::{
        Binding, Cancelled, Completed, Failed, Gathering, Pending, Releasing, Reserved, Running, Suspended,
        Unsatisfiable,
    };
    match from {
        Gathering | Pending | Reserved | Unsatisfiable | Suspended => true,
        Binding => !matches!(to, Reserved | Unsatisfiable),
        Running => !matches!(to, Reserved | Unsatisfiable),
        Releasing => !matches!(to, Reserved | Unsatisfiable),
        Completed | Failed | Cancelled => false,
    }
}
