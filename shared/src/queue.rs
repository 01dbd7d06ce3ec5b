//! `FluxionQueue`: a queue with its policy and its last scheduling pass.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::meta::ObjectMeta;
use crate::words::JobState;

/// A queue.
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

/// Configuration of a queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct QueueSpec {
    /// `fcfs`, `easy`, `conservative` or `hybrid`.
    pub policy: String,
    /// With policy `conservative`, what happens to reservations when something changes: with `compress`, they are kept and
    /// only moved to an earlier start, with `replan`, all of them are planned again. Absent with other policies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planning: Option<String>,
    /// Maximum number of pending jobs considered per scheduling pass.
    pub queue_depth: u32,
    /// Maximum number of jobs with a reservation.
    pub reservation_depth: u32,
    /// Which of the suitable nodes are used first: `low` (in order of their names), `high` (in reverse order) or `spread` (the
    /// least allocated).
    pub node_policy: String,
    /// Planned duration of jobs without one, in seconds; `null` for none.
    pub default_duration_seconds: Option<i64>,
    /// Duration assumed for jobs without a time limit when planning later jobs, in seconds; `null` for none.
    pub assumed_duration_seconds: Option<i64>,
}

/// Status of a queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct QueueStatus {
    /// Number of jobs by state.
    pub jobs: BTreeMap<JobState, u32>,
    pub last_pass: Pass,
}

/// The last completed scheduling pass over the queue.
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
