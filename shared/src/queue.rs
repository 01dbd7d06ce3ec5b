//! `FluxionQueue`: a named queue with its policy and what it did last.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::meta::ObjectMeta;
use crate::words::JobState;

/// One queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FluxionQueue {
    pub api_version: String,
    pub kind: String,
    pub metadata: ObjectMeta,
    pub spec: QueueSpec,
    pub status: QueueStatus,
}

/// Its settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct QueueSpec {
    /// `fcfs`, `easy`, `conservative` or `hybrid`.
    pub policy: String,
    /// How many pending jobs one pass looks at.
    pub queue_depth: u32,
    /// How many of them may hold a reservation.
    pub reservation_depth: u32,
    /// Seconds a job that says no duration is planned for; `null`: none.
    pub default_duration_seconds: Option<i64>,
    /// Seconds a job without a time limit is assumed to take by those planned behind it; `null`: nothing is.
    pub assumed_duration_seconds: Option<i64>,
}

/// Its state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct QueueStatus {
    /// Number of jobs by state.
    pub jobs: BTreeMap<JobState, u32>,
    pub last_pass: Pass,
}

/// The last completed pass over the queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Pass {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    pub seconds: f64,
    pub tried: u32,
    pub started: u32,
}
