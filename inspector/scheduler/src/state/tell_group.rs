//! Status of PodGroups: a condition on native ones, a status in scheduler-plugins' terms on the others.

use std::sync::Arc;

use crate::event::{Effect, GroupStatus};
use crate::job::{Job, JobState, ReasonClass};
use crate::model::{GroupApi, GroupSpec, ObjectRef, Phase, PodSpec, SharedStr};
use crate::state::State;

impl State {
    pub(super) fn tell_group(&mut self, job: &Job) {
        let Some(group) = self.group_of(job) else { return };
        match group.api {
            GroupApi::SchedulerPlugins => self.tell_status(job, group.object()),
            GroupApi::Native if job.state.ended() || group.scheduled => {}
            GroupApi::Native => self.tell_condition(job, group.object()),
        }
    }

    fn tell_condition(&mut self, job: &Job, group: ObjectRef) {
        let wanted = job.members.wanted.unwrap_or(u32::MAX);
        let (scheduled, reason, message) = if job.state == JobState::Running && job.members.bound >= wanted {
            (true, "Scheduled", format!("{} of {wanted} members are bound", job.members.bound))
        } else {
            let Some(reason) = &job.reason else { return };
            if !matches!(reason.class, ReasonClass::Busy | ReasonClass::Reserved | ReasonClass::Unsatisfiable)
            {
                return;
            }
            (false, "Unschedulable", reason.text())
        };
        if !self.announced.tell_group(&group.uid, scheduled, reason) {
            return;
        }
        self.work.effects.push(Effect::GroupScheduled { group, scheduled, reason, message });
    }

    fn tell_status(&mut self, job: &Job, group: ObjectRef) {
        let pods: Vec<&Arc<PodSpec>> = job.pods.iter().filter_map(|uid| self.delivered.pod(uid)).collect();
        let count = |phase: Phase| {
            u32::try_from(pods.iter().filter(|pod| pod.phase == phase).count()).unwrap_or(u32::MAX)
        };
        let (running, succeeded) = (count(Phase::Running), count(Phase::Succeeded));
        let wanted = job.members.wanted.unwrap_or(u32::MAX);
        let phase = match job.state {
            JobState::Gathering => "Pending",
            JobState::Completed => "Finished",
            JobState::Failed | JobState::Cancelled => "Failed",
            JobState::Running if running.saturating_add(succeeded) >= wanted => "Running",
            JobState::Running if job.members.bound.saturating_add(succeeded) >= wanted => "Scheduled",
            JobState::Releasing => "Running",
            _ => "Scheduling",
        };
        let owner = pods.iter().find_map(|pod| pod.controller.as_ref());
        let status = GroupStatus {
            phase,
            scheduled: job.members.bound,
            running,
            succeeded,
            failed: count(Phase::Failed),
            occupied_by: owner.map(|owner| format!("{}/{}", job.key.namespace, owner.name)),
        };
        if self.announced.tell_status(&group.uid, &status) {
            self.work.effects.push(Effect::GroupStatus { group, status });
        }
    }

    /// The PodGroup object of a job.
    pub(super) fn group_of(&self, job: &Job) -> Option<Arc<GroupSpec>> {
        let uid: &SharedStr =
            job.pods.iter().find_map(|pod| self.belonging.membership(pod)?.group.as_ref())?;
        self.delivered.group(uid).cloned()
    }
}
