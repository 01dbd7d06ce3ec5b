//! Reports on jobs: Pod conditions and Events. Written when the class of a reason or the required size changes, never
//! when only a time or a count does; and without flapping.

use crate::event::Effect;
use crate::job::{Job, JobId, ReasonClass};
use crate::model::{ObjectRef, PodSpec};
use crate::state::State;
use crate::state::told::{Said, Saying, Told};

/// Seconds a group may be incomplete before its Pods' conditions say so.
const GATHERING_QUIET: i64 = 5;
/// Seconds that a class must last before it replaces another one for a waiting Pod, and minimum seconds between two
/// writes: otherwise, plans that change with each pass would be reported each time.
const LASTING: i64 = 30;

impl State {
    /// Reports changes; called once at the end of a step.
    pub(super) fn tell(&mut self) {
        let changed: Vec<JobId> = std::mem::take(&mut self.work.changed).into_iter().collect();
        for id in changed {
            let Some(job) = self.jobs.get(id).cloned() else { continue };
            if !job.state.ended() {
                self.tell_unknown_marks(&job);
                self.tell_pods(&job);
                self.store_reservation(&job);
            }
            self.tell_group(&job);
        }
    }

    fn tell_pods(&mut self, job: &Job) {
        let Some(reason) = job.reason.as_ref().filter(|reason| reason.class != ReasonClass::Held) else {
            self.announced.say(job.id, None);
            return;
        };
        let early = job.state_since.saturating_add(GATHERING_QUIET);
        if gathers(reason.class) && early > self.now {
            self.waiting.look_at(early, job.id);
            return;
        }
        let said = Said {
            condition: self.condition(job, reason.class),
            class: told_class(reason.class),
            wanted: job.members.wanted,
        };
        let saying = match self.announced.saying(job.id) {
            Some(saying) if saying.said == said => saying.clone(),
            _ => Saying { said, since: self.now, announced: false },
        };
        self.announced.say(job.id, Some(saying.clone()));
        let mut wake = None;
        let mut news = false;
        for uid in &job.pods {
            let Some(pod) = self.delivered.pod(uid).cloned() else { continue };
            let waits = waits(&pod) && pod.pin().is_none() && self.is_ours(&pod);
            if !waits && !self.at_gate(&pod) {
                continue;
            }
            let (said, message) = match self.bindings.assumed(uid) {
                None => (saying.said.clone(), reason.text()),
                Some(assumed) => match assumed.worth_telling() {
                    Some(text) => (bind_failed(job), text.to_owned()),
                    None => continue,
                },
            };
            match self.due(&pod, &said, saying.since) {
                None => {}
                Some(at) if at > self.now => wake = Some(wake.map_or(at, |wake: i64| wake.min(at))),
                Some(_) => {
                    news = true;
                    self.tell_pod(&pod, said, message);
                }
            }
        }
        if let Some(at) = wake {
            self.waiting.look_at(at, job.id);
        }
        // Without Pods, its owner is told.
        news |= self.queued(job).is_some();
        if news && !saying.announced && worth_announcing(reason.class) {
            self.announce(job, &reason.text());
            self.announced.say(job.id, Some(Saying { announced: true, ..saying }));
        }
    }

    /// When the Pod's condition is to be written; `None`: it is up to date.
    fn due(&mut self, pod: &PodSpec, said: &Said, since: i64) -> Option<i64> {
        let lasting = since.saturating_add(LASTING);
        let Some(told) = self.announced.told(&pod.uid) else {
            // After a restart, an existing condition was written by us, or is not about scheduling.
            return match pod.unscheduled.as_ref().map(|(reason, _)| &**reason) {
                Some(reason) if reason == said.condition => {
                    self.announced.tell(pod.uid.clone(), Told { said: said.clone(), at: self.now });
                    None
                }
                Some(reason) if reason == "Unschedulable" || reason.starts_with("Fluxion") => Some(lasting),
                _ => Some(self.now),
            };
        };
        if told.said == *said {
            return None;
        }
        // A complete gang does not flap, and a failed binding does not have to wait.
        let at_once = gathers(told.said.class) || said.class == ReasonClass::BindFailed;
        Some(if at_once { self.now } else { lasting.max(told.at.saturating_add(LASTING)) })
    }

    fn tell_pod(&mut self, pod: &PodSpec, said: Said, message: String) {
        let (reason, class) = (said.condition, said.class);
        self.announced.tell(pod.uid.clone(), Told { said, at: self.now });
        // The condition of a gated Pod says that it is gated.
        if pod.gates.is_empty() {
            let effect = Effect::Unscheduled { pod: pod.object(), reason, message: message.clone() };
            self.work.effects.push(effect);
        }
        let action = if class == ReasonClass::BindFailed { "Binding" } else { "Scheduling" };
        self.failed_scheduling(pod.object(), action, message);
    }

    /// Informs the objects above the Pods that user action is required.
    fn announce(&mut self, job: &Job, text: &str) {
        let group = self.group_of(job).map(|group| group.object());
        let owner =
            job.object.clone().filter(|object| &*object.kind != "Pod" && Some(object) != group.as_ref());
        for object in owner.into_iter().chain(group) {
            self.failed_scheduling(object, "Scheduling", text.to_owned());
        }
    }

    fn failed_scheduling(&mut self, regarding: ObjectRef, action: &'static str, note: String) {
        self.work.effects.push(Effect::Note {
            regarding,
            warning: true,
            reason: "FailedScheduling",
            action,
            note,
        });
    }

    /// The condition's reason. `Unschedulable` makes cluster autoscalers add nodes, so it is only used if nodes could
    /// help, and for a limited number of jobs at once.
    fn condition(&self, job: &Job, class: ReasonClass) -> &'static str {
        match class {
            // Other nodes would not help.
            ReasonClass::ConstraintNotMet => "FluxionWaitingForVolumes",
            ReasonClass::Busy
            | ReasonClass::Reserved
            | ReasonClass::Unsatisfiable
            | ReasonClass::NodesDown
            | ReasonClass::DeadlineBeforeStart => {
                let before =
                    self.waiting.in_order().take(self.settings.unschedulable_max).any(|key| key.id == job.id);
                if before || !job.state.waiting() { "Unschedulable" } else { "FluxionQueued" }
            }
            ReasonClass::QueueOrder => "FluxionQueued",
            // Gated members don't count yet: the job is Gathering.
            ReasonClass::Gathering | ReasonClass::Gated => "FluxionGathering",
            ReasonClass::GroupNotFound => "FluxionGroupNotFound",
            ReasonClass::SizesDisagree => "FluxionSizesDisagree",
            ReasonClass::InvalidRequest => "FluxionInvalidRequest",
            ReasonClass::UnsupportedConstraint => "FluxionUnsupportedConstraint",
            ReasonClass::BindFailed => BIND_FAILED,
            ReasonClass::Held
            | ReasonClass::DeadlineExceeded
            | ReasonClass::PodFailed
            | ReasonClass::Disrupted
            | ReasonClass::Cancelled => "FluxionHeld",
        }
    }
}

const BIND_FAILED: &str = "FluxionBindFailed";

fn bind_failed(job: &Job) -> Said {
    Said { condition: BIND_FAILED, class: ReasonClass::BindFailed, wanted: job.members.wanted }
}

/// A Pod whose condition we write.
fn waits(pod: &PodSpec) -> bool {
    pod.node.is_none() && pod.gates.is_empty() && !pod.deleting && !pod.phase.ended()
}

/// Members are missing.
fn gathers(class: ReasonClass) -> bool {
    matches!(class, ReasonClass::Gathering | ReasonClass::Gated | ReasonClass::GroupNotFound)
}

/// Classes that only differ by the current plan count as one.
fn told_class(class: ReasonClass) -> ReasonClass {
    match class {
        ReasonClass::Reserved | ReasonClass::NodesDown => ReasonClass::Busy,
        other => other,
    }
}

/// Reasons that require user action.
fn worth_announcing(class: ReasonClass) -> bool {
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
