//! A job: a group of Pods that is scheduled as one, and where it stands.

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
pub(crate) use binds::Binds;
pub(crate) use key::GroupKey;
pub(crate) use lost::Losses;
pub(crate) use moves::Move;
pub(crate) use stage::{HISTORY_MAX, may_follow};

/// One job.
#[derive(Clone, Debug)]
pub struct Job {
    pub id: JobId,
    pub key: JobKey,
    /// What makes its Pods one job.
    pub(crate) group: GroupKey,
    /// The object it is named after, for Events and cancel; `None` for a group made by labels.
    pub object: Option<ObjectRef>,
    pub created: i64,
    pub priority: i32,
    pub queue: SharedStr,
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
    pub pods: SmallSet<SharedStr>,
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
    pub level: Option<SharedStr>,
    /// Nodes and names of the Pods of the last attempt, once the job has ended.
    pub ran_on: Arc<BTreeMap<SharedStr, Vec<SharedStr>>>,
    /// The member that failed first, once the job has ended.
    pub exit: Option<ExitCause>,
    /// Members of the attempt whose Pods are gone.
    pub(crate) gone: Vec<Gone>,
    pub reservation: Option<Reservation>,
    /// Jobs it waits for.
    pub waits_for: Vec<JobId>,
    pub warnings: Vec<String>,
    /// What is said of labels and annotations that begin as ours do and mean nothing; part of the warnings.
    pub(crate) unknown_marks: Vec<String>,
    /// Those of them that an Event has named.
    pub(crate) told_marks: Vec<String>,
    /// When the time limit of its Kubernetes Job, which runs while it waits, will end it.
    pub killed_at: Option<i64>,
    /// Who asked for its end.
    pub cancelled_by: Option<SharedStr>,
    /// Members that it lost after its start and for which a place is kept; of those alike the oldest first.
    pub lost: Vec<LostMember>,
    /// Of the members that are missing, those whose places were kept too long and given up.
    pub given_up: u32,
    /// Counts the places that were ever kept for it.
    pub(crate) places: u32,
    pub(crate) losses: Losses,
    pub(crate) binds: Binds,
    /// The generation of the graph for which it was last found satisfiable or not.
    pub checked: Option<u64>,
    /// Oldest first; bounded.
    pub history: Arc<Vec<HistoryEntry>>,
    /// How many transitions there were.
    pub(crate) entries: u32,
    /// Of that, the last move of its planned start.
    pub(crate) moved: Option<Move>,
    /// Those that all its members share; of one that lost its last member, what it had then.
    pub labels: crate::model::Marks,
}

impl Job {
    /// The disruption that took members since it was last whole (reason of their DisruptionTarget condition).
    pub fn disruption(&self) -> Option<&SharedStr> {
        self.losses.disrupted.as_ref().map(|(_, reason)| reason)
    }

    /// A job of which nothing is known yet.
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
            checked: None,
            history: Arc::default(),
            entries: 0,
            moved: None,
            labels: crate::model::Marks::new(),
        }
    }

    /// `NAMESPACE/KIND.NAME`.
    pub(crate) fn full_name(&self) -> String {
        format!("{}/{}", self.key.namespace, self.key.object_name())
    }

    /// When it is planned to end if it starts at `start`: after its duration, or when its Kubernetes Job's own limit
    /// ends it. A limit that has run out already plans nothing: it is about to end the job.
    pub(crate) fn end_when_started_at(&self, start: i64) -> Option<i64> {
        let end = self.duration.map(|seconds| start.saturating_add(seconds)).filter(|end| *end < i64::MAX);
        [end, self.killed_at.filter(|at| *at > start)].into_iter().flatten().min()
    }
}
