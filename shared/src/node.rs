//! `FluxionNode`: the resources of a node, who uses them, and whether it accepts new Pods.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::meta::ObjectMeta;
use crate::meta::Quantities;

/// A node of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FluxionNode {
    pub api_version: String,
    pub kind: String,
    pub metadata: ObjectMeta,
    pub status: NodeStatus,
}

/// Status of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    /// Whether Pods without tolerations can be scheduled to the node.
    pub eligible: bool,
    /// Why the node is not eligible, e.g. `cordoned`, `not ready`, `tainted dedicated=gpu:NoSchedule`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Topology domains of the node by topology key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: BTreeMap<String, String>,
    pub capacity: Quantities,
    pub allocatable: Quantities,
    /// Sum of the requests of all Pods bound to the node, including those of other schedulers.
    pub allocated: Quantities,
    /// The part of `allocated` used by Pods that other schedulers bound or nominated.
    pub foreign: Quantities,
    /// Reserved for planned starts, or for replacements of lost members.
    pub reserved: Quantities,
    /// Allocatable minus allocated, at least 0.
    pub free: Quantities,
    /// Amount by which allocated exceeds allocatable; normally empty.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub deficit: Quantities,
    /// Jobs on the node, as `NAMESPACE/KIND/NAME`.
    pub jobs: Vec<String>,
}
