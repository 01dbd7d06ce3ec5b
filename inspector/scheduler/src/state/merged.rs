//! History that arrives after the cluster has synced: from the leader before this one, or from a journal that could not be
//! read earlier.
//!
//! What the journal says about a period is more than what this engine has seen of it: a leader also knows its reservations,
//! and who cancelled a job. Before and after that period, this engine's own entries count.

use std::sync::Arc;

use crate::event::Effect;
use crate::job::{HISTORY_MAX, HistoryEntry, Job, JobId};
use crate::record::{EndedJob, JournalEntry, LiveJob};
use crate::state::State;
use crate::state::memory::named_only;

/// Maximum number of seconds between the times at which two engines notice that Pods were deleted.
const APART: u64 = 10;

impl State {
    /// Merges the stored history of a job that had not finished.
    pub(super) fn merge_live(&mut self, live: LiveJob) {
        let same = |id: &JobId| self.jobs.get(*id).is_some_and(|job| self.is_history_of(&live, job));
        let with_uid = |id: &JobId| self.jobs.get(*id).is_some_and(|job| job.key.uid == live.uid);
        let found = self.jobs_named(&live.job).filter(same).max_by_key(|id| (with_uid(id), *id));
        let Some(id) = found else {
            // As after a restart: it is kept for as long as finished jobs are.
            self.memory.until = Some(self.now.saturating_add(self.settings.keep_ended));
            self.memory.live.insert((live.job.clone(), live.uid.clone()), Arc::new(live));
            return;
        };
        let Some(job) = self.jobs.get_mut(id) else { return };
        let uid = std::mem::replace(&mut job.key.uid, live.uid);
        job.history = Arc::new(merged(&live.history, &job.history));
        let count = u32::try_from(job.history.len()).unwrap_or(u32::MAX);
        job.entries = job.entries.max(live.next).max(count);
        job.cancelled_by = job.cancelled_by.take().or(live.cancelled_by);
        if let Some(job) = self.jobs.get(id).cloned().filter(|job| job.key.uid != uid) {
            self.note_new_uid(&job, &uid);
        }
    }

    /// Adds a finished job, or what is stored of one that is known.
    pub(super) fn merge_ended(&mut self, ended: EndedJob) {
        if ended.ended_at.saturating_add(self.settings.keep_ended) <= self.now {
            return;
        }
        let name = format!("{}/{}", ended.key.namespace, ended.key.object_name());
        let ends =
            self.jobs_named(&name).filter_map(|id| Some((ends_apart(self.jobs.get(id)?, &ended)?, id)));
        let known = ends.min().map(|(_, id)| id);
        match known.filter(|_| ended.state.ended()) {
            None => self.bring_back(ended),
            Some(id) => self.end_as_recorded(id, ended),
        }
    }

    /// How it ended is known to whoever was the leader then: objects don't tell who cancelled it.
    fn end_as_recorded(&mut self, id: JobId, ended: EndedJob) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        (job.state, job.reason, job.exit) = (ended.state, ended.reason, ended.exit);
        (job.members, job.started_at) = (ended.members, ended.started_at);
        job.ran_on = Arc::new(ended.ran_on);
        job.history = Arc::new(ended.history);
        job.cancelled_by = ended.cancelled_by;
        let uid = std::mem::replace(&mut job.key.uid, ended.key.uid);
        let known = job.ended_at.replace(ended.ended_at);
        job.state_since = ended.ended_at;
        let renamed = job.key.uid != uid;
        self.jobs.keep_from_instead(known, ended.ended_at, id);
        if let Some(ended_at) = known.filter(|known| renamed || *known != ended.ended_at) {
            self.work.effects.push(Effect::Journal(JournalEntry::Retracted { uid, ended_at }));
        }
    }

    /// A job has ended. If its end was received from the journal before this engine noticed it, it is one.
    pub(super) fn unite_with_recorded(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(id).cloned() else { return };
        let Some(lives) = self.memory.ended.get(&job.group) else { return };
        let same = lives.iter().filter_map(|(ended_at, other)| {
            let stored = EndedJob::of(self.jobs.get(*other)?, *ended_at);
            // It was there before that end: it is not the next life of the same object.
            let before = job.history.first().is_some_and(|first| first.time <= *ended_at);
            let apart = ends_apart(&job, &stored).filter(|_| before && *other != id)?;
            Some((apart, *other, stored))
        });
        let Some((_, other, stored)) = same.min_by_key(|(apart, other, _)| (*apart, *other)) else { return };
        self.forget_recorded(&job.group, stored.ended_at, other);
        self.end_as_recorded(id, stored);
    }

    /// The jobs of this name (`NAMESPACE/KIND.NAME`), oldest first.
    fn jobs_named(&self, name: &str) -> impl Iterator<Item = JobId> {
        let named =
            name.split_once('/').and_then(|(namespace, name)| self.jobs.named(&namespace.into(), name));
        named.into_iter().flatten().copied()
    }
}

/// Seconds between the end of the job and that of a stored one of its name, if they are the same.
fn ends_apart(job: &Job, stored: &EndedJob) -> Option<u64> {
    let ended_at = job.ended_at.filter(|_| job.state.ended())?;
    let unnamed = named_only(job) && stored.object.is_none() && stored.anchor.is_none();
    // Another life of the same object begins when the one before is over.
    let together = job.created <= stored.ended_at && stored.created <= ended_at;
    let apart = ended_at.abs_diff(stored.ended_at);
    let same = (job.key.uid == stored.key.uid || unnamed) && (apart == 0 || together && apart <= APART);
    same.then_some(apart)
}

/// The stored entries, preceded and followed by our own of other times; the first one and the latest of too many.
fn merged(stored: &[HistoryEntry], own: &[HistoryEntry]) -> Vec<HistoryEntry> {
    let (Some(first), Some(last)) = (stored.first(), stored.last()) else { return own.to_vec() };
    let before = own.iter().filter(|entry| entry.time < first.time);
    let after = own.iter().filter(|entry| entry.time > last.time);
    let mut all: Vec<HistoryEntry> = before.chain(stored).chain(after).cloned().collect();
    // The last entry is the current state.
    if let (Some(current), Some(told)) = (own.last(), all.last())
        && (current.state, current.class) != (told.state, told.class)
    {
        all.push(current.clone());
    }
    if all.len() > HISTORY_MAX {
        all.drain(1..=all.len() - HISTORY_MAX);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobState;

    fn entries(of: &[(i64, JobState)]) -> Vec<HistoryEntry> {
        let entry = |&(time, state)| HistoryEntry { time, state, class: None, reason: String::new() };
        of.iter().map(entry).collect()
    }

    #[test]
    fn stored_entries_replace_own_ones_of_the_same_period() {
        use JobState::{Binding, Completed, Gathering, Pending, Reserved, Running};
        let stored = entries(&[(5, Pending), (6, Reserved), (9, Binding)]);
        let own = entries(&[(3, Gathering), (5, Pending), (9, Running), (12, Completed)]);
        let told = merged(&stored, &own);
        assert_eq!(
            told,
            entries(&[(3, Gathering), (5, Pending), (6, Reserved), (9, Binding), (12, Completed)])
        );
        assert_eq!(merged(&[], &own), own);
        assert_eq!(merged(&stored, &[]), stored);
    }

    #[test]
    fn the_last_entry_is_the_current_state() {
        use JobState::{Pending, Reserved, Running};
        let stored = entries(&[(5, Pending), (9, Reserved)]);
        assert_eq!(
            merged(&stored, &entries(&[(5, Pending), (9, Running)])),
            entries(&[(5, Pending), (9, Reserved), (9, Running)])
        );
    }

    #[test]
    fn of_too_many_entries_the_first_and_the_latest_are_kept() {
        let stored: Vec<_> = (0..60).map(|time| (time, JobState::Pending)).collect();
        let own: Vec<_> = (60..120).map(|time| (time, JobState::Reserved)).collect();
        let told = merged(&entries(&stored), &entries(&own));
        assert_eq!((told.len(), told[0].time, told[1].time, told[63].time), (HISTORY_MAX, 0, 57, 119));
    }
}
