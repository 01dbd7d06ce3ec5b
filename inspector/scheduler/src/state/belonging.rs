//! Assignment of Pods to jobs. Pods are identified by UID.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::job::{GroupKey, Job, JobId};
use crate::model::SharedStr;
use crate::state::membership::Membership;

/// See the module documentation.
#[derive(Clone, Debug, Default)]
pub(super) struct Belonging {
    memberships: OrdMap<SharedStr, Arc<Membership>>,
    job_of_pod: OrdMap<SharedStr, JobId>,
    unassigned: OrdSet<(GroupKey, SharedStr)>,
    active: OrdMap<GroupKey, JobId>,
}

impl Belonging {
    /// The Pod's group information.
    pub(super) fn membership(&self, pod: &SharedStr) -> Option<&Arc<Membership>> {
        self.memberships.get(pod)
    }

    /// Sets the Pod's group information.
    pub(super) fn set_membership(&mut self, pod: &SharedStr, membership: Option<Arc<Membership>>) {
        let old = match membership {
            Some(membership) => self.memberships.insert(pod.clone(), membership),
            None => self.memberships.remove(pod),
        };
        if let Some(old) = old {
            self.unassigned.remove(&(old.key.clone(), pod.clone()));
        }
    }

    /// The job of the Pod.
    pub(super) fn job_of(&self, pod: &str) -> Option<JobId> {
        self.job_of_pod.get(pod).copied()
    }

    pub(super) fn assign(&mut self, pod: SharedStr, job: JobId) {
        self.job_of_pod.insert(pod, job);
    }

    /// Removes the Pod from its job; returns that job.
    pub(super) fn unassign(&mut self, pod: &SharedStr) -> Option<JobId> {
        self.job_of_pod.remove(pod)
    }

    /// Remembers a Pod of another scheduler that belongs to none of our jobs, in case its group becomes one.
    pub(super) fn keep_in_mind(&mut self, group: GroupKey, pod: SharedStr) {
        self.unassigned.insert((group, pod));
    }

    /// Removes and returns the remembered Pods of a group.
    pub(super) fn take_unassigned(&mut self, group: &GroupKey) -> Vec<SharedStr> {
        let first = (group.clone(), SharedStr::from(""));
        let of_group = self.unassigned.range(first..).take_while(|(other, _)| other == group);
        let pods: Vec<SharedStr> = of_group.map(|(_, pod)| pod.clone()).collect();
        for pod in &pods {
            self.unassigned.remove(&(group.clone(), pod.clone()));
        }
        pods
    }

    /// The group's job that has not finished.
    pub(super) fn active(&self, group: &GroupKey) -> Option<JobId> {
        self.active.get(group).copied()
    }

    /// All jobs that have not finished.
    pub(super) fn all_active(&self) -> impl Iterator<Item = JobId> + '_ {
        self.active.values().copied()
    }

    pub(super) fn activate(&mut self, group: GroupKey, job: JobId) {
        self.active.insert(group, job);
    }

    /// The job has finished or was removed.
    pub(super) fn deactivate(&mut self, job: &Job) {
        if self.active.get(&job.group) == Some(&job.id) {
            self.active.remove(&job.group);
        }
    }
}
