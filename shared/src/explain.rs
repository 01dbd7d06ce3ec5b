//! `FluxionExplanation`: why a job is where it is, taken from one snapshot.

use serde::{Deserialize, Serialize};

use crate::job::FluxionJob;
use crate::meta::ObjectMeta;
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
    /// e.g. `had no nvidia.com/gpu`, `had untolerated taint {dedicated=gpu:NoSchedule}`.
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
    /// When that is planned to end; absent when nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// That is assumed, since who holds them has no time limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub until_assumed: bool,
}
