//! Job history that is stored outside the engine, in a journal, and passed to the next engine.
//!
//! It only affects the history shown to users: without it, the objects show what is running, and since when.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::job::{Asked, ExitCause, HistoryEntry, Job, JobKey, JobState, Members, Reason};
use crate::model::{Marks, ObjectRef, SharedStr};

/// An entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalEntry {
    /// A transition of the job with this `uid`. It replaces an earlier one with the same number.
    Transition {
        uid: SharedStr,
        /// `NAMESPACE/KIND.NAME`.
        job: String,
        number: u32,
        entry: HistoryEntry,
    },
    /// A user cancelled a job; `None` if that failed: it replaces the entry that said so.
    Cancelled { uid: SharedStr, job: String, by: Option<SharedStr> },
    /// A job has finished: this replaces all its other entries.
    Ended(Box<EndedJob>),
    /// The end of this job at this time (epoch seconds) was recorded before, by the leader before this one, as that of another
    /// time or UID: there is to be no entry of this one.
    Retracted { uid: SharedStr, ended_at: i64 },
    /// The entries of the job that finished at this time can be deleted; `None`: of a job that had not finished.
    Forgotten { uid: SharedStr, ended_at: Option<i64> },
}

impl JournalEntry {
    /// An entry replaces earlier ones with the same key.
    pub fn key(&self) -> String {
        match self {
            Self::Transition { uid, number, .. } => format!("{uid}/{number}"),
            Self::Cancelled { uid, .. } => format!("{uid}/cancelled"),
            Self::Ended(ended) => format!("{}/ended/{}", ended.key.uid, ended.ended_at),
            Self::Retracted { uid, ended_at } => format!("{uid}/ended/{ended_at}"),
            Self::Forgotten { uid, ended_at } => {
                format!("{uid}/forgotten/{}", ended_at.map_or_else(|| "live".to_owned(), |at| at.to_string()))
            }
        }
    }
}

/// The stored data of a finished job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedJob {
    pub key: JobKey,
    /// The UID that is part of the key of its group.
    pub anchor: Option<SharedStr>,
    pub object: Option<ObjectRef>,
    pub created: i64,
    pub priority: i32,
    pub queue: SharedStr,
    pub duration: Option<i64>,
    /// The enforced time limit.
    #[serde(default)]
    pub limit: Option<i64>,
    pub level: Option<SharedStr>,
    pub state: JobState,
    pub members: Members,
    pub asked: Vec<Asked>,
    pub reason: Option<Reason>,
    pub exit: Option<ExitCause>,
    pub started_at: Option<i64>,
    pub ended_at: i64,
    pub cancelled_by: Option<SharedStr>,
    pub ran_on: BTreeMap<SharedStr, Vec<SharedStr>>,
    pub labels: Marks,
    pub history: Vec<HistoryEntry>,
}

/// The stored data of a job, as returned by a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remembered {
    /// It had not finished.
    Live(LiveJob),
    Ended(Box<EndedJob>),
}

/// The stored data of a job that had not finished.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveJob {
    pub uid: SharedStr,
    /// `NAMESPACE/KIND.NAME`.
    pub job: String,
    /// Number of the next transition.
    pub next: u32,
    /// Oldest first; the first one and the latest.
    pub history: Vec<HistoryEntry>,
    pub cancelled_by: Option<SharedStr>,
}

impl EndedJob {
    /// The data of a job that finished at `ended_at` (epoch seconds).
    pub(crate) fn of(job: &Job, ended_at: i64) -> Self {
        Self {
            key: job.key.clone(),
            anchor: job.group.anchor.clone(),
            object: job.object.clone(),
            created: job.created,
            priority: job.priority,
            queue: job.queue.clone(),
            duration: job.duration,
            limit: job.limit,
            level: job.level.clone(),
            state: job.state,
            members: job.members,
            asked: job.asked.to_vec(),
            reason: job.reason.clone(),
            exit: job.exit.clone(),
            started_at: job.started_at,
            ended_at,
            cancelled_by: job.cancelled_by.clone(),
            ran_on: (*job.ran_on).clone(),
            labels: job.labels.clone(),
            history: job.history.to_vec(),
        }
    }
}

impl Job {
    /// All of its history, as entries of the journal.
    pub(crate) fn transitions(&self) -> impl Iterator<Item = JournalEntry> {
        let count = u32::try_from(self.history.len()).unwrap_or(u32::MAX);
        let dropped = self.entries.saturating_sub(count);
        let (uid, job) = (&self.key.uid, self.full_name());
        (0..).zip(self.history.iter()).map(move |(index, entry)| {
            let number = if index == 0 { 0 } else { dropped.saturating_add(index) };
            JournalEntry::Transition { uid: uid.clone(), job: job.clone(), number, entry: entry.clone() }
        })
    }

    /// Everything that a journal keeps of it.
    pub fn records(&self) -> Vec<JournalEntry> {
        if let Some(ended_at) = self.ended_at.filter(|_| self.state.ended()) {
            return vec![JournalEntry::Ended(Box::new(EndedJob::of(self, ended_at)))];
        }
        let cancelled = self.cancelled_by.clone().map(|by| JournalEntry::Cancelled {
            uid: self.key.uid.clone(),
            job: self.full_name(),
            by: Some(by),
        });
        self.transitions().chain(cancelled).collect()
    }
}

impl Remembered {
    /// Identifies it.
    pub fn id(&self) -> (SharedStr, Option<i64>) {
        match self {
            Self::Live(live) => (live.uid.clone(), None),
            Self::Ended(ended) => (ended.key.uid.clone(), Some(ended.ended_at)),
        }
    }
}
