//! `FluxionJob`: a group of Pods that is scheduled as one.

use serde::{Deserialize, Serialize};

use crate::cancel::CancelTarget;
use crate::meta::{ObjectMeta, Quantities};
use crate::names::JobRef;
use crate::reason::{ExitCause, Reason};
use crate::words::JobState;

/// One job. `metadata.name` is `KIND.NAME` (`job.lammps`, `group.mpi`).
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
    /// The job as users write it, `NAMESPACE/KIND/NAME`; what stands in `metadata.name` as `KIND.NAME`.
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

    /// Whether it has ended: completed, failed or cancelled.
    pub fn has_ended(&self) -> bool {
        self.status.state.is_ended()
    }

    /// Whether it waits for its start.
    pub fn is_queued(&self) -> bool {
        self.status.state.is_queued()
    }
}

/// What the job asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct JobSpec {
    pub queue: String,
    pub priority: i32,
    /// Seconds from its start that it is planned to run, for reservations and backfill; nothing ends it then. `null`
    /// when nobody knows.
    pub duration_seconds: Option<i64>,
    /// Seconds after which Kubernetes ends it (activeDeadlineSeconds of its Pods, or of its Job, which counts from the
    /// Job's start).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_seconds: Option<i64>,
    pub group: Group,
    pub shapes: Vec<Shape>,
    /// The topology key whose one domain all members must share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
}

/// The object that makes the Pods one job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Group {
    /// As users write it: `Job`, `PodGroup`, `Pod`, or `group` for one made by labels.
    pub kind: String,
    pub name: String,
    pub api_group: String,
    pub uid: String,
    /// How many members are wanted at once; `null` when the size is invalid or unknown.
    pub size: Option<u32>,
}

/// Members that ask for the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Shape {
    pub count: u32,
    pub requests: Quantities,
}

/// Where the job stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct JobStatus {
    pub state: JobState,
    /// RFC 3339, UTC.
    pub state_since: String,
    /// A member was lost and its place is kept.
    pub degraded: bool,
    pub members: Members,
    /// The sum over the members that have not ended; of an ended job, over those of its last attempt.
    pub request: Quantities,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// 1-based place among the pending jobs of its queue that the asker may see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u32>,
    /// When the attempt that runs, or that ran last, began: a controller may make the Pods again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Of an ended job: the member that failed first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitCause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_start: Option<String>,
    /// The planned start rests on a time that is only assumed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub planned_start_assumed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned_end: Option<String>,
    /// Where it runs; of an ended job, where its last attempt did.
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

/// Members counted by how far they are. Text shows seen/wanted before the start, bound/wanted after, and of an ended
/// job the bound ones of its last attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Members {
    pub wanted: Option<u32>,
    /// Not gated and not ended.
    pub seen: u32,
    pub gated: u32,
    pub bound: u32,
    pub running: u32,
    /// In all attempts.
    pub ended: u32,
}

/// Nodes and the job's Pods on each.
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

/// Nodes planned for the job from `start` on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Reservation {
    pub start: String,
    /// The start rests on the assumed end of a job without a time limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub start_assumed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// The end is assumed, or follows from such a start.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub end_assumed: bool,
    pub nodes: Vec<String>,
}

/// A job this one waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct WaitsFor {
    /// `KIND/NAME`, with the namespace in front when it is another one.
    pub job: String,
    /// When it is planned to end; absent when nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// That is assumed, since it, or who it waits for, has no time limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub assumed: bool,
}

/// One transition.
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
