//! Pods that kube-scheduler binds, after we have placed them: they wait at our scheduling gate, and the write that removes
//! it pins them to their node. Until kube-scheduler has bound them, they are being bound, and hold their node.
//!
//! A pin can't be changed, so a Pod that kube-scheduler does not bind can only be recreated by its controller.

use std::sync::Arc;

use fluxion_api::reason::Fact;

use crate::event::{Effect, LET_GO};
use crate::job::{Job, JobId, Reason, ReasonClass};
use crate::marks::GATE;
use crate::model::{Pin, PodSpec, SharedStr};
use crate::queue::OnPartialBind;
use crate::state::State;
use crate::state::assumed::Assumed;
use crate::state::pod::share;

/// Maximum length of kube-scheduler's message in a reason, in characters.
const MESSAGE_MAX: usize = 300;

impl PodSpec {
    fn has_our_gate(&self) -> bool {
        self.gates.iter().any(|gate| &**gate == GATE)
    }

    /// The node to which we have pinned it. A record that the Pod's affinity contradicts was not written by us.
    pub(super) fn pin(&self) -> Option<&Pin> {
        let pin = self.record.as_ref()?.pin.as_ref()?;
        (!self.has_our_gate() && self.constraint.requires_node(&pin.node)).then_some(pin)
    }

    /// Pinned, and not bound yet.
    pub(super) fn awaits_binding(&self) -> Option<&Pin> {
        self.pin().filter(|_| self.node.is_none() && !self.phase.ended())
    }
}

impl State {
    /// Whether we place this Pod.
    pub(super) fn is_ours(&self, pod: &PodSpec) -> bool {
        self.binds_itself(pod) || pod.has_our_gate() || pod.pin().is_some()
    }

    fn binds_itself(&self, pod: &PodSpec) -> bool {
        self.settings.scheduler_names.contains(&pod.scheduler_name)
    }

    /// Whether placing it includes removing our scheduling gate, the only one left.
    pub(super) fn at_gate(&self, pod: &PodSpec) -> bool {
        pod.gates.len() == 1 && pod.has_our_gate() && !self.binds_itself(pod)
    }

    /// The scheduling gates that others have to remove before it can be placed.
    pub(super) fn foreign_gates<'a>(&self, pod: &'a PodSpec) -> impl Iterator<Item = &'a SharedStr> {
        let ours = !self.binds_itself(pod);
        pod.gates.iter().filter(move |gate| !(ours && &***gate == GATE))
    }

    pub(super) fn is_gated(&self, pod: &PodSpec) -> bool {
        self.foreign_gates(pod).next().is_some()
    }

    /// The first of these Pods that kube-scheduler is about to place by itself, although its job is ours.
    pub(super) fn slipped_by<'a>(&self, pods: &'a [Arc<PodSpec>]) -> Option<&'a PodSpec> {
        let open = |pod: &&Arc<PodSpec>| {
            pod.node.is_none() && !pod.deleting && !pod.phase.ended() && pod.gates.is_empty()
        };
        pods.iter().filter(open).find(|pod| !self.is_ours(pod)).map(AsRef::as_ref)
    }

    /// Somebody else removed our gate.
    pub(super) fn note_removed_gate(&mut self, old: &PodSpec, pod: &PodSpec) {
        let open = pod.node.is_none() && !pod.deleting && !pod.phase.ended();
        if old.has_our_gate() && open && !self.is_ours(pod) {
            let note = format!(
                "scheduling gate {GATE} was removed by another client: kube-scheduler places the Pod, regardless of the rest of its job"
            );
            self.work.effects.push(Effect::Note {
                regarding: pod.object(),
                warning: true,
                reason: "GateRemoved",
                action: "Scheduling",
                note,
            });
        }
    }

    /// Holds the node of a pinned Pod, also if that was done by another inspector or before a restart, and follows what
    /// kube-scheduler reports about it.
    pub(super) fn follow_pinned(&mut self, id: JobId, pod: &Arc<PodSpec>) {
        let Some(pin) = pod.awaits_binding().cloned() else { return };
        let Some(job) = self.jobs.get(id).cloned() else { return };
        let released = self.bindings.let_go(&pod.uid).is_some() || pod.disruption.as_deref() == Some(LET_GO);
        if released || job.state.ended() || job.binds.gave_up(pod) {
            return;
        }
        if pod.deleting {
            // No API server accepts its binding any more.
            self.drop_assumed(&pod.uid);
            self.inventory.release(&pod.uid);
            return;
        }
        let known = self.bindings.assumed(&pod.uid).filter(|assumed| assumed.node == pin.node);
        if known.is_none_or(|assumed| !assumed.done) {
            self.hold_pinned(&job, pod, &pin);
        }
        let refused = pod.unscheduled.as_ref().filter(|(reason, _)| {
            matches!(&**reason, "Unschedulable" | "SchedulerError") && self.bindings.is_assumed(&pod.uid)
        });
        if let Some((_, message)) = refused {
            let message = fluxion_text::shorten(message, MESSAGE_MAX);
            self.not_bound(id, pod, &pin.node, format!("kube-scheduler: {message}"));
        }
    }

    fn hold_pinned(&mut self, job: &Job, pod: &PodSpec, pin: &Pin) {
        let Some(record) = pod.record.clone() else { return };
        let release = self.release_of_member(job, record.start, record.planned_end);
        self.inventory.hold(pod.uid.clone(), &pin.node, share(pod, job.id, record.start, release));
        let assumed = Assumed {
            node: pin.node.clone(),
            job: job.id,
            failures: 0,
            failure: None,
            retry_at: None,
            record,
            since: pin.at.min(self.now),
            done: true,
            sent: true,
            claims: Vec::new(),
        };
        self.bindings.assume(pod.uid.clone(), assumed);
    }

    fn not_bound(&mut self, id: JobId, pod: &PodSpec, node: &SharedStr, answer: String) {
        let failed = Fact::BindFailed { pod: pod.name.to_string(), node: node.to_string(), answer };
        if let Some(job) = self.jobs.get_mut(id) {
            job.binds.why = Some(failed.clone());
            job.reason = Some(Reason::new(ReasonClass::BindFailed, failed));
        }
    }

    /// The job's Pods that are pinned and not bound yet.
    pub(super) fn pinned(&self, job: &Job) -> Vec<Arc<PodSpec>> {
        let waits = |pod: &&Arc<PodSpec>| {
            pod.awaits_binding().is_some() && !pod.deleting && self.bindings.let_go(&pod.uid).is_none()
        };
        job.pods.iter().filter_map(|uid| self.delivered.pod(uid)).filter(waits).cloned().collect()
    }

    /// Whether a Pod is pinned to a deleted node, where it can never be bound.
    pub(super) fn pinned_to_deleted_node(&mut self, job: &Job) -> bool {
        let pinned = self.pinned(job);
        let lost = pinned.iter().find_map(|pod| {
            let node = &pod.awaits_binding()?.node;
            (!self.inventory.has_node(node)).then(|| (pod.clone(), node.clone()))
        });
        let Some((pod, node)) = lost else { return false };
        self.not_bound(job.id, &pod, &node, "the node was deleted".to_owned());
        true
    }

    /// Members that joined a started gang, and are not bound in time: they are recreated if they have a controller.
    pub(super) fn check_joining_pins(&mut self, job: &Job) {
        let deadline = self.bind_deadline(job);
        for pod in self.pinned(job) {
            let Some(pin) = pod.awaits_binding().cloned() else { continue };
            let due = self.after_grace(pin.at.saturating_add(deadline));
            if due > self.now && self.inventory.has_node(&pin.node) {
                self.waiting.look_at(due, job.id);
                continue;
            }
            if !self.inventory.has_node(&pin.node) {
                self.not_bound(job.id, &pod, &pin.node, "the node was deleted".to_owned());
            }
            let why = self.jobs.get(job.id).and_then(|job| job.binds.why.as_ref().map(Fact::text));
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            if pod.controller.is_some() && self.on_partial_bind(job) == OnPartialBind::Release {
                let text =
                    format!("not bound within {deadline} s{why}; evicting the Pod so that it is recreated");
                self.warn(&pod, "GangReleased", text);
                self.drop_assumed(&pod.uid);
                self.inventory.release(&pod.uid);
                self.evict(&pod);
            } else if !job.binds.held {
                let text = format!(
                    "not bound within {deadline} s{why}; its resources are kept: delete the Pod, or fix what prevents binding"
                );
                self.warn(&pod, "GangHeld", text);
                if let Some(job) = self.jobs.get_mut(job.id) {
                    job.binds.held = true;
                }
            }
        }
    }
}
