//! A job: a group of Pods that is scheduled as one, and where it stands.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::{ObjectRef, Text};
use crate::request::Request;
use crate::resources::ResourceList;
use crate::state::attempt::{Asked, Gone};
use crate::state::ending::ExitCause;
use crate::state::few::Few;
use crate::state::owed::{Losses, LostMember};
use crate::state::partial::Binds;

/// Number of a job within one engine's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u32);

/// Identity of a job: never a bare name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobKey {
    pub namespace: Text,
    /// Lower case, with the API group behind it for kinds outside core, batch and apps and the PodGroups:
    /// `job`, `podgroup`, `pod`, `group`, `jobset.jobset.x-k8s.io`.
    pub kind: Text,
    pub name: Text,
    /// Of the object the job is named after; of a label group: its first member's.
    pub uid: Text,
}

impl JobKey {
    /// `KIND.NAME`: the name of the `FluxionJob`.
    pub fn object_name(&self) -> String {
        format!("{}.{}", self.kind, self.name)
    }

    /// `KIND/NAME`: how people write it.
    pub fn display(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }
}

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
pub struct Reason {
    pub class: ReasonClass,
    /// One line for a person.
    pub text: String,
    /// The same in parts.
    pub details: Vec<String>,
}

/// Members by how far they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    /// How many are wanted at once; `None` when the size is unknown or invalid.
    pub wanted: Option<u32>,
    /// There, not gated, not ended.
    pub seen: u32,
    pub gated: u32,
    /// Of an ended job: those that were bound in its last attempt.
    pub bound: u32,
    pub running: u32,
    /// In all attempts.
    pub ended: u32,
}

/// A planned start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    pub start: i64,
    pub end: Option<i64>,
    /// The start rests on the assumed end of a job without a time limit.
    pub start_assumed: bool,
    /// The end is assumed, or follows from such a start.
    pub end_assumed: bool,
    /// In natural order.
    pub nodes: Vec<Text>,
}

/// A transition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    pub time: i64,
    pub state: JobState,
    pub class: Option<ReasonClass>,
    pub reason: String,
}

/// One job.
#[derive(Clone, Debug)]
pub struct Job {
    pub id: JobId,
    pub key: JobKey,
    /// What makes its Pods one job.
    pub(super) group: crate::state::grouping::GroupKey,
    /// The object it is named after, for Events and cancel; `None` for a group made by labels.
    pub object: Option<ObjectRef>,
    pub created: i64,
    pub priority: i32,
    pub queue: Text,
    /// Seconds that it is planned to run; nothing ends it then unless `limit` does. `None`: nobody knows.
    pub duration: Option<i64>,
    /// Seconds after which Kubernetes ends it: activeDeadlineSeconds of its Pods, or of its Job, whose own counts from
    /// the Job's start.
    pub limit: Option<i64>,
    pub state: JobState,
    pub state_since: i64,
    /// Fewer members are assigned than it is owed.
    pub degraded: bool,
    pub members: Members,
    /// Uids of the Pods, ended ones included while their objects are there.
    pub pods: Few<Text>,
    /// What those members ask for that have not ended.
    pub holds: Arc<ResourceList>,
    /// What is asked of the matcher; `None` while the size or a member's need is unknown.
    pub request: Option<Arc<Request>>,
    pub reason: Option<Reason>,
    /// When the attempt that runs, or ran last, began.
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
    /// When the last member that runs is planned to end.
    pub planned_end: Option<i64>,
    /// What its members ask for; of an ended job, what those of its last attempt did.
    pub asked: Arc<[Asked]>,
    /// The topology key whose one domain all members must share.
    pub level: Option<Text>,
    /// Nodes and names of the Pods of the last attempt, once the job has ended.
    pub ran_on: Arc<BTreeMap<Text, Vec<Text>>>,
    /// The member that failed first, once the job has ended.
    pub exit: Option<ExitCause>,
    /// Members of the attempt whose Pods are gone.
    pub(super) gone: Vec<Gone>,
    pub reservation: Option<Reservation>,
    /// Jobs it waits for.
    pub waits_for: Vec<JobId>,
    pub warnings: Vec<String>,
    /// What is said of labels and annotations that begin as ours do and mean nothing; part of the warnings.
    pub(super) unknown_marks: Vec<String>,
    /// Those of them that an Event has named.
    pub(super) told_marks: Vec<String>,
    /// When the time limit of its Kubernetes Job, which runs while it waits, will end it.
    pub killed_at: Option<i64>,
    /// Who asked for its end.
    pub cancelled_by: Option<Text>,
    /// Members that it lost after its start and for which a place is kept; of those alike the oldest first.
    pub lost: Vec<LostMember>,
    /// Of the members that are missing, those whose places were kept too long and given up.
    pub given_up: u32,
    /// Counts the places that were ever kept for it.
    pub(super) places: u32,
    pub(super) losses: Losses,
    pub(super) binds: Binds,
    /// The generation of the graph for which it was last found satisfiable or not.
    pub checked: Option<u64>,
    /// Oldest first; bounded.
    pub history: Arc<Vec<HistoryEntry>>,
    /// How many transitions there were.
    pub(super) entries: u32,
    /// Of that, the last move of its planned start.
    pub(super) moved: Option<super::moved::Move>,
    /// Those that all its members share; of one that lost its last member, what it had then.
    pub labels: crate::model::Marks,
}

impl Job {
    /// The disruption that took members since it was last whole (reason of their DisruptionTarget condition).
    pub fn disruption(&self) -> Option<&Text> {
        self.losses.disrupted.as_ref().map(|(_, reason)| reason)
    }

    /// A job of which nothing is known yet.
    pub(super) fn new(id: JobId, group: crate::state::grouping::GroupKey, key: JobKey) -> Self {
        Self {
            id,
            key,
            group,
            object: None,
            created: 0,
            priority: 0,
            queue: "default".into(),
            duration: None,
            limit: None,
            state: JobState::Gathering,
            state_since: 0,
            degraded: false,
            members: Members::default(),
            pods: Few::default(),
            holds: Arc::new(ResourceList::default()),
            request: None,
            reason: None,
            started_at: None,
            ended_at: None,
            planned_end: None,
            asked: Arc::default(),
            level: None,
            ran_on: Arc::default(),
            exit: None,
            gone: Vec::new(),
            reservation: None,
            waits_for: Vec::new(),
            warnings: Vec::new(),
            unknown_marks: Vec::new(),
            told_marks: Vec::new(),
            killed_at: None,
            cancelled_by: None,
            lost: Vec::new(),
            given_up: 0,
            places: 0,
            losses: Losses::default(),
            binds: Binds::default(),
            checked: None,
            history: Arc::default(),
            entries: 0,
            moved: None,
            labels: crate::model::Marks::new(),
        }
    }

    /// `NAMESPACE/KIND.NAME`.
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.key.namespace, self.key.object_name())
    }

    /// When it is planned to end if it starts at `start`: after its duration, or when its Kubernetes Job's own limit
    /// ends it. A limit that has run out already plans nothing: it is about to end the job.
    pub(super) fn end_when_started_at(&self, start: i64) -> Option<i64> {
        let end = self.duration.map(|seconds| start.saturating_add(seconds)).filter(|end| *end < i64::MAX);
        [end, self.killed_at.filter(|at| *at > start)].into_iter().flatten().min()
    }
}
