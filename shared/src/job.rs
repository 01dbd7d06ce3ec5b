//! `FluxionJob`: a group of Pods that is scheduled as a unit.

use serde::{Deserialize, Serialize};

use crate::cancel::CancelTarget;
use crate::meta::{ObjectMeta, Quantities};
use crate::names::JobRef;
use crate::reason::{ExitCause, Reason};
use crate::words::JobState;

/// A job. `metadata.name` is `KIND.NAME` (`job.lammps`, `group.mpi`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FluxionJob {
    pub api_version: String,
    pub kind: String,
    pub metadata: ObjectMeta,
    pub spec: JobSpec,
    pub status: JobStatus,
}

impl FluxionJob {
    /// The job reference `NAMESPACE/KIND/NAME`, derived from `metadata.name` (`KIND.NAME`).
    pub fn reference(&self) -> JobRef {
        let whole = self.metadata.name.as_str();
        let group = &self.spec.group;
        let kind = group.kind.to_lowercase();
        // The kind may carry its API group, and both may hold dots: the group's own name tells where it ends.
        let split = [format!("{kind}.{}", group.api_group), kind].into_iter().find_map(|kind| {
            let name = whole.strip_prefix(&kind)?.strip_prefix('.')?;
            name.starts_with(&group.name).then(|| (kind, name.to_owned()))
        });
        let (kind, name) = match split {
            Some((kind, name)) => (Some(kind), name),
            None => match whole.split_once('.') {
                Some((kind, name)) => (Some(kind.to_owned()), name.to_owned()),
                None => (None, whole.to_owned()),
            },
        };
        JobRef { namespace: self.metadata.namespace.clone(), kind, name }
    }

    /// Whether the job has finished: completed, failed or cancelled.
    pub fn has_ended(&self) -> bool {
        self.status.state.is_ended()
    }

    /// Whether the job is waiting to start.
    pub fn is_queued(&self) -> bool {
        self.status.state.is_queued()
    }
}

/// What the job requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct JobSpec {
    pub queue: String,
    pub priority: i32,
    /// Planned duration in seconds, used for reservations and backfill but not enforced; `null` if
    /// unknown.
    pub duration_seconds: Option<i64>,
    /// Time limit in seconds, enforced by Kubernetes (activeDeadlineSeconds of its Pods, or of its Job, which counts
    /// from the start of the Job).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_seconds: Option<i64>,
    pub group: Group,
    pub shapes: Vec<Shape>,
    /// Topology key; all members must be in a single domain of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
}

/// The object that groups the Pods into a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Group {
    /// `Job`, `PodGroup`, `Pod`, or `group` for a group defined by labels.
    pub kind: String,
    pub name: String,
    pub api_group: String,
    pub uid: String,
    /// Number of members that must run at the same time; `null` if invalid or unknown.
    pub size: Option<u32>,
}

/// Members with the same requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Shape {
    pub count: u32,
    pub requests: Quantities,
}

/// Status of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct JobStatus {
    pub state: JobState,
    /// RFC 3339, UTC.
    pub state_since: String,
    /// A member was lost and its resources are reserved for a replacement.
    pub degraded: bool,
    pub members: Members,
    /// Sum of the requests of unfinished members; for a finished job, of the members of its last attempt.
    pub request: Quantities,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// 1-based position among the pending jobs of its queue that the caller is allowed to see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// Start of the current or last attempt; a controller may recreate the Pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// For a failed job, the member that failed first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitCause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_start: Option<String>,
    /// Whether the planned start depends on an assumed time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub planned_start_assumed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_end: Option<String>,
    /// The nodes it runs on; for a finished job, the nodes of its last attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation: Option<Allocation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<WaitsFor>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cancel_targets: Vec<CancelTarget>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryEntry>,
}

/// Number of members by progress. Tables show seen/wanted before the start, bound/wanted afterwards, and for a finished
/// job the bound members of its last attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Members {
    pub wanted: Option<u32>,
    /// Not gated and not finished.
    pub seen: u32,
    pub gated: u32,
    pub bound: u32,
    pub running: u32,
    /// Finished members of all attempts.
    pub ended: u32,
}

/// Allocated nodes and the Pods of the job on each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Allocation {
    pub nodes: Vec<AllocatedNode>,
}

/// One node of an allocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct AllocatedNode {
    pub name: String,
    pub pods: Vec<String>,
}

/// Nodes reserved for the job from `start` on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Reservation {
    pub start: String,
    /// Whether the start depends on the assumed end of a job without a time limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub start_assumed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// Whether the end is assumed, or derived from an assumed start.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub end_assumed: bool,
    pub nodes: Vec<String>,
}

/// A job that this job is waiting for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct WaitsFor {
    /// `KIND/NAME`, or `NAMESPACE/KIND/NAME` in other namespaces.
    pub job: String,
    /// Planned end; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Whether `until` is assumed, because that job, or one it is waiting for, has no time limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
}

/// A state transition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct HistoryEntry {
    pub time: String,
    pub state: JobState,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_written_form_of_a_job() {
        for (whole, kind, api_group, name, written) in [
            ("job.lammps", "Job", "batch", "lammps", "ns/job/lammps"),
            ("podgroup.train.v2", "PodGroup", "scheduling.k8s.io", "train.v2", "ns/podgroup/train.v2"),
            ("jobset.jobset.x-k8s.io.a", "JobSet", "jobset.x-k8s.io", "a", "ns/jobset.jobset.x-k8s.io/a"),
            ("job.lammps.1a2b3", "Job", "batch", "lammps", "ns/job/lammps.1a2b3"),
            ("odd.thing", "", "", "", "ns/odd/thing"),
        ] {
            let mut job = FluxionJob::default();
            job.metadata.name = whole.to_owned();
            job.metadata.namespace = Some("ns".to_owned());
            job.spec.group = Group {
                kind: kind.into(),
                api_group: api_group.into(),
                name: name.into(),
                ..Group::default()
            };
            assert_eq!(job.reference().to_string(), written);
        }
    }
}
