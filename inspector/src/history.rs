//! The job history of a cluster, stored in the state directory so that it survives restarts.
//!
//! No decision depends on it. If it can't be opened or written, there is no history, which is reported, and everything
//! else works as usual.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fluxion_scheduler::event::Effect;
use fluxion_scheduler::record::{JournalEntry, Remembered};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;

use crate::journal::{Batch, Journal, JournalError};
use crate::logs::RateLimit;
use crate::state_dir::StateDirError;

/// Maximum number of entries waiting for the disk; more are dropped.
const WAITING_MAX: u32 = 100_000;
/// Maximum number of entries in one transaction.
const ENTRIES_MAX: usize = 10_000;

/// Why the history is incomplete, if it is.
#[derive(Clone, Debug, Default)]
pub struct HistoryHealth(Arc<Mutex<Option<String>>>);

impl HistoryHealth {
    /// The problem, as text for users.
    pub fn problem(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, problem: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }
}

/// The running recorder.
#[derive(Debug)]
pub struct Recorder {
    /// Whether it works.
    pub health: HistoryHealth,
    tasks: [JoinHandle<()>; 2],
}

impl Recorder {
    /// Waits until everything recorded is on disk; ends when the engine has ended.
    pub async fn finish(self) {
        for task in self.tasks {
            if let Err(error) = task.await {
                tracing::warn!(%error, "the history recorder stopped with an error");
            }
        }
    }
}

/// Opens the history of the cluster with this ID in a directory; that of any other cluster is deleted. Also returns
/// its entries, for the engine.
pub async fn open(
    folder: Result<PathBuf, StateDirError>,
    cluster: &str,
) -> (Result<Journal, String>, Vec<Remembered>) {
    let opened = match folder {
        Ok(folder) => try_open(&folder, cluster).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match opened {
        Ok((journal, remembered)) => (Ok(journal), remembered),
        Err(error) => {
            let problem = format!("history is not recorded: {error}");
            tracing::warn!("{problem}; after a restart, only running jobs will be shown");
            (Err(problem), Vec::new())
        }
    }
}

async fn try_open(folder: &Path, cluster: &str) -> Result<(Journal, Vec<Remembered>), JournalError> {
    let (mut journal, kept) = Journal::open(folder, cluster).await?;
    if kept.cluster_id != cluster {
        journal.begin_anew(cluster).await?;
        return Ok((journal, Vec::new()));
    }
    Ok((journal, kept.remembered))
}

/// Records journal effects and passes all others on to the returned receiver. Neither the engine nor the writer ever
/// waits for the disk.
pub fn record(
    journal: Result<Journal, String>,
    mut effects: mpsc::Receiver<Vec<Effect>>,
) -> (Recorder, mpsc::Receiver<Vec<Effect>>) {
    let health = HistoryHealth::default();
    let (entries, waiting) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(WAITING_MAX as usize));
    let writing = match journal {
        Ok(journal) => tokio::spawn(write(journal, waiting, health.clone())),
        Err(problem) => {
            health.set(Some(problem));
            drop(waiting);
            tokio::spawn(async {})
        }
    };
    // The same capacity as between engine and writer: this only sits in between.
    let (forward, rest) = mpsc::channel(effects.max_capacity());
    let lost = health.clone();
    let splitting = tokio::spawn(async move {
        while let Some(batch) = effects.recv().await {
            let (kept, others) = split(batch);
            if !kept.is_empty() {
                let places = u32::try_from(kept.len()).unwrap_or(WAITING_MAX).min(WAITING_MAX);
                match Arc::clone(&room).try_acquire_many_owned(places) {
                    // Without a journal nobody receives.
                    Ok(places) => drop(entries.send(Waiting { entries: kept, places })),
                    Err(_) => lost.set(Some("history entries were dropped: the disk is too slow".to_owned())),
                }
            }
            if !others.is_empty() && forward.send(others).await.is_err() {
                return;
            }
        }
    });
    (Recorder { health, tasks: [splitting, writing] }, rest)
}

/// Entries on their way to the disk, and the places that they take of [`WAITING_MAX`] until they are there.
struct Waiting {
    entries: Vec<JournalEntry>,
    places: OwnedSemaphorePermit,
}

fn split(batch: Vec<Effect>) -> (Vec<JournalEntry>, Vec<Effect>) {
    let (mut kept, mut others) = (Vec::new(), Vec::with_capacity(batch.len()));
    for effect in batch {
        match effect {
            Effect::Journal(entry) => {
                if let JournalEntry::Transition { job, entry, .. } = &entry {
                    tracing::debug!(job, state = entry.state.as_str(), reason = entry.reason, "job");
                }
                kept.push(entry);
            }
            other => others.push(other),
        }
    }
    (kept, others)
}

async fn write(mut journal: Journal, mut waiting: mpsc::UnboundedReceiver<Waiting>, health: HistoryHealth) {
    let complaints = RateLimit::new(Duration::from_mins(1));
    while let Some(Waiting { entries, mut places }) = waiting.recv().await {
        let mut batch = Batch { history: entries, ..Batch::default() };
        while batch.history.len() < ENTRIES_MAX
            && let Ok(more) = waiting.try_recv()
        {
            batch.history.extend(more.entries);
            places.merge(more.places);
        }
        match journal.write(&batch).await {
            Ok(()) => health.set(None),
            Err(error) => {
                let problem = format!("history entries were dropped: {error}");
                if let Some(left_out) = complaints.now() {
                    tracing::warn!(left_out, "{problem}");
                }
                health.set(Some(problem));
            }
        }
        drop(places);
    }
    if let Err(error) = journal.close().await {
        tracing::warn!(%error, "failed to close the history");
    }
}

#[cfg(test)]
mod tests {
    use fluxion_scheduler::record::LiveJob;
    use fluxion_scheduler::state::{HistoryEntry, JobState};
    use sqlx::Connection as _;

    use super::*;

    fn transition(uid: &str, number: u32) -> JournalEntry {
        let entry = HistoryEntry { time: 5, state: JobState::Pending, class: None, reason: String::new() };
        JournalEntry::Transition { uid: uid.into(), job: "a/pod.p".to_owned(), number, entry }
    }

    fn deletion() -> Effect {
        let object = fluxion_scheduler::model::ObjectRef {
            namespace: "a".into(),
            kind: "Pod".into(),
            api_version: "v1".into(),
            name: "p".into(),
            uid: "u".into(),
        };
        Effect::Delete { object, why: String::new() }
    }

    /// What a recorder on this journal lets through, and whether it is well.
    async fn recorded(journal: Result<Journal, String>) -> (Vec<Effect>, Option<String>) {
        let (sender, effects) = mpsc::channel(4);
        let (recorder, mut rest) = record(journal, effects);
        sender.send(vec![Effect::Journal(transition("u", 0)), deletion()]).await.unwrap();
        sender.send(vec![Effect::Journal(transition("u", 1))]).await.unwrap();
        drop(sender);
        let mut through = Vec::new();
        while let Some(batch) = rest.recv().await {
            through.extend(batch);
        }
        let health = recorder.health.clone();
        recorder.finish().await;
        (through, health.problem())
    }

    #[tokio::test]
    async fn the_past_is_there_after_a_restart_and_not_for_another_cluster() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, remembered) = open(Ok(dir.path().to_owned()), "https://one").await;
        assert_eq!(remembered, []);
        assert_eq!(recorded(journal).await, (vec![deletion()], None));
        let (journal, remembered) = open(Ok(dir.path().to_owned()), "https://one").await;
        let [Remembered::Live(LiveJob { uid, next, history, .. })] = &remembered[..] else {
            panic!("{remembered:?}")
        };
        assert_eq!((&**uid, *next, history.len()), ("u", 2, 2));
        journal.unwrap().close().await.unwrap();
        let (journal, remembered) = open(Ok(dir.path().to_owned()), "https://two").await;
        assert_eq!(remembered, []);
        journal.unwrap().close().await.unwrap();
    }

    #[tokio::test]
    async fn without_a_journal_everything_else_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("state.db"), "no database ".repeat(100)).unwrap();
        let (journal, remembered) = open(Ok(dir.path().to_owned()), "https://one").await;
        assert_eq!(remembered, []);
        let (through, problem) = recorded(journal).await;
        assert_eq!(through, [deletion()]);
        let problem = problem.unwrap();
        assert!(
            problem.starts_with("history is not recorded: ") && problem.contains("state.db"),
            "{problem}"
        );
    }

    #[tokio::test]
    async fn a_journal_that_can_not_be_written_is_said_and_stops_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, _) = open(Ok(dir.path().to_owned()), "https://one").await;
        let mut journal = journal.unwrap();
        journal.spoil().await;
        let (through, problem) = recorded(Ok(journal)).await;
        assert_eq!(through, [deletion()]);
        assert!(problem.unwrap().starts_with("history entries were dropped: "));
    }

    #[tokio::test]
    async fn a_disk_that_hangs_bounds_what_waits_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, _) = open(Ok(dir.path().to_owned()), "https://one").await;
        let url = format!("sqlite://{}", dir.path().join("state.db").display());
        let mut other = sqlx::SqliteConnection::connect(&url).await.unwrap();
        sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();

        let (sender, effects) = mpsc::channel(4);
        let (recorder, mut rest) = record(journal, effects);
        let health = recorder.health.clone();
        let half = WAITING_MAX / 2;
        for batch in 0..4 {
            let entries =
                (0..half).map(|number| Effect::Journal(transition(&format!("{batch}-{number}"), 0)));
            sender.send(entries.chain([deletion()]).collect()).await.unwrap();
            assert_eq!(rest.recv().await.unwrap(), [deletion()], "nobody waits for the disk");
        }
        assert_eq!(health.problem().unwrap(), "history entries were dropped: the disk is too slow");

        sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
        drop(sender);
        recorder.finish().await;
        let kept: u32 =
            sqlx::query_scalar("SELECT count(*) FROM transitions").fetch_one(&mut other).await.unwrap();
        assert_eq!(kept, 2 * half, "what fitted was written once the disk answered");
    }
}
