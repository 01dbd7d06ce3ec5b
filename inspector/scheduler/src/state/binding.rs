//! Binds members, and processes the API server's responses. Partially bound gangs are handled in `partial`.

use std::sync::Arc;

use fluxion_api::reason::Fact;

use crate::event::{BindOutcome, Effect};
use crate::job::{Job, JobId, JobState, Losses, Reason, ReasonClass};
use crate::model::{AllocationRecord, Pin, PodSpec, SharedStr};
use crate::placement;
use crate::request::{Placement, Request};
use crate::state::State;
use crate::state::assumed::{Assumed, BindFailure};
use crate::state::pod::{avoiding, needs, share};
use crate::state::refused::Refused;

/// A failed binding is retried after 1, 2, 4 … seconds, at most this many …
const RETRY_MAX: i64 = 32;
/// … for this many attempts; permanently rejected ones are then retried less and less often, …
const TRIES: u32 = 12;
/// … but at least every so many seconds.
const RETRY_MAX_LATE: i64 = 600;
/// Transient failures are reported to the Pod from this number on; rejections immediately.
const TOLD_FROM: u32 = 3;

/// Maximum length of a response that is passed on, in characters.
const ANSWER_MAX: usize = 300;

impl Assumed {
    pub(super) fn since(&self) -> i64 {
        self.since
    }

    pub(super) fn record(&self) -> &AllocationRecord {
        &self.record
    }

    /// Number of failed attempts, if it was permanently rejected.
    pub(super) fn refusals(&self) -> u32 {
        if self.failure.as_ref().is_some_and(|failure| failure.refused) { self.failures } else { 0 }
    }

    /// The binding failure to report to the Pod's user.
    pub(super) fn worth_telling(&self) -> Option<&str> {
        let failure = self.failure.as_ref()?;
        (failure.refused || self.failures >= TOLD_FROM).then_some(failure.text.as_str())
    }
}

impl State {
    /// Starts the gang: every member with a slot is held on its node and bound.
    pub(super) fn start(&mut self, id: JobId, placement: &Placement) {
        let Some(job) = self.jobs.get(id).cloned() else { return };
        if self.queued(&job).is_some() {
            return self.resume(id, placement);
        }
        let summary = self.summary(&job);
        let Some(pods) = summary.starters() else { return };
        let now = self.now;
        self.dequeue(&job);
        if let Some(job) = self.jobs.get_mut(id) {
            job.started_at = Some(now);
            job.planned_end = job.end_when_started_at(now);
            job.waits_for.clear();
            job.losses = Losses::default();
            job.binds.size = summary.start_size();
        }
        let Some(job) = self.jobs.get(id).cloned() else { return };
        self.send(&job, pods, placement);
        self.settle(id, JobState::Binding, None, false);
        self.waiting.look_at(now.saturating_add(self.bind_deadline(&job)), id);
        self.work.dirty.insert(id);
    }

    /// Holds a node for each of these members and emits their bindings. If the placement has fewer slots of a shape
    /// than there are members, the first ones in order get them.
    pub(super) fn send(&mut self, job: &Job, pods: &[Arc<PodSpec>], placement: &Placement) {
        let shapes = self.shapes(pods);
        let mut nodes: Vec<Vec<SharedStr>> = vec![Vec::new(); shapes.len()];
        for slot in &placement.slots {
            if let Some(nodes) = nodes.get_mut(slot.shape as usize) {
                nodes.extend(std::iter::repeat_n(slot.node.clone(), slot.count as usize));
            }
        }
        let mut next: Vec<_> = nodes.into_iter().map(Vec::into_iter).collect();
        // A member that joins a started gang, after a failure or as a later completion, has its own start.
        let planned_end = job.end_when_started_at(self.now);
        let start = self.start_of_gang(job).unwrap_or(self.now);
        let mut placed = Vec::with_capacity(pods.len());
        for pod in pods {
            let (needs, (constraint, peer)) = (needs(pod), self.placing(pod));
            let shape = shapes.iter().position(|shape| {
                shape.needs == needs
                    && shape.constraint == constraint
                    && shape.ports == pod.ports
                    && shape.peer == peer
                    && shape.preferences == pod.preferences
            });
            let Some(node) = shape.and_then(|shape| next.get_mut(shape)?.next()) else { continue };
            placed.push((pod.clone(), node));
        }
        let mut claims = self.prepare_claims(&placed);
        // Those that start together are bound together.
        let sent = claims.is_empty();
        for (pod, node) in &placed {
            let record = AllocationRecord {
                job: job.key.object_name().into(),
                start,
                planned_end,
                size: job.binds.size.or(job.members.wanted).unwrap_or(1),
                pin: self.at_gate(pod).then(|| Pin { node: node.clone(), at: self.now }),
            };
            let release = self.release_of_member(job, record.start, record.planned_end);
            self.inventory.hold(pod.uid.clone(), node, share(pod, job.id, record.start, release));
            let assumed = Assumed {
                node: node.clone(),
                job: job.id,
                failures: 0,
                failure: None,
                retry_at: None,
                record: record.clone(),
                since: self.since_selected(pod),
                done: false,
                sent,
                claims: claims.remove(&pod.uid).unwrap_or_default(),
            };
            self.bindings.assume(pod.uid.clone(), assumed);
            if sent {
                self.work.effects.push(Effect::Bind { pod: pod.object(), node: node.clone(), record });
            }
        }
    }

    pub(super) fn bind_answered(&mut self, uid: &SharedStr, outcome: BindOutcome) {
        let Some(assumed) = self.bindings.assumed(uid).cloned() else { return };
        self.work.dirty.insert(assumed.job);
        let Some(pod) = self.delivered.pod(uid).cloned() else { return };
        match outcome {
            BindOutcome::Done => {
                if !assumed.done {
                    if assumed.record.pin.is_some() {
                        self.pinned_to(&pod, &assumed.node);
                    } else {
                        self.bound_to(&pod, &assumed.node);
                    }
                    self.bindings.assume(uid.clone(), Assumed { done: true, retry_at: None, ..assumed });
                }
            }
            BindOutcome::Gone(_) => {
                self.bindings.give_up(uid);
                self.inventory.release(uid);
            }
            // The watch will report it there; until then, its share is held where it is.
            BindOutcome::Elsewhere(node) => {
                let (start, end) = (assumed.record.start, assumed.record.planned_end);
                let release = self.jobs.get(assumed.job).map(|job| self.release_of_member(job, start, end));
                let release = release.unwrap_or((end, false));
                self.inventory.hold(uid.clone(), &node, share(&pod, assumed.job, start, release));
                self.bindings.assume(uid.clone(), Assumed { node, retry_at: None, ..assumed });
            }
            BindOutcome::Transient(text) => self.bind_failed(&pod, assumed, &text, false),
            BindOutcome::Refused(text) => self.bind_failed(&pod, assumed, &text, true),
        }
    }

    /// The Pod was observed on a node. The API server's response or the watch may arrive first; the Event is written
    /// once in either case.
    pub(super) fn seen_bound(&mut self, pod: &PodSpec) {
        let Some(node) = &pod.node else { return };
        let Some(assumed) = self.bindings.take_assumed(&pod.uid) else { return };
        if assumed.record.pin.is_some() {
            // kube-scheduler has written an Event.
            self.node_takes(&pod.namespace, node);
        } else if !assumed.done && assumed.node == *node {
            self.bound_to(pod, node);
        }
    }

    fn pinned_to(&mut self, pod: &PodSpec, node: &SharedStr) {
        self.work.effects.push(Effect::Note {
            regarding: pod.object(),
            warning: false,
            reason: "Pinned",
            action: "Binding",
            note: format!("Pinned {}/{} to {node}, for kube-scheduler to bind it", pod.namespace, pod.name),
        });
    }

    fn bound_to(&mut self, pod: &PodSpec, node: &SharedStr) {
        self.node_takes(&pod.namespace, node);
        self.work.effects.push(Effect::Note {
            regarding: pod.object(),
            warning: false,
            reason: "Scheduled",
            action: "Binding",
            note: format!("Successfully assigned {}/{} to {node}", pod.namespace, pod.name),
        });
    }

    fn bind_failed(&mut self, pod: &PodSpec, assumed: Assumed, answer: &str, refused: bool) {
        let id = assumed.job;
        let failures = assumed.failures.saturating_add(1);
        let late = if refused { assumed.failures.saturating_sub(TRIES) } else { 0 };
        let wait = (1_i64 << assumed.failures.min(30)).min(RETRY_MAX) << late.min(10);
        let retry_at = self.now.saturating_add(wait.min(RETRY_MAX_LATE));
        self.waiting.look_at(retry_at, id);
        if refused {
            self.node_refused(&pod.namespace, &assumed.node, id, Refused::Binding);
        }
        let answer = fluxion_text::shorten(answer, ANSWER_MAX);
        let (name, node) = (pod.name.to_string(), assumed.node.to_string());
        let failed = Fact::BindFailed { pod: name, node, answer: answer.into_owned() };
        let failure = Some(BindFailure { text: failed.text(), refused });
        let assumed = Assumed { failures, failure, retry_at: Some(retry_at), ..assumed };
        self.bindings.assume(pod.uid.clone(), assumed);
        if let Some(job) = self.jobs.get_mut(id) {
            job.binds.why = Some(failed.clone());
            job.reason = Some(Reason::new(ReasonClass::BindFailed, failed));
        }
    }

    /// Retries failed bindings; rejected ones on another node, if possible.
    pub(super) fn retry_binds(&mut self, job: &Job) {
        let due: Vec<(SharedStr, Assumed)> = job
            .pods
            .iter()
            .filter_map(|uid| self.bindings.assumed(uid).map(|assumed| (uid.clone(), assumed.clone())))
            .filter(|(_, assumed)| assumed.retry_at.is_some_and(|at| at <= self.now))
            .collect();
        for (uid, assumed) in due {
            let Some(pod) = self.delivered.pod(&uid).cloned() else { continue };
            let refused = assumed.failure.as_ref().is_some_and(|failure| failure.refused);
            let other = if refused { self.another_node(job, &pod, &assumed.node) } else { None };
            if let Some(placement) = other {
                self.inventory.release(&uid);
                self.inventory.clear_reservations();
                self.send(job, std::slice::from_ref(&pod), &placement);
                if let Some(sent) = self.bindings.assumed_mut(&uid) {
                    let kept = (assumed.failures, assumed.failure, assumed.since);
                    (sent.failures, sent.failure, sent.since) = kept;
                }
                // Reservations of others are recomputed.
                self.pass.wanted = true;
            } else {
                // Its resources are kept: without it, the gang could not become complete.
                let (node, record) = (assumed.node.clone(), assumed.record.clone());
                self.work.effects.push(Effect::Bind { pod: pod.object(), node, record });
                self.bindings.assume(uid, Assumed { retry_at: None, ..assumed });
            }
        }
    }

    /// A node for a member whose binding was rejected, other than nodes that reject it.
    fn another_node(&self, job: &Job, pod: &Arc<PodSpec>, refused: &SharedStr) -> Option<Placement> {
        let summary = self.summary(job);
        let mut job = job.clone();
        job.pods.remove(&pod.uid);
        let job = &job;
        let domain = summary.level.as_ref().and_then(|level| self.domain_of(job, level));
        let queue = self.settings.queues.iter().find(|queue| queue.name == job.queue);
        let mut avoided = self.avoided(job);
        avoided.insert(refused.clone());
        let request = Request {
            shapes: avoiding(self.shapes(std::slice::from_ref(pod)), &avoided),
            minimum: None,
            level: summary.level,
            domain,
            duration: job.planned_end.map(|end| end.saturating_sub(self.now).max(1)),
        };
        let mut inventory = self.inventory.clone();
        inventory.clear_reservations();
        inventory.release(&pod.uid);
        let policy = queue.map(|queue| queue.node_policy).unwrap_or_default();
        placement::place_now(&inventory, &request, self.now, policy).ok()
    }
}
