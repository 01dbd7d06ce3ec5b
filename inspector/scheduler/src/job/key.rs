//! Identifiers of a job.

use serde::{Deserialize, Serialize};

use crate::model::SharedStr;

/// Number of a job, unique within the lifetime of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u32);

/// Identity of a job: never just a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct JobKey {
    pub namespace: SharedStr,
    /// Lower case, followed by the API group for kinds other than PodGroups and those in core, batch and apps: `job`,
    /// `podgroup`, `pod`, `group`, `jobset.jobset.x-k8s.io`.
    pub kind: SharedStr,
    pub name: SharedStr,
    /// UID of the object that gives the job its name; for a label group, of its first member.
    pub uid: SharedStr,
}

impl JobKey {
    /// `KIND.NAME`: the name of the `FluxionJob`.
    pub fn object_name(&self) -> String {
        format!("{}.{}", self.kind, self.name)
    }

    /// `KIND/NAME`: the form used by users.
    pub fn display(&self) -> String {
        format!("{}/{}", self.kind, self.name)
    }
}

/// The group that Pods of a job share. `anchor` is the UID of the object that defines it, if there is one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupKey {
    pub namespace: SharedStr,
    pub kind: SharedStr,
    pub name: SharedStr,
    pub anchor: Option<SharedStr>,
}
