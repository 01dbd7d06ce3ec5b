//! The facts of a reason in structured form.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::exit::ExitCause;
use super::left_out::{NodesLeftOut, is_zero};
use super::names::JobNames;
use crate::meta::Quantities;

/// One fact of a reason. On the wire, `type` is the name of the variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Fact {
    /// A complete message, for example about an invalid annotation.
    Message { text: String },
    /// Fewer members have been created than the job needs.
    WaitingForMembers {
        /// Members that have been created and are not blocked by a scheduling gate.
        created: u32,
        wanted: u32,
        /// Members that are blocked by a scheduling gate.
        #[serde(default, skip_serializing_if = "is_zero")]
        gated: u32,
        /// Names of the scheduling gates.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gates: Vec<String>,
        /// Whether these members join a job that is already running.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        joining: bool,
    },
    /// All Pods have finished, but the controller has not yet updated the job.
    MembersFinished { finished: u32 },
    /// Members of a running job are waiting for a node.
    MembersWaiting { count: u32 },
    /// Members of a running job are missing.
    MembersMissing {
        missing: u32,
        wanted: u32,
        /// How the missing members are handled.
        because: MissingMembers,
        /// Nodes on which resources are reserved for replacements.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        nodes: Vec<String>,
    },
    /// Nodes with members were deleted.
    MembersOnDeletedNodes { members: u32, wanted: u32, nodes: Vec<String> },
    /// All nodes of the job were deleted, but its Pods still exist.
    NodesDeleted,
    /// The PodGroup of a running job was deleted.
    PodGroupDeleted { name: String },
    /// The job is suspended.
    Suspended,
    /// The job's Pods are terminating.
    Terminating { pods: u32 },

    /// The job is waiting for the next scheduling pass.
    InQueue,
    /// The queue starts jobs in order, and earlier jobs are waiting.
    BehindEarlierJobs,
    /// The job is beyond the queue depth.
    BeyondQueueDepth,
    /// Starting the job would delay the planned start of other jobs.
    WouldDelay { jobs: JobNames },
    /// The requested resources are in use; no further details.
    ResourcesInUse,
    /// The cluster has no nodes.
    NoNodes,
    /// How many nodes can run members of one shape, and why others cannot.
    Nodes(Box<ShapeNodes>),
    /// Number of shapes omitted from the facts.
    MoreShapes { count: u32 },
    /// The members must start together, but there is not enough room for all of them.
    Together(Box<Together>),
    /// The job could start if no resources were reserved.
    RoomReserved { jobs: JobNames },
    /// No start can be planned.
    NoEstimate {
        because: NoEstimate,
        /// Jobs without a time limit, as far as the reader is allowed to see them.
        #[serde(default)]
        jobs: JobNames,
    },
    /// The job has a planned start.
    PlannedStart,
    /// The planned start depends on the assumed end of these jobs.
    StartAssumed {
        jobs: JobNames,
        /// They have a time limit, but wait for jobs without one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        limited: bool,
    },
    /// The Job's activeDeadlineSeconds expires before the planned start.
    LimitBeforeStart,

    /// The API server rejected a binding.
    BindFailed { pod: String, node: String, answer: String },
    /// The members are placed, and wait for volumes.
    WaitingForVolumes {
        /// Number of `PersistentVolumeClaims` that are bound.
        ready: u32,
        wanted: u32,
        /// The first claim that is not bound.
        claim: String,
        /// The provisioner's latest message about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// No volume could be provided for a claim on this node.
    VolumeFailed { claim: String, node: String, answer: String },
    /// The gang was released for that reason and is retried later.
    RetriedLater,
    /// The kubelet rejected a Pod of the job.
    Rejected { pod: String, reason: String },

    /// The job was cancelled, or its Pods were deleted.
    Cancelled {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// Members were evicted, preempted or lost: `reason` is that of the `DisruptionTarget` condition.
    Disrupted { reason: String },
    /// Members failed and are not recreated.
    PodsFailed {
        failed: u32,
        /// The Pod that failed first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<ExitCause>,
        /// activeDeadlineSeconds of that Pod.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit_seconds: Option<i64>,
    },
    /// The controller marked the job as failed.
    JobFailed {
        reason: String,
        /// The Job's activeDeadlineSeconds, if it was exceeded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit_seconds: Option<i64>,
    },

    /// A fact that only a newer server knows, unchanged.
    #[serde(untagged)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown(Value),
}

/// How many nodes can run members with the same requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ShapeNodes {
    /// Number of members of this shape to start.
    pub members: u32,
    /// Requests of each member.
    pub requests: Quantities,
    /// Number of members that fit, at most `members`.
    pub room: u32,
    /// Number of nodes that can run at least one member.
    pub available: u32,
    /// Number of nodes in the cluster.
    pub total: u32,
    /// The other nodes by reason, most frequent first.
    pub left_out: Vec<NodesLeftOut>,
    /// The node closest to fitting a member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<NearestNode>,
}

/// The node closest to fitting a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct NearestNode {
    pub name: String,
    pub lacks: Vec<Lack>,
    /// Host port in use on the node, e.g. `8080/TCP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
}

/// A resource of which a node has less available than a member requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Lack {
    pub resource: String,
    /// As a Kubernetes quantity.
    pub requested: String,
    pub available: String,
}

/// Why a gang as a whole does not fit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Together {
    /// Number of members that must start together.
    pub wanted: u32,
    /// Total number of members.
    pub of: u32,
    /// Number of members that fit together.
    pub room: u32,
    /// Whether this also holds when all nodes are empty.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub when_empty: bool,
    /// Topology key; all members must be in a single domain of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    /// The requested domain, or the one with the most room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The insufficient resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The host port that limits each node to one member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Inter-Pod affinity or topology spread constraints limit the room.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pod_constraints: bool,
    /// The search for a placement under these constraints ended before every placement was tried.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub search_ended: bool,
}

/// Why no start can be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum NoEstimate {
    /// Nodes are unavailable for an unknown time.
    NodesDown,
    /// The required resources are used by jobs without a time limit.
    NoTimeLimit,
    /// The planned ends of running jobs do not free enough resources.
    NothingFreed,
    /// It depends on where other Pods run: inter-Pod affinity or topology spread constraints.
    PodConstraints,
}

/// How missing members are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum MissingMembers {
    /// Resources are reserved for replacements.
    Reserved,
    /// No node has room for a replacement.
    NoRoom,
    /// Terminating Pods are expected to be replaced.
    Terminating,
    /// No replacement was created in time.
    GivenUp,
    /// No resources are reserved for replacements.
    NotReserved,
    /// Pods without a controller are not recreated.
    NotRecreated,
}
