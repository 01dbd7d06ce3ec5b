//! What was told to whom, so that nothing is told twice.

use imbl::OrdMap;

use crate::event::GroupStatus;
use crate::job::JobId;
use crate::model::SharedStr;
use crate::state::told::{Saying, Told};

/// See the module. Pods and PodGroups are known by their uids.
#[derive(Clone, Debug, Default)]
pub(super) struct Announced {
    pods: OrdMap<SharedStr, Told>,
    saying: OrdMap<JobId, Saying>,
    groups: OrdMap<SharedStr, (bool, &'static str)>,
    statuses: OrdMap<SharedStr, GroupStatus>,
}

impl Announced {
    /// What the Pod's condition was last made to say.
    pub(super) fn told(&self, pod: &SharedStr) -> Option<&Told> {
        self.pods.get(pod)
    }

    pub(super) fn tell(&mut self, pod: SharedStr, told: Told) {
        self.pods.insert(pod, told);
    }

    /// What the job's Pods are to be told.
    pub(super) fn saying(&self, job: JobId) -> Option<&Saying> {
        self.saying.get(&job)
    }

    /// What the job's Pods are to be told from now on; nothing where it is none.
    pub(super) fn say(&mut self, job: JobId, saying: Option<Saying>) {
        match saying {
            Some(saying) => _ = self.saying.insert(job, saying),
            None => _ = self.saying.remove(&job),
        }
    }

    /// Notes what the condition of a PodGroup is made to say; whether that is news.
    pub(super) fn tell_group(&mut self, group: &SharedStr, scheduled: bool, reason: &'static str) -> bool {
        self.groups.insert(group.clone(), (scheduled, reason)) != Some((scheduled, reason))
    }

    /// Notes what the status of a scheduling.x-k8s.io PodGroup is made to say; whether that is news.
    pub(super) fn tell_status(&mut self, group: &SharedStr, status: &GroupStatus) -> bool {
        if self.statuses.get(group) == Some(status) {
            return false;
        }
        self.statuses.insert(group.clone(), status.clone());
        true
    }

    /// The Pod is gone.
    pub(super) fn forget_pod(&mut self, pod: &SharedStr) {
        self.pods.remove(pod);
    }

    /// The PodGroup is gone.
    pub(super) fn forget_group(&mut self, group: &SharedStr) {
        self.groups.remove(group);
        self.statuses.remove(group);
    }
}
