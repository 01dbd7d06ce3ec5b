//! What was told to whom, so that nothing is told twice.

use imbl::OrdMap;

use crate::event::GroupStatus;
use crate::job::JobId;
use crate::model::SharedStr;
use crate::state::told::{Saying, Told};

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Announced {
    /// What a Pod's condition was last made to say.
    pub pods: OrdMap<SharedStr, Told>,
    /// What a job's Pods are to be told.
    pub saying: OrdMap<JobId, Saying>,
    /// What a PodGroup's condition was last made to say.
    pub groups: OrdMap<SharedStr, (bool, &'static str)>,
    /// What a scheduling.x-k8s.io PodGroup's status was last made to say.
    pub statuses: OrdMap<SharedStr, GroupStatus>,
}

impl Announced {
    /// A PodGroup is gone.
    pub(super) fn forget_group(&mut self, uid: &SharedStr) {
        self.groups.remove(uid);
        self.statuses.remove(uid);
    }
}
