//! `FluxionGraph` and `FluxionTimeline`: whole-cluster documents of which there is one, called `live`.

use serde::{Deserialize, Serialize};

use crate::meta::ObjectMeta;
use crate::meta::Quantities;

/// The resource graph; `status.graph` is JGF, as flux tools read it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FluxionGraph {
    pub api_version: String,
    pub kind: String,
    pub metadata: ObjectMeta,
    pub status: GraphStatus,
}

/// The graph in both forms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct GraphStatus {
    /// JSON Graph Format: `{"graph": {"nodes": […], "edges": […]}}`; absent when only the summary was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<serde_json::Value>,
    pub summary: Vec<LevelSummary>,
}

/// All vertices of one type.
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

/// One job on its nodes for a time.
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

/// The self-audit; healthy when `findings` is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FluxionAudit {
    pub api_version: String,
    pub kind: String,
    pub metadata: ObjectMeta,
    pub findings: Vec<Finding>,
}

/// One thing that is off.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Finding {
    /// A stable word: `Overcommitted`, `PartlyBound`, `RejectedByKubelet`, `Invariant` …
    pub class: String,
    /// `node/n1`, `default/group/sim` …
    pub object: String,
    /// What is off, and what to do.
    pub text: String,
}
