//! History from an earlier engine: job histories, who cancelled a job, and finished jobs.
//!
//! It does not affect decisions. What is received before the first `Synced` is continued when its jobs are found; what
//! is received later is merged into what is known by then (`state/merged.rs`).

use std::sync::Arc;

use imbl::OrdMap;

use crate::event::Effect;
use crate::job::{GroupKey, HistoryEntry, Job, JobId, Reason};
use crate::model::{PodSpec, SharedStr};
use crate::record::{EndedJob, JournalEntry, LiveJob, Remembered};
use crate::state::State;

impl State {
    /// Adds an entry from a journal.
    pub(super) fn remember(&mut self, what: Remembered) {
        match what {
            Remembered::Live(live) if self.whole => self.merge_live(live),
            Remembered::Ended(ended) if self.whole => self.merge_ended(*ended),
            Remembered::Live(live) => {
                self.memory.live.insert((live.job.clone(), live.uid.clone()), Arc::new(live));
            }
            Remembered::Ended(ended) => self.bring_back(*ended),
        }
    }

    pub(super) fn bring_back(&mut self, ended: EndedJob) {
        if !ended.state.ended() {
            return;
        }
        let id = self.jobs.next_id();
        let group = GroupKey {
            namespace: ended.key.namespace.clone(),
            kind: ended.key.kind.clone(),
            name: ended.key.name.clone(),
            anchor: ended.anchor,
        };
        self.memory.ended.entry(group.clone()).or_default().insert((ended.ended_at, id));
        self.jobs.keep_from(ended.ended_at, id);
        let job = Job {
            object: ended.object,
            created: ended.created,
            priority: ended.priority,
            queue: ended.queue,
            duration: ended.duration,
            limit: ended.limit,
            level: ended.level,
            state: ended.state,
            state_since: ended.ended_at,
            members: ended.members,
            asked: ended.asked.into(),
            reason: ended.reason,
            exit: ended.exit,
            started_at: ended.started_at,
            ended_at: Some(ended.ended_at),
            cancelled_by: ended.cancelled_by,
            ran_on: Arc::new(ended.ran_on),
            labels: ended.labels,
            history: Arc::new(ended.history),
            ..Job::new(id, group, ended.key)
        };
        let others = self.jobs.insert(job);
        self.renamed(others);
        self.jobs.touch(id);
    }

    /// Removes a finished job that was brought back.
    pub(super) fn forget_recorded(&mut self, group: &GroupKey, ended_at: i64, id: JobId) {
        if let Some(lives) = self.memory.ended.get_mut(group) {
            lives.remove(&(ended_at, id));
        }
        self.jobs.keep_no_longer(ended_at, id);
        let Some(job) = self.jobs.get(id).cloned() else { return };
        let others = self.jobs.remove(&job);
        self.renamed(others);
    }

    /// The finished job that this finished Pod was a member of.
    pub(super) fn past_life(&self, pod: &PodSpec, key: &GroupKey) -> Option<JobId> {
        let lives = self.memory.ended.get(key).filter(|_| pod.phase.ended())?;
        let life = lives.iter().find(|(ended_at, _)| pod.created <= *ended_at)?.1;
        self.jobs.contains(life).then_some(life)
    }

    /// Continues the history of a newly found job, if it is known.
    pub(super) fn go_on(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(id) else { return };
        let name = job.full_name();
        let named = self.memory.live.range((name.clone(), SharedStr::from(""))..);
        let known = named.take_while(|((job, _), _)| *job == name);
        let known = known.filter(|(_, live)| self.is_history_of(live, job));
        let latest = known.max_by_key(|(_, live)| live.history.last().map(|entry| entry.time));
        let Some((key, live)) = latest.map(|(key, live)| (key.clone(), live.clone())) else {
            return;
        };
        self.memory.live.remove(&key);
        let Some(last) = live.history.last().filter(|last| !last.state.ended()) else { return };
        let before = live.history.iter().rev().take_while(|entry| entry.state == last.state);
        let since = before.last().map_or(last.time, |entry| entry.time);
        let Some(job) = self.jobs.get_mut(id) else { return };
        job.key.uid = live.uid.clone();
        job.state = last.state;
        job.state_since = since;
        job.reason = last.class.map(|class| Reason::message(class, last.reason.clone()));
        job.history = Arc::new(live.history.clone());
        job.entries = live.next;
        job.cancelled_by.clone_from(&live.cancelled_by);
        self.work.new_jobs.insert(id, true);
    }

    /// Whether this is the history of that job, which has the same name.
    pub(super) fn is_history_of(&self, live: &LiveJob, job: &Job) -> bool {
        if live.uid == job.key.uid || !named_only(job) || job.state.ended() {
            return live.uid == job.key.uid;
        }
        // It is the same if it has a common member.
        let oldest = job.pods.iter().filter_map(|uid| self.delivered.pod(uid)).map(|pod| pod.created).min();
        live.history.last().map(|entry| entry.time) >= oldest
    }

    /// Drops entries for which no job was found for as long as finished jobs are kept.
    pub(super) fn forget_memory(&mut self) {
        if !self.whole {
            return;
        }
        let keep = self.settings.keep_ended;
        let until = *self.memory.until.get_or_insert(self.now.saturating_add(keep));
        if until <= self.now {
            for ((_, uid), _) in std::mem::take(&mut self.memory.live) {
                self.work.effects.push(Effect::Journal(JournalEntry::Forgotten { uid, ended_at: None }));
            }
            self.memory.ended = OrdMap::new();
        }
    }

    /// Writes the latest transition to the journal.
    pub(super) fn note_transition(&mut self, job: &Job) {
        let Some(entry) = job.history.last().cloned() else { return };
        self.keep_transition(job, job.entries.saturating_sub(1), entry);
    }

    /// The UID of the job has changed: its entries are moved.
    pub(super) fn note_new_uid(&mut self, job: &Job, old: &SharedStr) {
        let gone = JournalEntry::Forgotten { uid: old.clone(), ended_at: None };
        self.work.effects.push(Effect::Journal(gone));
        self.work.effects.extend(job.transitions().map(Effect::Journal));
    }

    fn keep_transition(&mut self, job: &Job, number: u32, entry: HistoryEntry) {
        let (uid, job) = (job.key.uid.clone(), job.full_name());
        self.work.effects.push(Effect::Journal(JournalEntry::Transition { uid, job, number, entry }));
    }

    /// Writes a finished job to the journal, unless its retention is over.
    pub(super) fn note_end(&mut self, job: &Job) {
        let ended_at = job.ended_at.unwrap_or(self.now);
        if ended_at.saturating_add(self.settings.keep_ended) <= self.now {
            let gone = JournalEntry::Forgotten { uid: job.key.uid.clone(), ended_at: None };
            self.work.effects.push(Effect::Journal(gone));
            return;
        }
        self.work.effects.push(Effect::Journal(JournalEntry::Ended(Box::new(EndedJob::of(job, ended_at)))));
    }
}

/// A group defined by labels has no UID of its own: it has that of the member that was seen first.
pub(super) fn named_only(job: &Job) -> bool {
    job.object.is_none() && job.group.anchor.is_none()
}
