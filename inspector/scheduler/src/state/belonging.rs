//! Who belongs to which job.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::job::{GroupKey, JobId};
use crate::model::SharedStr;
use crate::state::membership::Membership;

/// See the module. Pods are known by their uids.
#[derive(Clone, Debug, Default)]
pub(super) struct Belonging {
    /// What each Pod says about its group.
    pub memberships: OrdMap<SharedStr, Arc<Membership>>,
    pub job_of_pod: OrdMap<SharedStr, JobId>,
    /// Other schedulers' Pods that belong to no job of ours, by what would make them members.
    pub unassigned: OrdSet<(GroupKey, SharedStr)>,
    /// The job of each group that has not ended.
    pub active: OrdMap<GroupKey, JobId>,
}
