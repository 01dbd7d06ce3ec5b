//! Job history that is stored outside the engine, in a journal, and passed to the next engine.
//!
//! It only affects the history shown to users: without it, the objects show what is running, and since when.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::job::{Asked, ExitCause, HistoryEntry, JobKey, JobState, Members, Reason};
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

impl Remembered {
    /// Identifies it.
    pub fn id(&self) -> (SharedStr, Option<i64>) {
        match self {
            Self::Live(live) => (live.uid.clone(), None),
            Self::Ended(ended) => (ended.key.uid.clone(), Some(ended.ended_at)),
        }
    }
}
