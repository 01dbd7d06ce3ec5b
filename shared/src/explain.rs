//! `FluxionExplanation`: why a job is in its current state, from one snapshot.

use serde::{Deserialize, Serialize};

use crate::job::FluxionJob;
use crate::meta::ObjectMeta;
use crate::reason::{Fact, NodesLeftOut};

/// A preference of a job's members: preferred affinity, a soft topology spread constraint, or the absence of a taint
/// `PreferNoSchedule`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Preference {
    /// What is preferred, e.g. `node affinity to disk=ssd`.
    pub text: String,
    /// Its weight, 1 to 100.
    pub weight: u32,
    /// Number of members that have it.
    pub members: u32,
    /// Number of members on nodes that meet it; absent if that depends on Pods that the user may not see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<u32>,
}

/// The response to `GET …/fluxionjobs/NAME/explain`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FluxionExplanation {
    pub api_version: String,
    /// `FluxionExplanation`.
    pub kind: String,
    /// Name and namespace of the job; `resourceVersion` identifies the snapshot.
    pub metadata: ObjectMeta,
    /// When the snapshot was taken (RFC 3339, UTC).
    pub observed_at: String,
    /// The job in that snapshot.
    pub job: FluxionJob,
    /// Why nodes cannot run a member now, by number of nodes; empty if the job is not waiting for nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodesLeftOut>,
    /// Why the job cannot start now, as facts; empty if the job is not waiting for nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
    /// The closest match, e.g. `3 of 4 members fit now`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
    /// Changes that would let the job start now, smallest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<String>,
    /// What the members prefer, and how many of them are on nodes (or planned for nodes) that meet it; the greatest weight
    /// first. Empty without nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub preferences: Vec<Preference>,
    /// The request as a jobspec, which `resource-query --kubernetes` can match against the JGF graph; absent if the
    /// request is not known yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobspec: Option<String>,
}
