//! What the cluster is told: conditions on Pods and PodGroups, Events. Written when a class of reason or the
//! size wanted changes, never when only a time or a count in it does.

use std::sync::Arc;

use crate::event::Effect;
use crate::model::{GroupApi, PodSpec, Text};
use crate::state::{Job, JobId, JobState, ReasonClass, State};

/// Seconds a group may gather before its Pods' conditions say so.
const GATHERING_QUIET: i64 = 5;

/// What a Pod's PodScheduled condition was last made to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    class: ReasonClass,
    wanted: Option<u32>,
}

impl State {
    /// Writes what changed; called once at the end of a step.
    pub(super) fn tell(&mut self) {
        let changed: Vec<JobId> = std::mem::take(&mut self.changed).into_iter().collect();
        for id in changed {
            let Some(job) = self.jobs.get(&id).cloned() else { continue };
            if job.state.ended() {
                continue;
            }
            self.tell_pods(&job);
            self.tell_group(&job);
        }
    }

    fn tell_pods(&mut self, job: &Job) {
        let Some(reason) = &job.reason else { return };
        let early = job.state_since.saturating_add(GATHERING_QUIET);
        if reason.class == ReasonClass::Gathering && early > self.now {
            self.timers.insert((early, job.id));
            return;
        }
        if matches!(reason.class, ReasonClass::Gated | ReasonClass::Held) {
            return;
        }
        let told = Told { class: told_class(reason.class), wanted: job.members.wanted };
        let condition = self.condition(job, reason.class);
        let mut first = true;
        for uid in &job.pods {
            let Some(pod) = self.pods.get(uid).cloned() else { continue };
            if !waits(&pod)
                || self.assumed.contains_key(uid)
                || self.told.get(uid) == Some(&told)
                || !self.is_ours(&pod)
            {
                continue;
            }
            let news = self.told.insert(uid.clone(), told.clone()).is_some()
                || pod.unscheduled.as_ref().is_none_or(|(reason, _)| **reason != *condition);
            if !news {
                continue;
            }
            self.effects.push(Effect::Unscheduled {
                pod: pod.object(),
                reason: condition,
                message: reason.text.clone(),
            });
            if std::mem::take(&mut first) && worth_an_event(reason.class) {
                self.effects.push(Effect::Note {
                    regarding: pod.object(),
                    warning: true,
                    reason: reason.class.as_str(),
                    action: "Scheduling",
                    note: reason.text.clone(),
                });
            }
        }
    }

    /// The condition's reason. `Unschedulable` is what makes cluster autoscalers add nodes, so it is said only
    /// where nodes could help, and by a limited number of jobs at once.
    fn condition(&self, job: &Job, class: ReasonClass) -> &'static str {
        match class {
            ReasonClass::Busy
            | ReasonClass::Reserved
            | ReasonClass::Unsatisfiable
            | ReasonClass::NodesDown
            | ReasonClass::ConstraintNotMet
            | ReasonClass::DeadlineBeforeStart => {
                let before =
                    self.queue.iter().take(self.settings.unschedulable_max).any(|key| key.6 == job.id);
                if before || !job.state.waiting() { "Unschedulable" } else { "FluxionQueued" }
            }
            ReasonClass::QueueOrder => "FluxionQueued",
            ReasonClass::Gathering => "FluxionGathering",
            ReasonClass::GroupNotFound => "FluxionGroupNotFound",
            ReasonClass::SizesDisagree => "FluxionSizesDisagree",
            ReasonClass::InvalidRequest => "FluxionInvalidRequest",
            ReasonClass::UnsupportedConstraint => "FluxionUnsupportedConstraint",
            ReasonClass::BindFailed => "FluxionBindFailed",
            ReasonClass::Gated | ReasonClass::Held => "FluxionHeld",
        }
    }

    fn tell_group(&mut self, job: &Job) {
        let Some(group) = self.group_of(job) else { return };
        let wanted = job.members.wanted.unwrap_or(u32::MAX);
        let object = group.object();
        if job.state == JobState::Running && job.members.bound >= wanted && !group.scheduled {
            let message = format!("{} of {wanted} members are bound", job.members.bound);
            self.group_told(object, true, "Scheduled", message);
        } else if group.api == GroupApi::Native && !group.scheduled {
            let Some(reason) = &job.reason else { return };
            if matches!(reason.class, ReasonClass::Busy | ReasonClass::Reserved | ReasonClass::Unsatisfiable)
            {
                self.group_told(object, false, "Unschedulable", reason.text.clone());
            }
        }
    }

    fn group_told(
        &mut self,
        group: crate::model::ObjectRef,
        scheduled: bool,
        reason: &'static str,
        message: String,
    ) {
        let told = (scheduled, reason);
        if self.told_groups.get(&group.uid) == Some(&told) {
            return;
        }
        self.told_groups.insert(group.uid.clone(), told);
        self.effects.push(Effect::GroupScheduled { group, scheduled, reason, message });
    }

    /// The PodGroup object of a job.
    pub(super) fn group_of(&self, job: &Job) -> Option<Arc<crate::model::GroupSpec>> {
        let uid: &Text = job.pods.iter().find_map(|pod| self.memberships.get(pod)?.group.as_ref())?;
        self.groups.get(uid).cloned()
    }
}

/// A Pod whose condition is ours to write.
fn waits(pod: &PodSpec) -> bool {
    pod.node.is_none() && pod.gates.is_empty() && !pod.deleting && !pod.phase.ended()
}

/// Classes that differ only in how the plan stands at the moment count as one.
fn told_class(class: ReasonClass) -> ReasonClass {
    match class {
        ReasonClass::Reserved | ReasonClass::NodesDown => ReasonClass::Busy,
        other => other,
    }
}

/// Reasons that somebody has to do something about.
fn worth_an_event(class: ReasonClass) -> bool {
    matches!(
        class,
        ReasonClass::InvalidRequest
            | ReasonClass::SizesDisagree
            | ReasonClass::GroupNotFound
            | ReasonClass::Unsatisfiable
            | ReasonClass::UnsupportedConstraint
            | ReasonClass::DeadlineBeforeStart
            | ReasonClass::BindFailed
    )
}
