//! The job history of a cluster, stored in a journal (a file in the state directory, or a database) so that it survives
//! restarts.
//!
//! No decision depends on it. If it can't be opened or written, there is no history, which is reported, and everything
//! else works as usual.

use std::sync::Arc;
use std::time::Duration;

use fluxion_scheduler::event::{Effect, Event};
use fluxion_scheduler::record::{JournalEntry, Remembered};
use fluxion_scheduler::state::Settings;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

mod health;
mod keeper;
mod location;
mod store;

pub use health::HistoryHealth;
pub use keeper::Recording;
pub use location::{InvalidUrl, JournalUrl, Location};
pub use store::{ClusterUid, JournalPlace};

use health::WAITING_MAX;
use keeper::{HistoryTask, Waiting};
use store::{HistoryError, OpenJournal};

/// Maximum time that a start waits for a database.
const PATIENCE: Duration = Duration::from_secs(5);

/// A journal that was opened, or that could not be.
struct Opened(Option<OpenJournal>);

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

/// Starts to record effects, after the engine was told what was recorded before. The returned receiver has all other effects.
pub async fn start(
    mut recording: Recording,
    settings: &Settings,
    effects: mpsc::Receiver<Vec<Effect>>,
) -> (Recorder, mpsc::Receiver<Vec<Effect>>) {
    let (opened, remembered) = open(&mut recording.place, settings).await;
    for past in remembered {
        recording.engine.send(Event::Remembered(Box::new(past)));
    }
    record(recording, opened, effects)
}

/// Opens a journal, and reads what an engine with these settings is to know. A database that doesn't respond is not waited
/// for: what it has is merged later.
async fn open(place: &mut JournalPlace, settings: &Settings) -> (Opened, Vec<Remembered>) {
    let since = jiff::Timestamp::now().as_second().saturating_sub(settings.keep_ended);
    let shared = place.shared();
    let reading = async {
        let mut store = place.open().await?;
        let remembered = store.read(place, since, settings.keep_ended_max).await?;
        Ok::<_, HistoryError>((store, remembered))
    };
    let read = if shared {
        let read = tokio::time::timeout(PATIENCE, reading).await;
        read.unwrap_or_else(|_| Err(HistoryError::lost("the database does not respond")))
    } else {
        reading.await
    };
    match read {
        // Only the leader keeps a connection.
        Ok((store, remembered)) => (Opened(Some(store).filter(|_| !shared)), remembered),
        Err(error) => {
            tracing::warn!("failed to read the history: {error}");
            (Opened(None), Vec::new())
        }
    }
}

/// Records journal effects and passes all others on to the returned receiver. Neither the engine nor the writer ever
/// waits for the journal.
fn record(
    recording: Recording,
    opened: Opened,
    mut effects: mpsc::Receiver<Vec<Effect>>,
) -> (Recorder, mpsc::Receiver<Vec<Effect>>) {
    let health = HistoryHealth::new(recording.metrics.journal_dropped.clone());
    let (entries, waiting) = mpsc::unbounded_channel();
    let writing = tokio::spawn(HistoryTask::new(recording, opened.0, health.clone()).run(waiting));
    // The same capacity as between engine and writer: this only sits in between.
    let (forward, rest) = mpsc::channel(effects.max_capacity());
    let (lost, room) = (health.clone(), health.room());
    let splitting = tokio::spawn(async move {
        while let Some(batch) = effects.recv().await {
            let (kept, others) = split(batch);
            if !kept.is_empty() {
                let places = u32::try_from(kept.len()).unwrap_or(WAITING_MAX).min(WAITING_MAX);
                match Arc::clone(&room).try_acquire_many_owned(places) {
                    // Nobody receives after the end.
                    Ok(places) => drop(entries.send(Waiting { entries: kept, places })),
                    Err(_) => lost.add_dropped(kept.len()),
                }
            }
            if !others.is_empty() && forward.send(others).await.is_err() {
                return;
            }
        }
    });
    (Recorder { health, tasks: [splitting, writing] }, rest)
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

#[cfg(test)]
mod tests;
