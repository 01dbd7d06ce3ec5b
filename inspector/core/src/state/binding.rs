//! Sending members to their nodes, and what becomes of the bindings.

use std::sync::Arc;

use crate::event::{BindOutcome, Effect};
use crate::inventory::{Hold, HoldKind};
use crate::matcher::gang::Placement;
use crate::model::{AllocationRecord, PodSpec, Text};
use crate::state::owed::Losses;
use crate::state::{Job, JobId, JobState, Reason, ReasonClass, State, members};

/// A member that was sent to a node and was not seen there yet.
#[derive(Clone, Debug)]
pub(super) struct Assumed {
    pub node: Text,
    pub job: JobId,
    attempts: u32,
    retry_at: Option<i64>,
    record: AllocationRecord,
}

impl State {
    /// The gang starts: every member that has a slot is held on its node and sent there.
    pub(super) fn start(&mut self, id: JobId, placement: &Placement) {
        let Some(job) = self.jobs.get(&id).cloned() else { return };
        let roster = self.roster(&job);
        let Some(pods) = roster.starters() else { return };
        let now = self.now;
        self.dequeue(&job);
        if let Some(job) = self.job_mut(id) {
            job.started_at = Some(now);
            job.planned_end = job.end_when_started_at(now);
            job.waits_for.clear();
            job.losses = Losses::default();
        }
        let Some(job) = self.jobs.get(&id).cloned() else { return };
        self.send(&job, pods, placement);
        self.settle(id, JobState::Binding, None, false);
        self.timers.insert((now.saturating_add(self.settings.bind_deadline), id));
        self.dirty.insert(id);
    }

    /// Holds a node for each of these members and asks for the bindings. Where the placement has fewer slots of a shape
    /// than there are such members, the first of them in their order get them.
    pub(super) fn send(&mut self, job: &Job, pods: &[Arc<PodSpec>], placement: &Placement) {
        let shapes = members::shapes(pods);
        let mut nodes: Vec<Vec<Text>> = vec![Vec::new(); shapes.len()];
        for slot in &placement.slots {
            if let Some(nodes) = nodes.get_mut(slot.shape as usize) {
                nodes.extend(std::iter::repeat_n(slot.node.clone(), slot.count as usize));
            }
        }
        let mut next: Vec<_> = nodes.into_iter().map(Vec::into_iter).collect();
        for pod in pods {
            let needs = members::needs(pod);
            let shape = shapes.iter().position(|shape| {
                shape.needs == needs && shape.constraint == pod.constraint && shape.ports == pod.ports
            });
            let Some(node) = shape.and_then(|shape| next.get_mut(shape)?.next()) else { continue };
            let record = AllocationRecord {
                job: job.key.object_name().into(),
                start: job.started_at.unwrap_or(self.now),
                planned_end: job.planned_end,
                size: job.members.wanted.unwrap_or(1),
            };
            let hold = Hold {
                needs,
                ports: pod.ports.clone(),
                from: self.now,
                until: job.planned_end,
                kind: HoldKind::Assumed,
                permanent: false,
                job: Some(job.id.0),
            };
            self.inventory.hold(pod.uid.clone(), &node, hold);
            let assumed = Assumed {
                node: node.clone(),
                job: job.id,
                attempts: 0,
                retry_at: None,
                record: record.clone(),
            };
            self.assumed.insert(pod.uid.clone(), assumed);
            self.effects.push(Effect::Bind { pod: pod.object(), node, record });
        }
    }

    pub(super) fn bind_answered(&mut self, uid: &Text, outcome: BindOutcome) {
        let Some(assumed) = self.assumed.get(uid).cloned() else { return };
        self.dirty.insert(assumed.job);
        let Some(pod) = self.pods.get(uid).cloned() else { return };
        match outcome {
            BindOutcome::Done => self.effects.push(Effect::Note {
                regarding: pod.object(),
                warning: false,
                reason: "Scheduled",
                action: "Binding",
                note: format!("Successfully assigned {}/{} to {}", pod.namespace, pod.name, assumed.node),
            }),
            BindOutcome::Gone(_) => {
                self.assumed.remove(uid);
                self.inventory.release(uid);
                self.unbindable.insert(uid.clone());
            }
            // The watch will show it there; until then its share is held where it is.
            BindOutcome::Elsewhere(node) => {
                let hold = Hold {
                    needs: members::needs(&pod),
                    ports: pod.ports.clone(),
                    from: self.now,
                    until: assumed.record.planned_end,
                    kind: HoldKind::Assumed,
                    permanent: false,
                    job: Some(assumed.job.0),
                };
                self.inventory.hold(uid.clone(), &node, hold);
                self.assumed.insert(uid.clone(), Assumed { node, retry_at: None, ..assumed });
            }
            BindOutcome::Transient(text) | BindOutcome::Refused(text) => {
                let wait = 1_i64 << assumed.attempts.min(5);
                let retry_at = self.now.saturating_add(wait);
                let attempts = assumed.attempts.saturating_add(1);
                let job = assumed.job;
                self.timers.insert((retry_at, job));
                self.assumed.insert(uid.clone(), Assumed { attempts, retry_at: Some(retry_at), ..assumed });
                if let Some(job) = self.job_mut(job) {
                    let text = format!("binding Pod {} failed: {text}", pod.name);
                    job.reason = Some(Reason { class: ReasonClass::BindFailed, text, details: Vec::new() });
                }
            }
        }
    }

    /// Sends again what failed to bind, and gives up what took too long.
    pub(super) fn retry_binds(&mut self, job: &Job) {
        let mine: Vec<(Text, Assumed)> = job
            .pods
            .iter()
            .filter_map(|uid| self.assumed.get(uid).map(|assumed| (uid.clone(), assumed.clone())))
            .collect();
        if mine.is_empty() {
            return;
        }
        let deadline = job.state_since.saturating_add(self.settings.bind_deadline);
        if job.state == JobState::Binding && deadline <= self.now {
            self.give_up(job, &mine);
            return;
        }
        for (uid, assumed) in mine {
            if assumed.retry_at.is_some_and(|at| at <= self.now)
                && let Some(pod) = self.pods.get(&uid)
            {
                let (node, record) = (assumed.node.clone(), assumed.record.clone());
                self.effects.push(Effect::Bind { pod: pod.object(), node, record });
                self.assumed.insert(uid, Assumed { retry_at: None, ..assumed });
            }
        }
    }

    /// The bind deadline is over. Nothing bound: the job waits again. Some bound: Pods with a controller are
    /// deleted so that the gang gathers anew; bare Pods would be lost for good, so they stay and are a finding.
    fn give_up(&mut self, job: &Job, in_flight: &[(Text, Assumed)]) {
        for (uid, _) in in_flight {
            self.assumed.remove(uid);
            self.inventory.release(uid);
        }
        let bound: Vec<Arc<PodSpec>> = job
            .pods
            .iter()
            .filter_map(|uid| self.pods.get(uid))
            .filter(|pod| pod.node.is_some() && !pod.phase.ended() && !pod.deleting)
            .cloned()
            .collect();
        if bound.is_empty() {
            if let Some(job) = self.job_mut(job.id) {
                job.started_at = None;
                job.planned_end = None;
            }
        } else if bound.iter().all(|pod| pod.controller.is_some()) {
            let why = format!(
                "only {} of {} members could be bound within {} s: deleted so that the gang can gather again",
                bound.len(),
                job.members.wanted.unwrap_or(0),
                self.settings.bind_deadline
            );
            for pod in bound {
                self.effects.push(Effect::Note {
                    regarding: pod.object(),
                    warning: true,
                    reason: "GangReleased",
                    action: "Releasing",
                    note: why.clone(),
                });
                self.effects.push(Effect::Delete { object: pod.object(), why: why.clone() });
            }
        }
    }
}
