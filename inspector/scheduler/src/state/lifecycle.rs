//! The lifecycle of a job: created, joined, left, moved between states, finished, removed.

use std::sync::Arc;

use crate::event::Effect;
use crate::inventory::Allocation;
use crate::job::{
    Gone, GroupKey, HISTORY_MAX, HistoryEntry, Job, JobId, JobKey, JobState, Losses, Reason, ReasonClass,
    may_follow,
};
use crate::marks;
use crate::model::{PodSpec, SharedStr};
use crate::record::JournalEntry;
use crate::state::State;
use crate::state::membership::Membership;
use crate::state::waiting::OrderKey;

/// Seconds that a Pod may be without the object of its group before that is recorded in the history.
const MOMENT: i64 = 1;

impl State {
    pub(super) fn create_job(&mut self, pod: &PodSpec, membership: &Membership) -> JobId {
        self.create_job_of(pod.created, pod.priority, &pod.uid, membership)
    }

    /// The UID identifies the job if its group has none.
    pub(super) fn create_job_of(
        &mut self,
        created: i64,
        priority: i32,
        uid: &SharedStr,
        membership: &Membership,
    ) -> JobId {
        let id = self.jobs.next_id();
        let key = job_key(uid, membership);
        self.belonging.activate(membership.key.clone(), id);
        let job = Job {
            object: membership.object.clone(),
            created,
            priority,
            queue: self.settings.queues.first().map_or_else(|| "default".into(), |queue| queue.name.clone()),
            state_since: self.now,
            ..Job::new(id, membership.key.clone(), key)
        };
        let others = self.jobs.insert(job);
        self.renamed(others);
        self.work.new_jobs.insert(id, false);
        id
    }

    /// A group may get its object, or an object its UID, after its first member.
    pub(super) fn name_after(&mut self, id: JobId, membership: &Membership) {
        let Some(job) = self.jobs.get(id) else { return };
        if job.object == membership.object || membership.object.is_none() || job.state.ended() {
            return;
        }
        let old = job.key.uid.clone();
        let object = membership.object.clone();
        if let Some(job) = self.jobs.get_mut(id) {
            if let Some(object) = &object {
                job.key.uid = object.uid.clone();
            }
            job.object = object;
        }
        if let Some(job) = self.jobs.get(id).cloned().filter(|job| job.key.uid != old) {
            self.note_new_uid(&job, &old);
        }
    }

    pub(super) fn join(&mut self, id: JobId, pod: &PodSpec) {
        let started = pod.node.is_some().then(|| {
            let recorded = pod.record.as_ref().map(|record| record.start);
            recorded.or(pod.scheduled_at).unwrap_or(self.now)
        });
        if let Some(job) = self.jobs.get_mut(id) {
            job.pods.insert(pod.uid.clone());
            job.uncreated = false;
            job.started_at = [job.started_at, started].into_iter().flatten().min();
        }
        self.belonging.assign(pod.uid.clone(), id);
        if let Some((node, hold)) =
            self.inventory.holding(&pod.uid).filter(|(_, hold)| hold.job != Some(id.0))
        {
            self.inventory.hold(pod.uid.clone(), &node, Allocation { job: Some(id.0), ..hold });
        }
        self.work.dirty.insert(id);
    }

    /// The Pod now belongs to another job. If its previous job has no members left, that was only a guess caused by
    /// the arrival order of objects, and it is removed without a trace.
    pub(super) fn move_out(&mut self, id: JobId, pod: &PodSpec) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        if job.state.ended() {
            return;
        }
        job.pods.remove(&pod.uid);
        if job.pods.is_empty() && job.losses == Losses::default() && job.gone.is_empty() {
            self.dissolve(id);
        } else {
            self.work.dirty.insert(id);
        }
    }

    /// The Pod was deleted.
    pub(super) fn leave(&mut self, id: JobId, pod: &Arc<PodSpec>) {
        let now = self.now;
        let Some(job) = self.jobs.get_mut(id) else { return };
        if job.state.ended() {
            return;
        }
        job.pods.remove(&pod.uid);
        if pod.node.is_some() {
            let at = pod.end.as_ref().and_then(|end| end.at).unwrap_or(now);
            job.gone.push(Gone { pod: pod.clone(), at });
        }
        if job.pods.is_empty() && job.object.is_none() && job.group.anchor.is_some() {
            // The owner that gives the job its name was never observed, so it is unknown whether its Pods are one job.
            self.dissolve(id);
        } else {
            self.work.dirty.insert(id);
        }
    }

    /// Removes a job that turned out not to exist.
    pub(super) fn dissolve(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(id).cloned() else { return };
        self.pass.wanted |= self.dequeue(&job);
        self.inventory.clear_reservation(id.0);
        self.belonging.deactivate(&job);
        self.waiting.incomplete.remove(&id);
        self.drop_places(id);
        self.leave_places(id);
        if job.entries > 0 {
            let forgotten = JournalEntry::Forgotten { uid: job.key.uid.clone(), ended_at: None };
            self.work.effects.push(Effect::Journal(forgotten));
        }
        self.remove_job(&job);
    }

    fn remove_job(&mut self, job: &Job) {
        let others = self.jobs.remove(job);
        self.renamed(others);
    }

    /// Moves the job to a state, updates the queue order, and records visible changes in the history. A transition
    /// that is not in the table is a bug: it is not made, and becomes an audit finding.
    pub(super) fn settle(&mut self, id: JobId, state: JobState, reason: Option<Reason>, new_request: bool) {
        let now = self.now;
        let Some(from) = self.jobs.get(id).map(|job| job.state) else { return };
        if from != state && !may_follow(from, state) {
            self.refuse_transition(id, state);
            return;
        }
        let Some(job) = self.jobs.get_mut(id) else { return };
        let first = job.history.is_empty();
        let was = job.reason.as_ref().map(|reason| reason.class);
        let news = reason.as_ref().map(|reason| reason.class) != was;
        job.reason = reason;
        if new_request && state == JobState::Pending {
            job.reservation = None;
        }
        if state != JobState::Reserved {
            job.reservation = None;
        }
        job.state = state;
        if state.ended() {
            self.close(id);
        }
        let at = self.time_of(id);
        let Some(job) = self.jobs.get_mut(id) else { return };
        if from != state || first {
            job.state_since = at;
        }
        if from != state || first || (news && !state.ended()) {
            let text = job.reason.as_ref().map(Reason::text).unwrap_or_default();
            // The order in which the watches deliver Pods and their owners is irrelevant.
            let fleeting = job.history.last().is_some_and(|last| now.saturating_sub(last.time) <= MOMENT);
            if fleeting && !job.state.ended() && was == Some(ReasonClass::GroupNotFound) {
                Arc::make_mut(&mut job.history).pop();
                job.entries = job.entries.saturating_sub(1);
            }
            if job.history.len() >= HISTORY_MAX {
                Arc::make_mut(&mut job.history).remove(1);
            }
            let class = job.reason.as_ref().map(|reason| reason.class);
            Arc::make_mut(&mut job.history).push(HistoryEntry { time: at, state, class, reason: text });
            job.entries = job.entries.saturating_add(1);
            let job = job.clone();
            self.note_transition(&job);
        }
        self.work.changed.insert(id);
        let Some(job) = self.jobs.get(id).cloned() else { return };
        if state.ended() {
            self.note_end(&job);
            self.end(&job);
            self.unite_with_recorded(id);
        } else {
            self.enqueue(&job);
        }
    }

    fn refuse_transition(&mut self, id: JobId, to: JobState) {
        let Some(job) = self.jobs.get(id).cloned() else { return };
        self.refused_transitions.refuse(&job, to);
        self.enqueue(&job);
    }

    fn end(&mut self, job: &Job) {
        self.belonging.deactivate(job);
        self.waiting.incomplete.remove(&job.id);
        self.drop_places(job.id);
        self.leave_places(job.id);
        self.announced.say(job.id, None);
        self.jobs.keep_from(job.ended_at.unwrap_or(self.now), job.id);
    }

    /// When the job entered its state: for an end, and everything found when it is first evaluated, according to the
    /// objects; never before its last transition.
    fn time_of(&self, id: JobId) -> i64 {
        let Some(job) = self.jobs.get(id) else { return self.now };
        let told = if job.state.ended() {
            job.ended_at
        } else if let Some(remembered) = self.work.new_jobs.get(&id) {
            let live =
                job.pods.iter().filter_map(|uid| self.delivered.pod(uid)).filter(|pod| !pod.phase.ended());
            let created = live.map(|pod| pod.created);
            match job.state {
                JobState::Binding | JobState::Running => job.started_at,
                _ if *remembered => None,
                JobState::Gathering => created.min(),
                JobState::Pending | JobState::Reserved | JobState::Unsatisfiable => created.max(),
                _ => None,
            }
        } else {
            None
        };
        let last = job.history.last().map_or(i64::MIN, |last| last.time);
        told.unwrap_or(self.now).min(self.now).max(last)
    }

    /// Removes finished jobs after their retention, oldest first if there are too many.
    pub(super) fn forget_ended(&mut self) {
        let before = self.now.saturating_sub(self.settings.keep_ended);
        while let Some((at, id)) = self.jobs.next_to_forget(before, self.settings.keep_ended_max) {
            let Some(job) = self.jobs.get(id).cloned() else { continue };
            let forgotten = JournalEntry::Forgotten { uid: job.key.uid.clone(), ended_at: Some(at) };
            self.work.effects.push(Effect::Journal(forgotten));
            for pod in &job.pods {
                if self.belonging.job_of(pod) == Some(id) {
                    self.belonging.unassign(pod);
                }
            }
            self.remove_job(&job);
        }
    }

    /// The job's position among all jobs that may start.
    pub(super) fn order_key(&self, job: &Job) -> OrderKey {
        let queue = self.settings.queues.iter().position(|queue| queue.name == job.queue);
        OrderKey::new(job, queue.unwrap_or(0))
    }

    fn enqueue(&mut self, job: &Job) {
        if job.request.is_some()
            && matches!(job.state, JobState::Pending | JobState::Reserved | JobState::Unsatisfiable)
        {
            let key = self.order_key(job);
            let behind = self.pass.open.as_ref().is_some_and(|open| open.last.as_ref() < Some(&key));
            if self.waiting.enqueue(key) && job.checked.is_none() {
                self.pass.arrived |= behind;
                self.pass.wanted |= !behind;
            }
        }
    }

    /// Removes the job from the queue before a change that affects its position; returns whether it was queued.
    pub(super) fn dequeue(&mut self, job: &Job) -> bool {
        let key = self.order_key(job);
        self.waiting.dequeue(&key)
    }

    /// Whether the job is among those that may start.
    pub(super) fn is_queued(&self, id: JobId) -> bool {
        self.jobs.get(id).is_some_and(|job| self.waiting.is_queued(&self.order_key(job)))
    }

    /// Schedules evaluation of jobs whose timers are due.
    pub(super) fn run_timers(&mut self) {
        while let Some(id) = self.waiting.due(self.now) {
            self.work.dirty.insert(id);
            if let Some(job) = self.jobs.get(id).cloned().filter(|_| self.ready) {
                self.advance_claims(id);
                self.retry_binds(&job);
                self.check_partial(id);
            }
        }
    }

    /// A user cancelled the job with this UID.
    pub(super) fn cancel_asked(&mut self, uid: &SharedStr, by: &SharedStr) {
        let Some(job) = self.record_cancel(uid, by) else { return };
        for object in self.cancel_plan(&job).targets {
            self.work
                .effects
                .push(Effect::Delete { object, why: format!("cancelled by {}", marks::shorten(by)) });
        }
    }

    /// Records who cancelled the job with this UID; returns the job, unless it has ended.
    pub(super) fn record_cancel(&mut self, uid: &SharedStr, by: &SharedStr) -> Option<Arc<Job>> {
        let job = self.active_job(uid)?;
        self.set_cancelled(&job, Some(marks::shorten(by).into()));
        Some(job)
    }

    /// What this user was deleting could not be deleted.
    pub(super) fn cancel_failed(&mut self, uid: &SharedStr, by: &SharedStr) {
        let by: SharedStr = marks::shorten(by).into();
        if let Some(job) = self.active_job(uid).filter(|job| job.cancelled_by.as_ref() == Some(&by)) {
            self.set_cancelled(&job, None);
        }
    }

    fn set_cancelled(&mut self, job: &Job, by: Option<SharedStr>) {
        let id = job.id;
        let (uid, job) = (job.key.uid.clone(), job.full_name());
        if let Some(job) = self.jobs.get_mut(id) {
            job.cancelled_by.clone_from(&by);
        }
        self.work.effects.push(Effect::Journal(JournalEntry::Cancelled { uid, job, by }));
        self.work.dirty.insert(id);
    }

    fn active_job(&self, uid: &SharedStr) -> Option<Arc<Job>> {
        let mut active = self.belonging.all_active().filter_map(|id| self.jobs.get(id));
        active.find(|job| job.key.uid == *uid).cloned()
    }
}

fn job_key(pod: &SharedStr, membership: &Membership) -> JobKey {
    let GroupKey { namespace, kind, name, anchor } = membership.key.clone();
    let uid = membership.object.as_ref().map(|object| object.uid.clone());
    JobKey { namespace, kind, name, uid: uid.or(anchor).unwrap_or_else(|| pod.clone()) }
}
