//! What has been reported, so that nothing is reported twice.

use imbl::OrdMap;

use crate::event::GroupStatus;
use crate::job::JobId;
use crate::model::SharedStr;
use crate::state::told::{Saying, Told};

/// See the module documentation. Pods and PodGroups are identified by UID.
#[derive(Clone, Debug, Default)]
pub(super) struct Announced {
    pods: OrdMap<SharedStr, Told>,
    saying: OrdMap<JobId, Saying>,
    groups: OrdMap<SharedStr, (bool, &'static str)>,
    statuses: OrdMap<SharedStr, GroupStatus>,
}

impl Announced {
    /// The Pod's last written condition.
    pub(super) fn told(&self, pod: &SharedStr) -> Option<&Told> {
        self.pods.get(pod)
    }

    pub(super) fn tell(&mut self, pod: SharedStr, told: Told) {
        self.pods.insert(pod, told);
    }

    /// The condition to be reported for the job's Pods.
    pub(super) fn saying(&self, job: JobId) -> Option<&Saying> {
        self.saying.get(&job)
    }

    /// Sets the condition to be reported for the job's Pods; none removes it.
    pub(super) fn say(&mut self, job: JobId, saying: Option<Saying>) {
        match saying {
            Some(saying) => _ = self.saying.insert(job, saying),
            None => _ = self.saying.remove(&job),
        }
    }

    /// Records the condition of a PodGroup; returns whether it has changed.
    pub(super) fn tell_group(&mut self, group: &SharedStr, scheduled: bool, reason: &'static str) -> bool {
        self.groups.insert(group.clone(), (scheduled, reason)) != Some((scheduled, reason))
    }

    /// Records the status of a scheduling.x-k8s.io PodGroup; returns whether it has changed.
    pub(super) fn tell_status(&mut self, group: &SharedStr, status: &GroupStatus) -> bool {
        if self.statuses.get(group) == Some(status) {
            return false;
        }
        self.statuses.insert(group.clone(), status.clone());
        true
    }

    /// The Pod was deleted.
    pub(super) fn forget_pod(&mut self, pod: &SharedStr) {
        self.pods.remove(pod);
    }

    /// The PodGroup was deleted.
    pub(super) fn forget_group(&mut self, group: &SharedStr) {
        self.groups.remove(group);
        self.statuses.remove(group);
    }
}
