//! What is kept of jobs outside the engine, in a journal, and handed back to the next one.
//!
//! Nothing depends on it but what users are told of the past: without it the objects tell what runs, and since when.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::job::{Asked, ExitCause, HistoryEntry, JobKey, JobState, Members, Reason};
use crate::model::{Marks, ObjectRef, SharedStr};

/// Something to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalEntry {
    /// A transition of a job, which `uid` names. One of the same number takes its place.
    Transition {
        uid: SharedStr,
        /// `NAMESPACE/KIND.NAME`.
        job: String,
        number: u32,
        entry: HistoryEntry,
    },
    /// Somebody asked for the end of a job.
    Cancelled { uid: SharedStr, job: String, by: SharedStr },
    /// A job has ended: this takes the place of all that was kept of it.
    Ended(Box<EndedJob>),
    /// Nothing needs to be kept any more of the job that ended at this time; `None`: of what had not ended.
    Forgotten { uid: SharedStr, ended_at: Option<i64> },
}

impl JournalEntry {
    /// Entries of one key say the same, or the later one takes the place of the earlier.
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

/// All that is kept of a job that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedJob {
    pub key: JobKey,
    /// The uid that is part of what makes its Pods one job.
    pub anchor: Option<SharedStr>,
    pub object: Option<ObjectRef>,
    pub created: i64,
    pub priority: i32,
    pub queue: SharedStr,
    pub duration: Option<i64>,
    /// The time limit that was enforced.
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

/// What a journal gives back of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remembered {
    /// It had not ended.
    Live(LiveJob),
    Ended(Box<EndedJob>),
}

/// What was kept of a job that had not ended.
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
    /// Tells it apart from all others.
    pub fn id(&self) -> (SharedStr, Option<i64>) {
        match self {
            Self::Live(live) => (live.uid.clone(), None),
            Self::Ended(ended) => (ended.key.uid.clone(), Some(ended.ended_at)),
        }
    }
}
