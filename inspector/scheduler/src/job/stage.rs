//! Where a job stands, why, and which state may follow which.

use std::sync::Arc;

use fluxion_api::reason::{self, Fact};
use serde::{Deserialize, Serialize};

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum JobState {
    /// Fewer members are there than are wanted.
    Gathering,
    Pending,
    /// Pending, with a planned start and nodes.
    Reserved,
    /// Can never run on this graph; looked at again when the graph changes.
    Unsatisfiable,
    Binding,
    Running,
    /// Its owner is suspended: it holds nothing, and starts anew when it is resumed.
    Suspended,
    /// All its Pods are terminating and still hold what they hold.
    Releasing,
    Completed,
    Failed,
    Cancelled,
}

impl JobState {
    /// The word users read.
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

    /// Nothing will change any more.
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
    /// Ended: its user deleted it.
    Cancelled,
}

impl ReasonClass {
    /// The word programs match on.
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

/// Why a job is where it is, as data; it names nothing of other namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredReason")]
pub struct Reason {
    pub class: ReasonClass,
    /// What there is to say; jobs of one request share it.
    pub facts: Arc<[Fact]>,
}

impl Reason {
    /// A reason of one fact.
    pub fn new(class: ReasonClass, fact: Fact) -> Self {
        Self { class, facts: Arc::new([fact]) }
    }

    /// A reason that a text says.
    pub fn message(class: ReasonClass, text: impl Into<String>) -> Self {
        Self::new(class, Fact::Message { text: text.into() })
    }

    /// One line for a person.
    pub fn text(&self) -> String {
        reason::line(&self.facts)
    }
}

/// A reason as it may stand in a journal.
#[derive(Deserialize)]
struct StoredReason {
    class: ReasonClass,
    #[serde(default)]
    facts: Vec<Fact>,
    /// Said in place of facts by versions that had none.
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

/// Entries of a job's history that are kept: the first ones and the latest.
pub(crate) const HISTORY_MAX: usize = 64;

/// Which state may follow which. A restart finds jobs in the middle of their lives, so a new job may enter
/// any state; an ended one never leaves.
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
