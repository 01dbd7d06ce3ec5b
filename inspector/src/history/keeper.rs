//! Writes the history to its journal: only the leader if the journal is shared; again and again while it can't be written;
//! and all that the engine knows when entries were lost, or when another inspector was the leader before.

use std::sync::Arc;
use std::time::Duration;

use fluxion_scheduler::event::Event;
use fluxion_scheduler::job::JobId;
use fluxion_scheduler::record::JournalEntry;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch as signal};
use tokio::time::Instant;

use super::health::HistoryHealth;
use super::store::{HistoryError, JournalPlace, OpenJournal};
use crate::engine::EngineHandle;
use crate::health::Leadership;
use crate::journal::{Changes, Retention};
use crate::logs::Repeated;
use crate::metrics::{Metrics, Outcome};

/// Maximum number of changes in one transaction, unless a single job has more.
const CHANGES_MAX: usize = 10_000;
/// Time before the next attempt after a failure; doubles with each further one.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// How often what is too old is deleted.
const PRUNE: Duration = Duration::from_mins(5);

/// What is recorded, and where.
pub struct Recording {
    pub place: JournalPlace,
    pub retention: Retention,
    /// Knows everything, including what was not written.
    pub engine: EngineHandle,
    /// Who may write a journal that several inspectors share.
    pub leadership: signal::Receiver<Option<Leadership>>,
    pub metrics: Arc<Metrics>,
}

/// Entries on their way to the journal, and the places that they take until they are there.
pub(super) struct Waiting {
    pub(super) entries: Vec<JournalEntry>,
    pub(super) places: OwnedSemaphorePermit,
}

/// See the module documentation.
pub(super) struct HistoryTask {
    place: JournalPlace,
    store: Option<OpenJournal>,
    retention: Retention,
    engine: EngineHandle,
    leadership: signal::Receiver<Option<Leadership>>,
    health: HistoryHealth,
    metrics: Arc<Metrics>,
    /// The term in which we write, if we do.
    term: Option<u64>,
    /// Whether it has to be read first what the leader before this one, or we ourselves, recorded.
    unread: bool,
    /// Whether everything that the engine knows has to be written.
    incomplete: bool,
    /// Number of dropped entries that `incomplete` accounts for.
    dropped: u64,
    backlog: Changes,
    places: Vec<OwnedSemaphorePermit>,
    attempts: Attempts,
    prune_at: Instant,
}

/// When to try again.
struct Attempts {
    next: Option<Instant>,
    wait: Duration,
    complaints: Repeated,
}

impl HistoryTask {
    pub(super) fn new(recording: Recording, store: Option<OpenJournal>, health: HistoryHealth) -> Self {
        let Recording { place, retention, engine, leadership, metrics } = recording;
        Self {
            // What could not be read before the engine started is merged later.
            unread: store.is_none(),
            term: (!place.shared()).then_some(0),
            place,
            store,
            retention,
            engine,
            leadership,
            health,
            metrics,
            incomplete: false,
            dropped: 0,
            backlog: Changes::default(),
            places: Vec::new(),
            attempts: Attempts {
                next: None,
                wait: RETRY.0,
                complaints: Repeated::new(Duration::from_mins(5)),
            },
            prune_at: Instant::now(),
        }
    }

    /// Runs until no more entries come, and what there is has been written or can't be.
    pub(super) async fn run(mut self, mut waiting: mpsc::UnboundedReceiver<Waiting>) {
        loop {
            let next = self.next();
            tokio::select! {
                biased;
                first = waiting.recv() => match first {
                    Some(first) => {
                        self.take(first);
                        while self.backlog.len() < CHANGES_MAX && let Ok(more) = waiting.try_recv() {
                            self.take(more);
                        }
                    }
                    None => break,
                },
                changed = self.leadership.changed(), if self.place.shared() => {
                    if changed.is_err() {
                        break;
                    }
                    self.follow();
                }
                () = tokio::time::sleep_until(next) => {}
            }
            let dropped = self.health.dropped();
            self.incomplete |= std::mem::replace(&mut self.dropped, dropped) != dropped;
            if self.attempts.next.is_none_or(|next| next <= Instant::now()) {
                self.attempt().await;
            }
        }
        if !self.backlog.is_empty() {
            self.attempt().await;
        }
        if !self.backlog.is_empty() {
            tracing::warn!(entries = self.backlog.len(), "shutting down before all history was recorded");
        }
        if let Some(store) = self.store
            && let Err(error) = store.close(&self.place).await
        {
            tracing::warn!(%error, "failed to close the history");
        }
    }

    /// When there is something to do without another entry.
    fn next(&self) -> Instant {
        if self.term.is_none() {
            // Until we lead.
            return Instant::now() + PRUNE;
        }
        self.attempts
            .next
            .unwrap_or_else(|| if self.unread || self.incomplete { Instant::now() } else { self.prune_at })
    }

    /// A new term makes us the writer. The end of a term doesn't end that: the next leader does, by claiming the journal, so
    /// that what an orderly shutdown brings about is still recorded.
    fn follow(&mut self) {
        let held = self.leadership.borrow_and_update().as_ref().and_then(|leadership| leadership.held);
        let Some(term) = held.map(|term| term.number).filter(|term| Some(*term) != self.term) else {
            return;
        };
        (self.term, self.unread) = (Some(term), true);
        (self.attempts.next, self.attempts.wait) = (None, RETRY.0);
    }

    fn take(&mut self, waiting: Waiting) {
        if self.term.is_none() {
            return;
        }
        for entry in waiting.entries {
            self.backlog.add(entry);
        }
        match self.places.first_mut() {
            Some(places) => places.merge(waiting.places),
            None => self.places.push(waiting.places),
        }
    }

    fn discard(&mut self) {
        self.backlog = Changes::default();
        self.places.clear();
    }

    async fn attempt(&mut self) {
        let Some(term) = self.term else { return };
        let outcome = match self.work(term).await {
            Ok(()) => {
                if self.attempts.complaints.over() {
                    tracing::info!("history is recorded again");
                }
                self.health.works();
                (self.attempts.next, self.attempts.wait) = (None, RETRY.0);
                "success"
            }
            Err(HistoryError::Superseded) => {
                tracing::info!("another inspector records the history");
                self.term = None;
                self.store = None;
                self.discard();
                self.health.works();
                "superseded"
            }
            Err(HistoryError::NotYet) => {
                self.attempts.next = Some(Instant::now() + RETRY.0);
                return;
            }
            Err(HistoryError::Rejected(why)) => {
                // The same entries would be rejected again, and others would wait for them.
                self.health.add_dropped(self.backlog.len());
                self.dropped = self.health.dropped();
                self.discard();
                self.incomplete = false;
                self.fails(why);
                "rejected"
            }
            Err(HistoryError::Lost(why)) => {
                // After an error, it is not known what the transaction of a connection is in.
                self.store = None;
                self.fails(why);
                "failure"
            }
        };
        self.metrics.journal_writes.get_or_create(&Outcome { outcome }).inc();
    }

    fn fails(&mut self, why: String) {
        if let Some(left_out) = self.attempts.complaints.now(&why) {
            tracing::warn!(left_out, "history is not recorded: {why}; scheduling continues without it");
        }
        self.health.fails(why);
        self.attempts.next = Some(Instant::now() + self.attempts.wait);
        self.attempts.wait = self.attempts.wait.saturating_mul(2).min(RETRY.1);
    }

    /// Everything that there is to do.
    async fn work(&mut self, term: u64) -> Result<(), HistoryError> {
        let store = match &mut self.store {
            Some(store) => store,
            None => self.store.insert(self.place.open().await?),
        };
        if self.unread {
            // From here on, the leader before this one can't write.
            store.write(&self.place, &Changes::default(), term).await?;
            let snapshot = self.engine.snapshot();
            let settings = snapshot.state.settings();
            let since = jiff::Timestamp::now().as_second().saturating_sub(settings.keep_ended);
            for remembered in store.read(&self.place, since, settings.keep_ended_max).await? {
                self.engine.send(Event::Remembered(Box::new(remembered)));
            }
            (self.unread, self.incomplete) = (false, true);
        }
        if self.incomplete {
            // Only once all watches have synced, the engine knows what it was told.
            match self.engine.fresh().await {
                Ok(snapshot) if snapshot.state.whole() => {
                    let mut changes = Changes::default();
                    let jobs: Vec<JobId> = snapshot.state.jobs().map(|job| job.id).collect();
                    for job in jobs.into_iter().filter_map(|id| snapshot.state.job(id)) {
                        job.records().into_iter().for_each(|entry| changes.add(entry));
                        if changes.len() >= CHANGES_MAX {
                            store.write(&self.place, &std::mem::take(&mut changes), term).await?;
                        }
                    }
                    store.write(&self.place, &changes, term).await?;
                    self.incomplete = false;
                }
                Ok(_) => return Err(HistoryError::NotYet),
                Err(_) => {}
            }
        }
        if !self.backlog.is_empty() {
            store.write(&self.place, &self.backlog, term).await?;
            self.backlog = Changes::default();
            self.places.clear();
        }
        if self.prune_at <= Instant::now() {
            self.prune_at = Instant::now() + PRUNE;
            let deleted =
                store.prune(&self.place, self.retention, jiff::Timestamp::now().as_second()).await?;
            tracing::debug!(deleted, "deleted expired jobs from the history");
        }
        Ok(())
    }
}
