//! A job: a group of Pods that is scheduled as one, and its state.

mod asked;
mod binds;
mod exit;
mod key;
mod lost;
mod members;
mod moves;
mod stage;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{ObjectRef, SharedStr};
use crate::request::Request;
use crate::resources::ResourceList;
use crate::small_set::SmallSet;

pub use asked::Asked;
pub use exit::ExitCause;
pub use key::{JobId, JobKey};
pub use lost::LostMember;
pub use members::{Members, Reservation};
pub use stage::{HistoryEntry, JobState, Reason, ReasonClass};

pub(crate) use asked::Gone;
pub(crate) use binds::{Binds, Places};
pub(crate) use key::GroupKey;
pub(crate) use lost::Losses;
pub(crate) use moves::Move;
pub(crate) use stage::{HISTORY_MAX, may_follow};

/// One job.
#[derive(Clone, Debug)]
pub struct Job {
    pub id: JobId,
    pub key: JobKey,
    /// The group that its Pods belong to.
    pub(crate) group: GroupKey,
    /// The object that gives it its name, for Events and cancellation; `None` for a group defined by labels.
    pub object: Option<ObjectRef>,
    pub created: i64,
    pub priority: i32,
    pub queue: SharedStr,
    /// Planned duration in seconds; it is only enforced by `limit`. `None`: unknown.
    pub duration: Option<i64>,
    /// Seconds after which Kubernetes terminates it: activeDeadlineSeconds of its Pods, or of its Job, which is
    /// measured from the Job's start.
    pub limit: Option<i64>,
    pub state: JobState,
    pub state_since: i64,
    /// Fewer members are assigned than it should have.
    pub degraded: bool,
    pub members: Members,
    /// UIDs of its Pods, including finished ones while their objects exist.
    pub pods: SmallSet<SharedStr>,
    /// Requests of the members that have not finished.
    pub holds: Arc<ResourceList>,
    /// The request to the matcher; `None` while the size or a member's requests are unknown.
    pub request: Option<Arc<Request>>,
    pub reason: Option<Reason>,
    /// Start of the current or last attempt.
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
    /// Planned end of the last running member.
    pub planned_end: Option<i64>,
    /// Requests of its members; for a finished job, of its last attempt.
    pub asked: Arc<[Asked]>,
    /// The topology key of which all members must share a value.
    pub level: Option<SharedStr>,
    /// Nodes and names of the Pods of the last attempt, once the job has finished.
    pub ran_on: Arc<BTreeMap<SharedStr, Vec<SharedStr>>>,
    /// The member that failed first, once the job has finished.
    pub exit: Option<ExitCause>,
    /// Members of the attempt whose Pods were deleted.
    pub(crate) gone: Vec<Gone>,
    pub reservation: Option<Reservation>,
    /// Jobs that it is waiting for.
    pub waits_for: Vec<JobId>,
    pub warnings: Vec<String>,
    /// Warnings about labels and annotations with one of our prefixes that are unknown; part of the warnings.
    pub(crate) unknown_marks: Vec<String>,
    /// Those of them that were reported in an Event.
    pub(crate) told_marks: Vec<String>,
    /// When the time limit of its Kubernetes Job, which also runs while it is waiting, will end it.
    pub killed_at: Option<i64>,
    /// Who cancelled it.
    pub cancelled_by: Option<SharedStr>,
    /// Members lost after its start, for which resources are reserved; among equal ones, oldest first.
    pub lost: Vec<LostMember>,
    /// Number of missing members for which resources are no longer reserved, because that took too long.
    pub given_up: u32,
    /// Counts all resources ever reserved for its lost members.
    pub(crate) places: u32,
    pub(crate) losses: Losses,
    pub(crate) binds: Binds,
    pub(crate) awaited: Option<Places>,
    /// It only stands for its owner, whose Pods can't come to be.
    pub(crate) uncreated: bool,
    /// The generation of the graph for which its satisfiability was last determined.
    pub checked: Option<u64>,
    /// Oldest first; bounded.
    pub history: Arc<Vec<HistoryEntry>>,
    /// Total number of transitions.
    pub(crate) entries: u32,
    /// The last change of its planned start in the history.
    pub(crate) moved: Option<Move>,
    /// Labels shared by all its members; if it has lost its last member, the previous ones.
    pub labels: crate::model::Marks,
}

impl Job {
    /// The disruption that removed members since it was last complete (reason of their `DisruptionTarget` condition).
    pub fn disruption(&self) -> Option<&SharedStr> {
        self.losses.disrupted.as_ref().map(|(_, reason)| reason)
    }

    /// A new job without any data.
    pub(crate) fn new(id: JobId, group: GroupKey, key: JobKey) -> Self {
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
            pods: SmallSet::default(),
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
            awaited: None,
            uncreated: false,
            checked: None,
            history: Arc::default(),
            entries: 0,
            moved: None,
            labels: crate::model::Marks::new(),
        }
    }

    /// `NAMESPACE/KIND.NAME`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.key.namespace, self.key.object_name())
    }

    /// Planned end if it starts at `start`: after its duration, or when its Kubernetes Job's limit expires. A limit
    /// that has already expired is ignored: it is about to end the job.
    pub(crate) fn end_when_started_at(&self, start: i64) -> Option<i64> {
        let end = self.duration.map(|seconds| start.saturating_add(seconds)).filter(|end| *end < i64::MAX);
        [end, self.killed_at.filter(|at| *at > start)].into_iter().flatten().min()
    }
}
