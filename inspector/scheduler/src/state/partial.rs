//! Partially bound gangs: how long they are tolerated, and what happens then.
//!
//! Everything needed after a restart is derived from the bound Pods: start and size of their gang (allocation record),
//! when the first of them was bound (`PodScheduled`), and whether they were released (`DisruptionTarget`).

use std::sync::Arc;

use crate::event::{Effect, LET_GO};
use crate::job::{Binds, Job, JobId};
use crate::model::{PodSpec, SharedStr};
use crate::queue::OnPartialBind;
use crate::state::State;
use crate::state::assumed::Assumed;
use crate::state::let_go::LetGo;

/// After this many rejections without any member being bound, a gang releases its nodes before its deadline.
const REFUSALS_MAX: u32 = 6;
/// Seconds until a released gang is retried: initially, and at most.
const PAUSE: i64 = 30;
const PAUSE_MAX: i64 = 3600;
/// Seconds after a restart during which nothing is released, because results of bindings may still arrive.
const GRACE: i64 = 10;
/// Seconds until a released Pod that still exists is evicted again (a `PodDisruptionBudget` may have prevented it).
const AGAIN: i64 = 30;

/// A partially bound start.
struct HalfBound {
    /// When the first member was bound; if none was, when the bindings were sent.
    since: i64,
    bound: Vec<Arc<PodSpec>>,
    size: u32,
    /// Consecutive rejections of the member that was rejected most often.
    refusals: u32,
}

impl State {
    /// Seconds that a gang may be partially bound: its PodGroup's `scheduleTimeoutSeconds`, or the configured value.
    pub(super) fn bind_deadline(&self, job: &Job) -> i64 {
        let own = self.group_of(job).and_then(|group| group.schedule_timeout);
        own.unwrap_or(self.settings.bind_deadline)
    }

    /// Releases what took too long to bind, and schedules the next check.
    pub(super) fn check_partial(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(id).cloned() else { return };
        if job.state.ended() {
            return;
        }
        self.evict_again(&job);
        let Some(half) = self.half_bound(&job) else { return self.check_joining_pins(&job) };
        let deadline = half.since.saturating_add(self.bind_deadline(&job));
        let deadline = self.after_grace(deadline);
        let hopeless =
            (half.bound.is_empty() && half.refusals >= REFUSALS_MAX) || self.pinned_to_deleted_node(&job);
        if deadline > self.now && !hopeless {
            self.waiting.look_at(deadline, id);
            return;
        }
        let Some(job) = self.jobs.get(id).cloned() else { return };
        let irrevocable = !half.bound.is_empty() || !self.pinned(&job).is_empty();
        if irrevocable && self.on_partial_bind(&job) == OnPartialBind::Hold {
            self.hold_partial(&job, &half);
        } else {
            self.give_up(&job, &half);
        }
    }

    /// This deadline, but not right after a restart.
    pub(super) fn after_grace(&self, deadline: i64) -> i64 {
        deadline.max(self.synced_at.saturating_add(GRACE))
    }

    pub(super) fn on_partial_bind(&self, job: &Job) -> OnPartialBind {
        let queue = self.settings.queues.iter().find(|queue| queue.name == job.queue);
        let set = queue.and_then(|queue| queue.on_partial_bind).or(self.settings.on_partial_bind);
        set.unwrap_or_else(|| {
            let mut live =
                job.pods.iter().filter_map(|uid| self.delivered.pod(uid)).filter(|pod| !pod.phase.ended());
            if live.all(|pod| pod.controller.is_some()) {
                OnPartialBind::Release
            } else {
                OnPartialBind::Hold
            }
        })
    }

    /// The job's start, if some of its members are not bound.
    fn half_bound(&mut self, job: &Job) -> Option<HalfBound> {
        let pods: Vec<Arc<PodSpec>> =
            job.pods.iter().filter_map(|uid| self.delivered.pod(uid)).cloned().collect();
        let start_of = |pod: &Arc<PodSpec>| pod.record.as_ref().map(|record| record.start);
        let there = |pod: &&Arc<PodSpec>| {
            pod.node.is_some() && !pod.deleting && self.bindings.let_go(&pod.uid).is_none()
        };
        let of_last_start = |start: i64| pods.iter().filter(move |pod| start_of(pod) == Some(start));
        let last = pods.iter().filter(there).filter(|pod| !pod.phase.ended()).filter_map(start_of).max();
        let failing =
            |uid: &SharedStr| self.bindings.assumed(uid).map(|assumed| (assumed.refusals(), assumed.since()));
        let Some(start) = last else {
            let in_flight: Vec<_> = job.pods.iter().filter_map(failing).collect();
            return Some(HalfBound {
                since: in_flight.iter().map(|(_, since)| *since).min()?,
                refusals: in_flight.iter().map(|(refusals, _)| *refusals).max()?,
                bound: Vec::new(),
                size: job.members.wanted.unwrap_or(1),
            });
        };
        if job.binds.complete == Some(start) {
            return None;
        }
        let bound: Vec<_> = of_last_start(start).filter(there).cloned().collect();
        let records = bound.iter().filter_map(|pod| pod.record.as_ref());
        let size = records.map(|record| record.size).max().unwrap_or(1);
        if bound.len() >= size as usize {
            if let Some(job) = self.jobs.get_mut(job.id) {
                let Binds { let_go, size, .. } = job.binds;
                job.binds = Binds { complete: Some(start), let_go, size, ..Binds::default() };
            }
            return None;
        }
        // A member created later is a replacement.
        let waits = |pod: &&Arc<PodSpec>| {
            pod.node.is_none()
                && pod.created <= start
                && !pod.deleting
                && !pod.phase.ended()
                && !self.is_gated(pod)
        };
        let mut refusals = None;
        for pod in pods.iter().filter(waits) {
            refusals = refusals.max(Some(failing(&pod.uid).map_or(0, |(refusals, _)| refusals)));
        }
        let since = bound.iter().filter_map(|pod| pod.scheduled_at).min().unwrap_or(start);
        Some(HalfBound { since, bound, size, refusals: refusals? })
    }

    /// The deadline has expired and the gang is held: reported once.
    fn hold_partial(&mut self, job: &Job, half: &HalfBound) {
        if job.binds.held {
            return;
        }
        let text = format!(
            "{}; the bound members are kept: delete the job, or fix what prevents binding",
            self.what_is_bound(job, half)
        );
        for pod in self.live_members(job) {
            self.warn(&pod, "GangHeld", text.clone());
        }
        if let Some(job) = self.jobs.get_mut(job.id) {
            job.binds.held = true;
        }
    }

    /// Releases all members, bound or not, so that none continues alone; bound ones are evicted.
    fn give_up(&mut self, job: &Job, half: &HalfBound) {
        let given_up = job.binds.given_up.saturating_add(1);
        let pause = PAUSE.checked_shl(given_up - 1).filter(|pause| (PAUSE..PAUSE_MAX).contains(pause));
        let pause = pause.unwrap_or(PAUSE_MAX);
        let until = self.now.saturating_add(pause);
        let text = self.what_is_bound(job, half);
        let pinned = self.pinned(job);
        if !half.bound.is_empty() || !pinned.is_empty() {
            let text = format!("{text}; releasing all members: the gang is retried once it is complete");
            for pod in self.live_members(job) {
                self.warn(&pod, "GangReleased", text.clone());
            }
        }
        for uid in &job.pods {
            if self.drop_assumed(uid).is_some() {
                self.inventory.release(uid);
            }
        }
        let irrevocable = || half.bound.iter().chain(&pinned);
        let start = irrevocable().filter_map(|pod| pod.record.as_ref()).map(|record| record.start).max();
        if let Some(job) = self.jobs.get_mut(job.id) {
            job.started_at = None;
            job.planned_end = None;
            job.binds.given_up = given_up;
            job.binds.paused_until = Some(until);
            job.binds.let_go = start.max(job.binds.let_go);
            job.binds.held = false;
        }
        self.reconsider_refusals(job, &self.live_members(job));
        self.waiting.incomplete.remove(&job.id);
        self.waiting.look_at(until, job.id);
        self.work.dirty.insert(job.id);
        for pod in irrevocable().filter(|pod| !pod.phase.ended()) {
            self.evict(pod);
        }
    }

    /// A Pod of a released start may turn out to be bound, and a released Pod may still exist.
    fn evict_again(&mut self, job: &Job) {
        for uid in &job.pods {
            let Some(pod) = self.delivered.pod(uid).cloned() else { continue };
            let waits = pod.node.is_none() && pod.awaits_binding().is_none();
            if waits || pod.deleting || pod.phase.ended() {
                continue;
            }
            let ours = pod.disruption.as_deref() == Some(LET_GO);
            let late = job.binds.gave_up(&pod);
            match self.bindings.let_go(uid) {
                None if ours || late => self.evict(&pod),
                Some(let_go) if let_go.again <= self.now => self.evict(&pod),
                _ => {}
            }
        }
    }

    pub(super) fn evict(&mut self, pod: &PodSpec) {
        let again = self.now.saturating_add(AGAIN);
        let since = self.bindings.let_go(&pod.uid).map_or(self.now, |let_go| let_go.since);
        self.bindings.set_let_go(pod.uid.clone(), LetGo { since, again });
        if let Some(job) = self.belonging.job_of(&pod.uid) {
            self.waiting.look_at(again, job);
            self.work.dirty.insert(job);
        }
        let why = "the gang could only be partially bound".to_owned();
        self.work.effects.push(Effect::Evict { pod: pod.object(), why });
    }

    /// Repeated rejections, for the audit.
    pub(super) fn refused_bindings(&self, job: &Job) -> Option<String> {
        if job.state.ended() {
            return None;
        }
        let most = job
            .pods
            .iter()
            .filter_map(|uid| self.bindings.assumed(uid))
            .map(Assumed::refusals)
            .max()
            .unwrap_or(0);
        let why = job.binds.why.as_ref().filter(|_| job.binds.given_up > 0 || most >= REFUSALS_MAX)?;
        let tried = if job.binds.given_up > 0 {
            format!("failed {} times; retried after up to {PAUSE_MAX} s", job.binds.given_up)
        } else {
            format!("rejected {most} times; retried every few minutes")
        };
        Some(format!(
            "{} ({tried}): check admission policies, webhooks and quotas for pods/binding",
            why.text()
        ))
    }

    /// Released Pods that still exist, for the audit.
    pub(super) fn not_evicted(&self, job: &Job) -> Option<String> {
        let stays = |pod: &&Arc<PodSpec>| {
            let late = |let_go: &LetGo| let_go.since.saturating_add(AGAIN) < self.now;
            !pod.deleting && self.bindings.let_go(&pod.uid).is_some_and(late)
        };
        let mut pods = job.pods.iter().filter_map(|uid| self.delivered.pod(uid)).filter(stays);
        let (first, more) = (pods.next()?, pods.count());
        let who = match more {
            0 => format!("Pod {} was", first.name),
            more => format!("Pod {} and {more} more were", first.name),
        };
        Some(format!(
            "{who} released because the gang could only be partially bound, but can't be evicted: check PodDisruptionBudgets, or delete the Pods"
        ))
    }

    fn what_is_bound(&self, job: &Job, half: &HalfBound) -> String {
        let why = job.binds.why.as_ref().map_or_else(String::new, |why| format!(": {}", why.text()));
        let (bound, deadline) = (half.bound.len(), self.bind_deadline(job));
        format!("only {bound} of {} members could be bound within {deadline} s{why}", half.size)
    }

    fn live_members(&self, job: &Job) -> Vec<Arc<PodSpec>> {
        let pods = job.pods.iter().filter_map(|uid| self.delivered.pod(uid));
        pods.filter(|pod| !pod.phase.ended() && self.is_ours(pod)).cloned().collect()
    }

    pub(super) fn warn(&mut self, pod: &PodSpec, reason: &'static str, note: String) {
        self.work.effects.push(Effect::Note {
            regarding: pod.object(),
            warning: true,
            reason,
            action: "Binding",
            note,
        });
    }
}
