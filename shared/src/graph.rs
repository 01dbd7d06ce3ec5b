//! `FluxionGraph`, `FluxionTimeline` and `FluxionAudit`: cluster-wide singletons named `live`.

use serde::{Deserialize, Serialize};

use crate::meta::ObjectMeta;
use crate::meta::Quantities;

/// The resource graph; `status.graph` is in the JGF format of the Flux tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FluxionGraph {
    pub api_version: String,
    pub kind: String,
    pub metadata: ObjectMeta,
    pub status: GraphStatus,
}

/// The graph in JGF and summarized.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct GraphStatus {
    /// JSON Graph Format: `{"graph": {"nodes": […], "edges": […]}}`; absent if only the summary was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<serde_json::Value>,
    pub summary: Vec<LevelSummary>,
}

/// Summary of all vertices of one level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct LevelSummary {
    /// `cluster`, a topology key, or `node`.
    pub level: String,
    pub vertices: u32,
    pub allocatable: Quantities,
    pub allocated: Quantities,
    pub free: Quantities,
}

/// Allocations and reservations over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FluxionTimeline {
    pub api_version: String,
    pub kind: String,
    pub metadata: ObjectMeta,
    pub spans: Vec<TimelineSpan>,
}

/// An allocation or reservation of nodes for a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct TimelineSpan {
    /// `NAMESPACE/KIND/NAME`.
    pub job: String,
    /// `allocation` or `reservation`.
    pub kind: String,
    pub start: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    pub nodes: Vec<String>,
}

/// Audit of the inspector's own state; `findings` is empty if there are no problems.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FluxionAudit {
    pub api_version: String,
    pub kind: String,
    pub metadata: ObjectMeta,
    pub findings: Vec<Finding>,
}

/// A problem found by the audit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Finding {
    /// Machine-readable class: `Overcommitted`, `PartlyBound`, `RejectedByKubelet`, `Invariant` …
    pub class: String,
    /// `node/n1`, `default/group/sim` …
    pub object: String,
    /// Description of the problem, and how to fix it.
    pub text: String,
}
