//! How reliable decisions and responses are: whether all watches have synced, how old their data is, and whether this
//! inspector is the leader.
//!
//! Watches and the Lease task report here; the HTTP API shows it, and nothing is bound while a watch is broken.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch as signal};

mod leadership;
mod watched;

pub use leadership::{Leadership, Term, Trouble};
pub(crate) use watched::{IDLE, WATCH_SECONDS};
pub use watched::{STALE_AFTER, Verb, WatchProblem, Watched};

/// See the module documentation. Without watches and leader election (standalone mode), it is always healthy.
#[derive(Debug, Default)]
pub struct Health {
    watches: Mutex<Vec<Arc<Watched>>>,
    leadership: signal::Sender<Option<Leadership>>,
    /// Whether all watches have synced once.
    synced: AtomicBool,
    changed: Arc<Notify>,
}

impl Health {
    /// Registers another watched kind.
    pub fn watch(&self, kind: &'static str, resource: &'static str) -> Arc<Watched> {
        let watched = Arc::new(Watched::new(kind, resource, true, Arc::clone(&self.changed)));
        self.lock().push(Arc::clone(&watched));
        watched
    }

    /// A watch that is not one of these: nothing depends on it.
    pub fn aside(kind: &'static str, resource: &'static str) -> Arc<Watched> {
        Arc::new(Watched::new(kind, resource, false, Arc::default()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Watched>>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The watches, in the order in which they were started.
    pub fn watches(&self) -> Vec<Arc<Watched>> {
        self.lock().clone()
    }

    /// Returns when something may have changed, or after a moment, because ages increase by themselves.
    pub async fn changed(&self) {
        const MOMENT: Duration = Duration::from_millis(500);
        // A timeout counts as a change.
        let _ = tokio::time::timeout(MOMENT, self.changed.notified()).await;
    }

    /// Whether every watch has received its initial list and is established; once true, it stays true.
    pub fn synced(&self) -> bool {
        if !self.synced.load(Ordering::Acquire) {
            let all = self.lock().iter().all(|watched| watched.delivered());
            self.synced.store(all, Ordering::Release);
        }
        self.synced.load(Ordering::Acquire)
    }

    /// The watches whose data is too old for scheduling.
    pub fn problems(&self) -> Vec<WatchProblem> {
        let now = Instant::now();
        self.lock().iter().filter_map(|watched| watched.problem(now)).collect()
    }

    /// Why the inspector is not ready, in one line; none if it is.
    pub fn unready(&self) -> Option<String> {
        let problems = self.problems();
        if !problems.is_empty() {
            let texts: Vec<String> = problems.into_iter().map(|problem| problem.text).collect();
            return Some(texts.join("; "));
        }
        if self.synced() {
            return None;
        }
        let missing: Vec<&str> = self
            .lock()
            .iter()
            .filter(|watched| !watched.delivered())
            .map(|watched| watched.resource())
            .collect();
        Some(format!("waiting for the initial lists: {}", missing.join(", ")))
    }

    /// The minimum age of the data: that of the oldest watch that is not healthy.
    fn age(&self) -> Duration {
        let now = Instant::now();
        self.lock().iter().filter_map(|watched| watched.lag(now)).max().unwrap_or_default()
    }

    /// When all data was last known to be current, as of `now` (epoch seconds); none if it is current.
    pub fn last_current(&self, now: i64) -> Option<i64> {
        let age = i64::try_from(self.age().as_secs()).unwrap_or(i64::MAX);
        let oldest = (age > 0).then(|| now.saturating_sub(age));
        let unreachable = self.leadership().and_then(|leadership| leadership.unreachable_since());
        [oldest, unreachable].into_iter().flatten().min()
    }

    /// The leader election state; none without leader election.
    pub fn leadership(&self) -> Option<Leadership> {
        self.leadership.borrow().clone()
    }

    /// Notifies of changes of the leader election state. A term also ends by itself, without a change.
    pub fn follow_leadership(&self) -> signal::Receiver<Option<Leadership>> {
        self.leadership.subscribe()
    }

    /// Sets the leader election state.
    pub fn set_leadership(&self, leadership: Leadership) {
        let changed = self.leadership.send_if_modified(|known| {
            let changed = known.as_ref() != Some(&leadership);
            *known = Some(leadership);
            changed
        });
        if changed {
            self.changed.notify_one();
        }
    }

    /// What readers need to know about the data besides its age.
    pub fn warning(&self) -> Option<String> {
        if let Some(text) = self.leadership().and_then(|leadership| leadership.warning()) {
            return Some(text);
        }
        let problems = self.problems();
        let first = problems.first()?;
        let more = match problems.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        Some(format!("binding is paused: {}{more}", first.text))
    }
}

#[cfg(test)]
mod tests;
