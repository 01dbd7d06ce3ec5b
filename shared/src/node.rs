//! `FluxionNode`: what a node has, who holds it, and whether it takes new work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::meta::ObjectMeta;
use crate::meta::Quantities;

/// One node of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FluxionNode {
    pub api_version: String,
    pub kind: String,
    pub metadata: ObjectMeta,
    pub status: NodeStatus,
}

/// The books of one node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    /// Whether a Pod without tolerations may be placed here.
    pub eligible: bool,
    /// Why not, e.g. `cordoned`, `not ready`, `tainted dedicated=gpu:NoSchedule`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Topology key to the domain this node is in.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: BTreeMap<String, String>,
    pub capacity: Quantities,
    pub allocatable: Quantities,
    /// The sum over all Pods bound here, foreign ones included.
    pub allocated: Quantities,
    /// The part of `allocated` that other schedulers bound or nominated.
    pub foreign: Quantities,
    /// Planned for reservations, or kept for members that were lost.
    pub reserved: Quantities,
    /// Allocatable less allocated, never below 0.
    pub free: Quantities,
    /// Allocated above allocatable; empty when healthy.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub deficit: Quantities,
    /// `KIND/NAME` with the namespace in front, of the jobs on it.
    pub jobs: Vec<String>,
}
