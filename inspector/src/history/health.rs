//! Whether history is recorded, for users and metrics.

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::metrics::counter::Counter;
use tokio::sync::Semaphore;

use crate::view::text;

/// Maximum number of entries waiting to be written; more are dropped, and written again later as far as they are known.
pub(super) const WAITING_MAX: u32 = 100_000;

/// Whether the history is recorded; cheap to clone.
#[derive(Clone, Debug)]
pub struct HistoryHealth(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<Recorded>,
    /// Places for entries that wait to be written.
    room: Arc<Semaphore>,
    dropped: Counter,
}

#[derive(Debug, Default)]
struct Recorded {
    /// Since when it is not recorded (epoch seconds), and why.
    trouble: Option<(i64, String)>,
    /// Entries dropped until it was last recorded.
    dropped: u64,
}

impl Default for HistoryHealth {
    fn default() -> Self {
        Self::new(Counter::default())
    }
}

impl HistoryHealth {
    /// With the counter of dropped entries.
    pub(super) fn new(dropped: Counter) -> Self {
        let room = Arc::new(Semaphore::new(WAITING_MAX as usize));
        Self(Arc::new(Shared { state: Mutex::default(), room, dropped }))
    }

    /// The problem, as text for users.
    pub fn problem(&self) -> Option<String> {
        let state = self.lock();
        let (since, why) = state.trouble.as_ref()?;
        let (waiting, dropped) = (self.waiting(), self.dropped().saturating_sub(state.dropped));
        let dropped = if dropped > 0 { format!(", {dropped} dropped") } else { String::new() };
        let entries = if waiting == 1 { "entry pending" } else { "entries pending" };
        Some(format!(
            "history is not recorded since {}: {why} ({waiting} {entries}{dropped})",
            text::time(*since)
        ))
    }

    /// Number of entries that wait to be written.
    pub fn waiting(&self) -> usize {
        (WAITING_MAX as usize).saturating_sub(self.0.room.available_permits())
    }

    /// Number of entries dropped so far.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.get()
    }

    pub(super) fn room(&self) -> Arc<Semaphore> {
        Arc::clone(&self.0.room)
    }

    pub(super) fn add_dropped(&self, entries: usize) {
        self.0.dropped.inc_by(entries as u64);
    }

    /// It is not recorded, for this reason.
    pub(super) fn fails(&self, why: String) {
        let mut state = self.lock();
        let since =
            state.trouble.as_ref().map_or_else(|| jiff::Timestamp::now().as_second(), |(since, _)| *since);
        state.trouble = Some((since, why));
    }

    /// It is recorded (again).
    pub(super) fn works(&self) {
        *self.lock() = Recorded { trouble: None, dropped: self.dropped() };
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Recorded> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
