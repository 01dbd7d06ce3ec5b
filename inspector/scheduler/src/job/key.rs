//! What names a job.

use serde::{Deserialize, Serialize};

use crate::model::SharedStr;

/// Number of a job within one engine's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u32);

/// Identity of a job: never a bare name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobKey {
    pub namespace: SharedStr,
    /// Lower case, with the API group behind it for kinds outside core, batch and apps and the PodGroups:
    /// `job`, `podgroup`, `pod`, `group`, `jobset.jobset.x-k8s.io`.
    pub kind: SharedStr,
    pub name: SharedStr,
    /// Of the object the job is named after; of a label group: its first member's.
    pub uid: SharedStr,
}

impl JobKey {
    /// `KIND.NAME`: the name of the `FluxionJob`.
    pub fn object_name(&self) -> String {
        format!("{}.{}", self.kind, self.name)
    }

    /// `KIND/NAME`: how people write it.
    pub fn display(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }
}

/// What makes Pods one job. `anchor` is the uid of the object that names it, where one does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupKey {
    pub namespace: SharedStr,
    pub kind: SharedStr,
    pub name: SharedStr,
    pub anchor: Option<SharedStr>,
}
