//! `FluxionExplanation`: why a job is where it is, taken from one snapshot.

use serde::{Deserialize, Serialize};

use crate::job::FluxionJob;
use crate::meta::ObjectMeta;
use crate::reason::{Fact, JobNames};
use crate::words::NodeReasonClass;

/// The answer to `GET …/fluxionjobs/NAME/explain`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FluxionExplanation {
    pub api_version: String,
    /// `FluxionExplanation`.
    pub kind: String,
    /// Name and namespace of the job; `resourceVersion` is the snapshot it was taken from.
    pub metadata: ObjectMeta,
    /// When the snapshot was taken (RFC 3339, UTC).
    pub observed_at: String,
    /// The job in that snapshot.
    pub job: FluxionJob,
    /// What keeps nodes from taking a member now, most nodes first; empty when the job doesn't wait for nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodesLeftOut>,
    /// What stands in the way now, as facts; empty when the job doesn't wait for nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
    /// How close it is, e.g. `3 of the 4 members fit now`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
    /// Changes that would start it now, smallest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
    /// What it asks for as a jobspec, which `resource-query --kubernetes` matches on the graph as JGF; absent when
    /// it is not known yet what it asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobspec: Option<String>,
}

/// Nodes that can't take a member for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodesLeftOut {
    pub count: u32,
    pub class: NodeReasonClass,
    /// [`text`](Self::text), as it follows the number: `had no nvidia.com/gpu`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Which resource there is too little of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// How much of it one member requests, as Kubernetes writes quantities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
    /// The most that one of these nodes has: available, or when empty, as the class says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest: Option<String>,
    /// The taint (`KEY=VALUE:EFFECT`), the pair of the node selector (`KEY=VALUE`), the terms of the node affinity or the
    /// host port (`8080/TCP`), as the class says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Whom they are reserved for.
    #[serde(skip_serializing_if = "is_nobody")]
    pub jobs: JobNames,
    /// When that is planned to end for the first of them (RFC 3339, UTC); absent when nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// That is assumed, since who holds them has no time limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub until_assumed: bool,
    /// How many of them have no planned end.
    #[serde(skip_serializing_if = "is_zero")]
    pub without_end: u32,
}

fn is_nobody(jobs: &JobNames) -> bool {
    *jobs == JobNames::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_zero(count: &u32) -> bool {
    *count == 0
}
