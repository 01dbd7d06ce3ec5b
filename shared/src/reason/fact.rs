//! What a reason says, as fields.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::exit::ExitCause;
use super::left_out::{NodesLeftOut, is_zero};
use super::names::JobNames;
use crate::meta::Quantities;

/// One thing that a reason says. On the wire its `type` is the variant's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Fact {
    /// A sentence that says all there is, such as what is wrong with an annotation.
    Message { text: String },
    /// Fewer members have been created than are wanted.
    WaitingForMembers {
        /// Members that have been created and are not blocked by a scheduling gate.
        created: u32,
        wanted: u32,
        /// Members that are blocked by a scheduling gate.
        #[serde(default, skip_serializing_if = "is_zero")]
        gated: u32,
        /// The names of these gates.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gates: Vec<String>,
        /// The job runs, and these members join it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        joining: bool,
    },
    /// All Pods have finished, and the controller has not said yet what follows.
    MembersFinished { finished: u32 },
    /// Members of a running job wait for a node.
    MembersWaiting { count: u32 },
    /// Members of a running job are gone.
    MembersMissing {
        missing: u32,
        wanted: u32,
        /// What happens about it.
        because: MissingMembers,
        /// Nodes on which resources are reserved for replacements.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        nodes: Vec<String>,
    },
    /// Nodes were deleted that members were on.
    MembersOnDeletedNodes { members: u32, wanted: u32, nodes: Vec<String> },
    /// All its nodes were deleted; its Pods are not yet.
    NodesDeleted,
    /// The PodGroup of a running job was deleted.
    PodGroupDeleted { name: String },
    /// The job is suspended.
    Suspended,
    /// The job's Pods are terminating.
    Terminating { pods: u32 },

    /// The job waits for the next pass over the queue.
    InQueue,
    /// The queue starts jobs in order, and earlier ones wait.
    BehindEarlierJobs,
    /// The queue's depth ends before the job.
    BeyondQueueDepth,
    /// Its start would delay planned starts.
    WouldDelay { jobs: JobNames },
    /// Its resources are in use, which is not looked at more closely.
    ResourcesInUse,
    /// The cluster has no nodes.
    NoNodes,
    /// Which nodes take members of one shape, and why others don't.
    Nodes(Box<ShapeNodes>),
    /// Shapes that are left out here.
    MoreShapes { count: u32 },
    /// The members have to start together, and there is no room for all of them.
    Together(Box<Together>),
    /// It would start but for reservations.
    RoomReserved { jobs: JobNames },
    /// No start can be planned.
    NoEstimate {
        because: NoEstimate,
        /// Of those without a time limit, the ones that may be named.
        #[serde(default)]
        jobs: JobNames,
    },
    /// The job has a planned start.
    PlannedStart,
    /// The planned start rests on the assumed end of these jobs.
    StartAssumed {
        jobs: JobNames,
        /// They have a time limit, and wait themselves for jobs that have none.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        limited: bool,
    },
    /// The Job's activeDeadlineSeconds expires before the planned start.
    LimitBeforeStart,

    /// The API server refused a binding.
    BindFailed { pod: String, node: String, answer: String },
    /// The gang was given up because of that, and is tried again later.
    RetriedLater,
    /// The kubelet rejected a member.
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
        /// The one that failed first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<ExitCause>,
        /// activeDeadlineSeconds of that Pod.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit_seconds: Option<i64>,
    },
    /// The controller gave the job up.
    JobFailed {
        reason: String,
        /// The Job's activeDeadlineSeconds, where that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit_seconds: Option<i64>,
    },

    /// What only a newer server knows, as it came.
    #[serde(untagged)]
    Unknown(Value),
}

/// Which nodes take members that request the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ShapeNodes {
    /// Members of this shape that are to start.
    pub members: u32,
    /// What each of them requests.
    pub requests: Quantities,
    /// Members that find room, at most as many as are to start.
    pub room: u32,
    /// Nodes that take at least one.
    pub available: u32,
    /// Nodes of the cluster.
    pub total: u32,
    /// The other nodes by reason, the most frequent first.
    pub left_out: Vec<NodesLeftOut>,
    /// The node that lacks least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<NearestNode>,
}

/// The node that lacks least.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NearestNode {
    pub name: String,
    pub lacks: Vec<Lack>,
    /// A host port that is in use there, e.g. `8080/TCP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
}

/// A resource of which a node has less than a member requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lack {
    pub resource: String,
    /// As Kubernetes writes quantities.
    pub requested: String,
    pub available: String,
}

/// What a gang as a whole is short of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Together {
    /// Members that have to start together.
    pub wanted: u32,
    /// Members that these are any of.
    pub of: u32,
    /// Members that find room together.
    pub room: u32,
    /// That is so even when nodes are empty.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub when_empty: bool,
    /// The topology key whose one domain all of them must share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    /// The domain with most room, or the one that is asked for; empty where the reader may not know its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The resource that nodes with room run out of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The host port that limits each node to one member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
}

/// Why no start can be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoEstimate {
    /// Nodes are unavailable, and nobody knows until when.
    NodesDown,
    /// Who holds what is needed has no time limit.
    NoTimeLimit,
    /// No planned end frees enough.
    NothingFreed,
}

/// What happens about missing members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MissingMembers {
    /// Resources are reserved for replacements.
    Reserved,
    /// No node has room for a replacement.
    NoRoom,
    /// Pods that terminate are to be replaced.
    Terminating,
    /// No replacement was created in time.
    GivenUp,
    /// Nothing is reserved for replacements.
    NotReserved,
    /// Nobody recreates Pods without a controller.
    NotRecreated,
}
