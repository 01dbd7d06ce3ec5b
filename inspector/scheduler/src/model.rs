//! The engine's model of the cluster, as plain types.
//!
//! The API layer converts API objects to these types and decides nothing; conclusions from labels, annotations and
//! owners are drawn in `state`. Times are epoch seconds.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::constraint::volumes::PodVolumes;
use crate::constraint::{HostPort, Labels, NodeConstraint, Peer, PodSelector, PodTerms, Preferences};
use crate::resources::{InvalidRequest, ResourceList};

/// A short shared string: names, UIDs, label keys and values.
pub type SharedStr = Arc<str>;

/// Labels or annotations; clones share them until one is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Marks(Arc<BTreeMap<SharedStr, SharedStr>>);

impl Marks {
    /// Empty.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of references, including this one.
    pub fn users(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// The map, shared.
    pub fn shared(&self) -> &Arc<Labels> {
        &self.0
    }
}

impl Deref for Marks {
    type Target = BTreeMap<SharedStr, SharedStr>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Marks {
    fn deref_mut(&mut self) -> &mut Self::Target {
        Arc::make_mut(&mut self.0)
    }
}

impl FromIterator<(SharedStr, SharedStr)> for Marks {
    fn from_iter<I: IntoIterator<Item = (SharedStr, SharedStr)>>(items: I) -> Self {
        Self(Arc::new(items.into_iter().collect()))
    }
}

/// Identifies an object of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectRef {
    /// Empty for cluster-scoped objects.
    pub namespace: SharedStr,
    /// The value of `kind`: `Pod`, `Job`, `PodGroup`.
    pub kind: SharedStr,
    /// `v1`, `batch/v1`.
    pub api_version: SharedStr,
    pub name: SharedStr,
    pub uid: SharedStr,
}

/// The controller that owns an object, from `ownerReferences` (`controller: true`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerRef {
    pub api_version: SharedStr,
    pub kind: SharedStr,
    pub name: SharedStr,
    pub uid: SharedStr,
}

/// `status.phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
    /// The node's kubelet is not responding; the Pod still holds its resources.
    Unknown,
}

impl Phase {
    /// Whether it is terminal: a finished Pod holds nothing.
    pub fn ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// A constraint that we don't support when we bind a Pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Unsupported {
    ResourceClaim(SharedStr),
    /// Inter-Pod affinity or topology spread constraints, and why.
    PodTerms(SharedStr),
}

/// Stored in the Pod by the same write as the binding, so that it survives a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AllocationRecord {
    /// `KIND.NAME` of the job.
    pub job: SharedStr,
    /// Start of the member's gang; a member created later has joined it.
    pub start: i64,
    /// Planned end; absent without a time limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_end: Option<i64>,
    /// Number of members required when the job was placed.
    pub size: u32,
    /// Set if the Pod was pinned to its node, for kube-scheduler to bind it there, instead of being bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<Pin>,
}

/// The node to which a Pod was pinned by the write that removed its scheduling gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    pub node: SharedStr,
    /// When it was decided (epoch seconds).
    pub at: i64,
}

/// The reservation of a waiting job in a queue that keeps reservations. Stored in the status of one of its Pods, so that it
/// survives a restart. Whatever is read is checked before it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReservationRecord {
    /// When it was made (epoch seconds).
    pub at: i64,
    /// Planned start (epoch seconds).
    pub start: i64,
    /// The start depends on an assumed end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
    /// The value of the topology key that its nodes share, if the job requires one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<SharedStr>,
    /// Index of the shape in the job's request, node, and number of slots; the slots of a node are contiguous.
    pub slots: Vec<(u32, SharedStr, u32)>,
}

/// The container that made a Pod fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerExit {
    pub name: SharedStr,
    pub code: i32,
    /// E.g. `Error`, `OOMKilled`.
    pub reason: Option<SharedStr>,
}

/// How a Pod ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodEnd {
    /// When its last container stopped (epoch seconds).
    pub at: Option<i64>,
    /// The first container that failed.
    pub container: Option<ContainerExit>,
    /// `status.message`, e.g. which resource its node was lacking.
    pub message: Option<SharedStr>,
}

/// A Pod, ours or another scheduler's.
#[derive(Clone, Debug, PartialEq)]
pub struct PodSpec {
    pub uid: SharedStr,
    pub namespace: SharedStr,
    pub name: SharedStr,
    pub scheduler_name: SharedStr,
    pub created: i64,
    /// Has a deletionTimestamp.
    pub deleting: bool,
    /// The deletionTimestamp: when its grace period ends.
    pub deletes_at: Option<i64>,
    pub phase: Phase,
    /// `spec.nodeName`.
    pub node: Option<SharedStr>,
    /// `status.nominatedNodeName`.
    pub nominated: Option<SharedStr>,
    /// `spec.schedulingGates`, by name.
    pub gates: Vec<SharedStr>,
    /// Its requests, or why they can't be determined.
    pub needs: Result<Arc<ResourceList>, InvalidRequest>,
    pub constraint: Arc<NodeConstraint>,
    pub ports: Arc<[HostPort]>,
    /// Required inter-Pod affinity and anti-affinity, and topology spread constraints; none if there are none.
    pub terms: Option<Arc<PodTerms>>,
    /// Preferred affinities and soft topology spread constraints; none if there are none.
    pub preferences: Option<Arc<Preferences>>,
    /// Its volumes, as far as they matter for where it runs; none if there are none, or if they are not checked.
    pub volumes: Option<Arc<PodVolumes>>,
    pub unsupported: Vec<Unsupported>,
    pub priority: i32,
    pub labels: Marks,
    /// Only those used by the engine (group, size, duration, queue, run-time, mirror).
    pub annotations: Marks,
    /// `spec.schedulingGroup.podGroupName`.
    pub scheduling_group: Option<SharedStr>,
    pub controller: Option<ControllerRef>,
    /// `spec.activeDeadlineSeconds`.
    pub active_deadline: Option<i64>,
    /// When PodScheduled became True.
    pub scheduled_at: Option<i64>,
    pub record: Option<AllocationRecord>,
    /// Current (reason, message) of PodScheduled=False in the API server.
    pub unscheduled: Option<(SharedStr, SharedStr)>,
    /// The reservation of its job, as stored in its status.
    pub reserved: Option<Arc<ReservationRecord>>,
    /// Reason of a DisruptionTarget condition, e.g. `PreemptionByScheduler`, `DeletionByTaintManager`.
    pub disruption: Option<SharedStr>,
    /// `status.reason`, e.g. `OutOfcpu`, `Evicted`, `DeadlineExceeded`.
    pub status_reason: Option<SharedStr>,
    /// Parts that could not be interpreted, and how they are treated.
    pub problems: Vec<SharedStr>,
    /// How it ended, if it has finished.
    pub end: Option<Arc<PodEnd>>,
}

/// `status.reason` of Pods that a kubelet does not admit after they were bound, besides `OutOf…` for a resource.
const REJECTIONS: [&str; 11] = [
    "AppArmor",
    "NodeAffinity",
    "NodeName",
    "NodePorts",
    "PodOSNotSupported",
    "PodOSSelectorNodeLabelDoesNotMatch",
    "SMTAlignmentError",
    "SysctlForbidden",
    "TaintToleration",
    "TopologyAffinityError",
    "UnexpectedAdmissionError",
];

/// Whether a Pod with this `status.reason` was rejected by its kubelet, and has never run.
pub(crate) fn is_rejection(status_reason: &str) -> bool {
    status_reason.starts_with("OutOf") || REJECTIONS.contains(&status_reason)
}

impl PodSpec {
    /// Why its kubelet rejected it after it had been bound; none if it didn't.
    pub(crate) fn rejection(&self) -> Option<&SharedStr> {
        let failed = self.phase == Phase::Failed;
        self.status_reason.as_ref().filter(|reason| failed && is_rejection(reason))
    }

    /// A pending Pod of kube-scheduler's, created at 0 (epoch seconds), that requests and requires nothing.
    pub fn new(namespace: &str, name: &str, uid: impl Into<SharedStr>) -> Self {
        Self {
            uid: uid.into(),
            namespace: namespace.into(),
            name: name.into(),
            scheduler_name: "default-scheduler".into(),
            created: 0,
            deleting: false,
            deletes_at: None,
            phase: Phase::Pending,
            node: None,
            nominated: None,
            gates: Vec::new(),
            needs: Ok(Arc::default()),
            constraint: Arc::default(),
            ports: Arc::default(),
            terms: None,
            preferences: None,
            volumes: None,
            unsupported: Vec::new(),
            priority: 0,
            labels: Marks::new(),
            annotations: Marks::new(),
            scheduling_group: None,
            controller: None,
            active_deadline: None,
            scheduled_at: None,
            record: None,
            unscheduled: None,
            reserved: None,
            disruption: None,
            status_reason: None,
            problems: Vec::new(),
            end: None,
        }
    }

    /// The Pod as others see it, with all its labels.
    pub fn peer(&self) -> Peer {
        Peer {
            namespace: self.namespace.clone(),
            labels: self.labels.shared().clone(),
            terms: self.terms.clone(),
            deleting: self.deleting,
            mounts: self.volumes.clone(),
            preferences: self.preferences.clone(),
            volumes: None,
        }
    }

    /// Every selector of Pods in its constraints and preferences.
    pub(crate) fn selectors(&self) -> impl Iterator<Item = &PodSelector> {
        let required = self.terms.iter().flat_map(|terms| terms.selectors());
        required.chain(self.preferences.iter().flat_map(|preferences| preferences.selectors()))
    }
}

/// The API of a PodGroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum GroupApi {
    /// scheduling.k8s.io.
    Native,
    /// scheduling.x-k8s.io (scheduler-plugins' CRD).
    SchedulerPlugins,
}

/// A PodGroup object.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSpec {
    pub api: GroupApi,
    pub uid: SharedStr,
    pub namespace: SharedStr,
    pub name: SharedStr,
    pub api_version: SharedStr,
    pub created: i64,
    pub deleting: bool,
    /// `gang.minCount`, or `spec.minMember`; `None` with policy `basic`.
    pub min_count: Option<i64>,
    /// Key of `schedulingConstraints.topology`.
    pub topology: Option<SharedStr>,
    pub priority: Option<i32>,
    pub labels: Marks,
    pub annotations: Marks,
    pub controller: Option<ControllerRef>,
    /// According to its condition, the gang was scheduled before.
    pub scheduled: bool,
    /// `spec.scheduleTimeoutSeconds` of scheduling.x-k8s.io: maximum time that a gang may be partially bound.
    pub schedule_timeout: Option<i64>,
}

/// Details of an owner by kind.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnerDetail {
    Job {
        /// Default 1.
        parallelism: i64,
        /// `None`: it completes with any success (work queue).
        completions: Option<i64>,
        succeeded: i64,
        /// Number of permanently failed indexes (`status.failedIndexes`).
        failed_indexes: i64,
        active_deadline: Option<i64>,
        /// `status.startTime`.
        start_time: Option<i64>,
        /// Condition Complete.
        complete: bool,
        /// Condition Failed, with its reason.
        failed: Option<SharedStr>,
        /// When it completed or failed.
        ended_at: Option<i64>,
        suspended: bool,
        /// `spec.scheduling.schedulingPolicy.gang`: minCount (`None` inside: parallelism).
        gang: Option<Option<i64>>,
        /// Its Pods, as they will be created; only read while it is suspended.
        template: Option<Arc<PodSpec>>,
    },
    StatefulSet {
        replicas: i64,
        /// `podManagementPolicy: OrderedReady`.
        ordered: bool,
    },
    /// ReplicaSet and Deployment.
    Replicas {
        replicas: i64,
    },
    /// A kind that makes several sets of Pods: `JobSet`, `MPIJob`, `RayCluster`.
    Sets {
        /// Those that exist at the same time when it starts.
        sets: Arc<[PodSet]>,
        suspended: bool,
        complete: bool,
        /// It failed, with the reason.
        failed: Option<SharedStr>,
    },
    /// A kind whose Pods are those of the owner that it controls, which exists while it is suspended too: `TrainJob`,
    /// with its `JobSet`.
    Delegating {
        suspended: bool,
        complete: bool,
        /// It failed, with the reason.
        failed: Option<SharedStr>,
    },
    Other,
}

/// Equal Pods of a controller.
#[derive(Clone, Debug, PartialEq)]
pub struct PodSet {
    pub count: i64,
    /// As they will be created; only read while their controller is suspended.
    pub template: Option<Arc<PodSpec>>,
}

impl OwnerDetail {
    /// Whether it is suspended.
    pub fn suspended(&self) -> bool {
        match self {
            Self::Job { suspended, .. }
            | Self::Sets { suspended, .. }
            | Self::Delegating { suspended, .. } => *suspended,
            Self::StatefulSet { .. } | Self::Replicas { .. } | Self::Other => false,
        }
    }

    /// Whether it has ended; if it failed, with the reason.
    pub fn ended(&self) -> Option<Result<(), &SharedStr>> {
        match self {
            Self::Job { complete, failed, .. }
            | Self::Sets { complete, failed, .. }
            | Self::Delegating { complete, failed, .. } => {
                if *complete {
                    Some(Ok(()))
                } else {
                    failed.as_ref().map(Err)
                }
            }
            Self::StatefulSet { .. } | Self::Replicas { .. } | Self::Other => None,
        }
    }
}

/// A controller of Pods, or of such a controller.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnerSpec {
    pub uid: SharedStr,
    pub namespace: SharedStr,
    pub api_version: SharedStr,
    pub kind: SharedStr,
    pub name: SharedStr,
    pub created: i64,
    pub deleting: bool,
    pub labels: Marks,
    pub annotations: Marks,
    pub controller: Option<ControllerRef>,
    /// `schedulerName` of its Pods; none if it has no Pod template of its own.
    pub scheduler: Option<SharedStr>,
    /// Why its Pods can't be created, according to its conditions.
    pub failure: Option<SharedStr>,
    pub detail: OwnerDetail,
}
