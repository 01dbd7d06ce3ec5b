//! `FluxionExplanation`: why a job is where it is, taken from one snapshot.

use serde::{Deserialize, Serialize};

use crate::job::FluxionJob;
use crate::meta::ObjectMeta;
use crate::reason::{Fact, NodesLeftOut};

/// The answer to `GET …/fluxionjobs/NAME/explain`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
