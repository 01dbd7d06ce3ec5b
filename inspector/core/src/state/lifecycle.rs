//! A job's life: made, joined, left, moved from state to state, ended, forgotten.

use std::cmp::Reverse;
use std::sync::Arc;

use imbl::{OrdSet, Vector};

use crate::event::{Effect, JournalEntry};
use crate::inventory::Hold;
use crate::model::{Marks, PodSpec, Text};
use crate::resources::ResourceList;
use crate::state::grouping::{GroupKey, Membership};
use crate::state::owed::Losses;
use crate::state::partial::Binds;
use crate::state::{
    HistoryEntry, Job, JobId, JobKey, JobState, Members, OrderKey, Reason, ReasonClass, State, marks,
};

/// Entries of a job's history that are kept: the first ones and the latest.
const HISTORY_MAX: usize = 64;
/// Seconds that a Pod may be without the object of its group before that is worth an entry.
const MOMENT: i64 = 1;

/// Which state may follow which. A restart finds jobs in the middle of their lives, so a new job may enter
/// any state; an ended one never leaves.
pub(super) fn may_follow(from: JobState, to: JobState) -> bool {
    use JobState::{
        Binding, Cancelled, Completed, Failed, Gathering, Pending, Releasing, Reserved, Running, Suspended,
        Unsatisfiable,
    };
    match from {
        Gathering | Pending | Reserved | Unsatisfiable | Suspended => true,
        Binding => !matches!(to, Reserved | Unsatisfiable),
        Running => !matches!(to, Reserved | Unsatisfiable),
        Releasing => !matches!(to, Reserved | Unsatisfiable),
        Completed | Failed | Cancelled => false,
    }
}

impl State {
    pub(super) fn create_job(&mut self, pod: &PodSpec, membership: &Membership) -> JobId {
        let id = JobId(self.next_job);
        self.next_job = self.next_job.wrapping_add(1);
        let key = job_key(pod, membership);
        self.active.insert(membership.key.clone(), id);
        self.names.entry((key.namespace.clone(), key.object_name())).or_default().insert(id);
        let job = Job {
            id,
            group: membership.key.clone(),
            key,
            object: membership.object.clone(),
            created: pod.created,
            priority: pod.priority,
            queue: self.settings.queues.first().map_or_else(|| "default".into(), |queue| queue.name.clone()),
            duration: None,
            state: JobState::Gathering,
            state_since: self.now,
            degraded: false,
            members: Members::default(),
            pods: OrdSet::new(),
            holds: Arc::new(ResourceList::default()),
            request: None,
            reason: None,
            started_at: None,
            ended_at: None,
            planned_end: None,
            reservation: None,
            waits_for: Vec::new(),
            warnings: Vec::new(),
            killed_at: None,
            cancelled_by: None,
            lost: Vec::new(),
            given_up: 0,
            places: 0,
            losses: Losses::default(),
            binds: Binds::default(),
            checked: None,
            history: Vector::new(),
            labels: Marks::new(),
        };
        self.jobs.insert(id, Arc::new(job));
        id
    }

    /// A group may get its object, and an object its uid, after its first member.
    pub(super) fn name_after(&mut self, id: JobId, membership: &Membership) {
        let Some(job) = self.jobs.get(&id) else { return };
        if job.object == membership.object || membership.object.is_none() || job.state.ended() {
            return;
        }
        let object = membership.object.clone();
        if let Some(job) = self.job_mut(id) {
            if let Some(object) = &object {
                job.key.uid = object.uid.clone();
            }
            job.object = object;
        }
    }

    pub(super) fn join(&mut self, id: JobId, pod: &PodSpec) {
        let started = pod.node.is_some().then(|| {
            let recorded = pod.record.as_ref().map(|record| record.start);
            recorded.or(pod.scheduled_at).unwrap_or(self.now)
        });
        if let Some(job) = self.job_mut(id) {
            job.pods.insert(pod.uid.clone());
            job.started_at = [job.started_at, started].into_iter().flatten().min();
        }
        self.job_of_pod.insert(pod.uid.clone(), id);
        if let Some((node, hold)) =
            self.inventory.holding(&pod.uid).filter(|(_, hold)| hold.job != Some(id.0))
        {
            self.inventory.hold(pod.uid.clone(), &node, Hold { job: Some(id.0), ..hold });
        }
        self.dirty.insert(id);
    }

    /// The Pod is gone, or belongs to another job now.
    pub(super) fn leave(&mut self, id: JobId, pod: &PodSpec) {
        let Some(job) = self.job_mut(id) else { return };
        if job.state.ended() {
            return;
        }
        job.pods.remove(&pod.uid);
        self.dirty.insert(id);
    }

    /// Moves the job, keeps the queue's order, and writes history when something a user would see changed.
    pub(super) fn settle(&mut self, id: JobId, state: JobState, reason: Option<Reason>, new_request: bool) {
        let now = self.now;
        let Some(job) = self.job_mut(id) else { return };
        let from = job.state;
        debug_assert!(from == state || may_follow(from, state), "{from:?} -> {state:?}");
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
        if from != state {
            job.state = state;
            job.state_since = now;
        }
        if state.ended() {
            job.ended_at = Some(now);
            job.degraded = false;
            job.waits_for.clear();
        }
        if from != state || first || (news && !state.ended()) {
            let text = job.reason.as_ref().map(|reason| reason.text.clone()).unwrap_or_default();
            // Which watch delivers first, that of Pods or that of what they belong to, is nobody's concern.
            let fleeting = job.history.back().is_some_and(|last| now.saturating_sub(last.time) <= MOMENT);
            if fleeting && !job.state.ended() && was == Some(ReasonClass::GroupNotFound) {
                job.history.pop_back();
            }
            if job.history.len() >= HISTORY_MAX {
                job.history.remove(1);
            }
            job.history.push_back(HistoryEntry { time: now, state, reason: text.clone() });
            let entry = JournalEntry {
                time: now,
                job: format!("{}/{}", job.key.namespace, job.key.object_name()),
                uid: job.key.uid.clone(),
                state: state.as_str(),
                reason: text,
            };
            self.effects.push(Effect::Journal(entry));
        }
        self.changed.insert(id);
        let Some(job) = self.jobs.get(&id).cloned() else { return };
        if state.ended() {
            self.end(&job);
        } else {
            self.enqueue(&job);
        }
    }

    fn end(&mut self, job: &Job) {
        if self.active.get(&job.group) == Some(&job.id) {
            self.active.remove(&job.group);
        }
        self.incomplete.remove(&job.id);
        self.drop_places(job.id);
        self.saying.remove(&job.id);
        self.ended.insert((self.now, job.id));
    }

    /// Forgets ended jobs whose time is over, the oldest first when there are too many.
    pub(super) fn forget_ended(&mut self) {
        while let Some((at, id)) = self.ended.get_min().copied() {
            let old = at.saturating_add(self.settings.keep_ended) <= self.now;
            if !old && self.ended.len() <= self.settings.keep_ended_max {
                break;
            }
            self.ended.remove(&(at, id));
            let Some(job) = self.jobs.remove(&id) else { continue };
            for pod in &job.pods {
                if self.job_of_pod.get(pod) == Some(&id) {
                    self.job_of_pod.remove(pod);
                }
            }
            let name = (job.key.namespace.clone(), job.key.object_name());
            if let Some(of_name) = self.names.get_mut(&name) {
                of_name.remove(&id);
                if of_name.is_empty() {
                    self.names.remove(&name);
                }
            }
        }
    }

    /// Where the job stands in the order of all that may start.
    fn order_key(&self, job: &Job) -> OrderKey {
        let queue = self.settings.queues.iter().position(|queue| queue.name == job.queue).unwrap_or(0);
        let key = &job.key;
        (
            queue,
            Reverse(job.priority),
            job.created,
            key.namespace.clone(),
            key.name.clone(),
            key.uid.clone(),
            job.id,
        )
    }

    fn enqueue(&mut self, job: &Job) {
        if job.request.is_some()
            && matches!(job.state, JobState::Pending | JobState::Reserved | JobState::Unsatisfiable)
        {
            let key = self.order_key(job);
            if self.queue.insert(key).is_none() {
                self.pass.wanted |= job.checked.is_none();
            }
        }
    }

    /// Takes the job out of the queue before what its place depends on changes; whether it was in it.
    pub(super) fn dequeue(&mut self, job: &Job) -> bool {
        let key = self.order_key(job);
        self.queue.remove(&key).is_some()
    }

    /// Whether the job is among those that may start.
    pub(super) fn is_queued(&self, id: JobId) -> bool {
        self.jobs.get(&id).is_some_and(|job| self.queue.contains(&self.order_key(job)))
    }

    /// Calls jobs that asked to be looked at again by now.
    pub(super) fn run_timers(&mut self) {
        while let Some((at, id)) = self.timers.get_min().copied() {
            if at > self.now {
                break;
            }
            self.timers.remove(&(at, id));
            self.dirty.insert(id);
            if let Some(job) = self.jobs.get(&id).cloned().filter(|_| self.ready) {
                self.retry_binds(&job);
                self.check_partial(id);
            }
        }
    }

    /// A user asked for the end of the job with this uid.
    pub(super) fn cancel_asked(&mut self, uid: &Text, by: &Text) {
        let Some(id) =
            self.active.values().copied().find(|id| self.jobs.get(id).is_some_and(|job| job.key.uid == *uid))
        else {
            return;
        };
        let Some(job) = self.jobs.get(&id).cloned() else { return };
        let plan = self.cancel_plan(&job);
        if let Some(job) = self.job_mut(id) {
            job.cancelled_by = Some(marks::shorten(by).into());
        }
        for object in plan.targets {
            self.effects.push(Effect::Delete { object, why: format!("cancelled by {}", marks::shorten(by)) });
        }
        self.dirty.insert(id);
    }
}

fn job_key(pod: &PodSpec, membership: &Membership) -> JobKey {
    let GroupKey { namespace, kind, name, anchor } = membership.key.clone();
    let uid = membership.object.as_ref().map(|object| object.uid.clone());
    JobKey { namespace, kind, name, uid: uid.or(anchor).unwrap_or_else(|| pod.uid.clone()) }
}
