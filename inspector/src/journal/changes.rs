//! Entries of the history, combined into what has to change in a journal: each row at most once, so that a batch can be
//! repeated.

use std::collections::{BTreeMap, BTreeSet};

use fluxion_scheduler::model::SharedStr;
use fluxion_scheduler::record::{EndedJob, JournalEntry};
use fluxion_scheduler::state::HistoryEntry;

/// See the module documentation. Jobs are identified by their UIDs.
#[derive(Debug, Default)]
pub struct Changes {
    /// Jobs whose transitions and cancellations are deleted first.
    pub forgotten: BTreeSet<SharedStr>,
    /// By number, with the name of the job.
    pub transitions: BTreeMap<(SharedStr, u32), (String, HistoryEntry)>,
    /// Who cancelled a job; `None` deletes that.
    pub cancels: BTreeMap<SharedStr, Option<SharedStr>>,
    /// Finished jobs that are deleted first, by end time (epoch seconds).
    pub retracted: BTreeSet<(SharedStr, i64)>,
    /// Finished jobs, by end time (epoch seconds).
    pub ended: BTreeMap<(SharedStr, i64), Box<EndedJob>>,
}

impl Changes {
    /// Adds the next entry. When finished jobs are deleted is up to the journal's own retention.
    pub fn add(&mut self, entry: JournalEntry) {
        match entry {
            JournalEntry::Transition { uid, job, number, entry } => {
                self.transitions.insert((uid, number), (job, entry));
            }
            JournalEntry::Cancelled { uid, by, .. } => drop(self.cancels.insert(uid, by)),
            JournalEntry::Ended(job) => {
                self.forget(&job.key.uid);
                let key = (job.key.uid.clone(), job.ended_at);
                self.retracted.remove(&key);
                self.ended.insert(key, job);
            }
            JournalEntry::Retracted { uid, ended_at } => {
                let key = (uid, ended_at);
                self.ended.remove(&key);
                self.retracted.insert(key);
            }
            JournalEntry::Forgotten { uid, ended_at: None } => self.forget(&uid),
            JournalEntry::Forgotten { ended_at: Some(_), .. } => {}
        }
    }

    fn forget(&mut self, uid: &SharedStr) {
        let numbers = self.transitions.range((uid.clone(), 0)..=(uid.clone(), u32::MAX));
        for key in numbers.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.transitions.remove(&key);
        }
        self.cancels.remove(uid);
        self.forgotten.insert(uid.clone());
    }

    /// Number of rows that change.
    pub fn len(&self) -> usize {
        let ended = self.retracted.len() + self.ended.len();
        self.forgotten.len() + self.transitions.len() + self.cancels.len() + ended
    }

    /// Whether nothing has to change.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use fluxion_scheduler::state::JobState;

    use super::*;

    fn transition(uid: &str, number: u32) -> JournalEntry {
        let entry = HistoryEntry { time: 5, state: JobState::Pending, class: None, reason: String::new() };
        JournalEntry::Transition { uid: uid.into(), job: "a/pod.p".to_owned(), number, entry }
    }

    #[test]
    fn what_follows_a_deletion_stays() {
        let mut changes = Changes::default();
        let by = Some("alice".into());
        changes.add(transition("u", 0));
        changes.add(transition("other", 0));
        changes.add(JournalEntry::Cancelled { uid: "u".into(), job: "a/pod.p".to_owned(), by });
        changes.add(JournalEntry::Forgotten { uid: "u".into(), ended_at: None });
        changes.add(transition("u", 1));
        changes.add(transition("u", 1));
        let kept: Vec<_> = changes.transitions.keys().map(|(uid, number)| (&**uid, *number)).collect();
        assert_eq!(kept, [("other", 0), ("u", 1)]);
        assert_eq!((changes.len(), changes.cancels.len(), changes.forgotten.len()), (3, 0, 1));
    }

    #[test]
    fn an_end_that_is_retracted_is_deleted_unless_it_is_told_again() {
        let mut changes = Changes::default();
        let ended = |at| JournalEntry::Ended(Box::new(crate::journal::tests::ended("u", at)));
        let retracted = |at| JournalEntry::Retracted { uid: "u".into(), ended_at: at };
        for entry in [ended(5), ended(7), retracted(7), retracted(8), ended(8)] {
            changes.add(entry);
        }
        let kept: Vec<i64> = changes.ended.keys().map(|(_, at)| *at).collect();
        assert_eq!((&kept[..], &changes.retracted), (&[5, 8][..], &[("u".into(), 7)].into()));
    }
}
