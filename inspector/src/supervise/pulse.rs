//! Heartbeats of loops.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::failure::Failure;

/// Interval of the heartbeats of a waiting task.
const BEAT: Duration = Duration::from_secs(1);

/// Updated by a loop in each iteration, read by anyone who needs to know whether it is alive; cheap to clone.
#[derive(Clone, Debug)]
pub struct Pulse {
    what: Arc<str>,
    began: Instant,
    /// Milliseconds since `began`.
    last: Arc<AtomicU64>,
}

impl Pulse {
    /// For a loop that starts now; `what` is its name in errors.
    pub fn new(what: &str) -> Self {
        Self { what: what.into(), began: Instant::now(), last: Arc::default() }
    }

    /// Records a heartbeat.
    pub fn beat(&self) {
        let passed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(passed, Ordering::Release);
    }

    /// Time since the last heartbeat.
    pub fn silent(&self) -> Duration {
        self.began.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Acquire)))
    }

    /// The name of the loop.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Runs `work`, with heartbeats while it waits or makes progress.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            self.beat();
            if let Ok(done) = tokio::time::timeout(BEAT, &mut work).await {
                return done;
            }
        }
    }
}

/// Loops, and the maximum time without a heartbeat.
#[derive(Clone, Debug)]
pub struct Liveness {
    pulses: Vec<Pulse>,
    limit: Duration,
}

impl Liveness {
    pub fn new(pulses: Vec<Pulse>, limit: Duration) -> Self {
        Self { pulses, limit }
    }

    /// The loop without a heartbeat for the longest time, if that is too long. Time before `since` is not counted.
    pub fn stuck(&self, since: Option<Instant>) -> Option<Failure> {
        let silent = |pulse: &Pulse| pulse.silent().min(since.map_or(Duration::MAX, |since| since.elapsed()));
        let pulse = self.pulses.iter().max_by_key(|pulse| pulse.silent())?;
        if silent(pulse) < self.limit {
            return None;
        }
        Some(Failure::Stuck { what: pulse.what().to_owned(), seconds: pulse.silent().as_secs() })
    }

    /// The same loops with a longer limit.
    #[must_use]
    pub fn times(mut self, factor: u32) -> Self {
        self.limit *= factor;
        self
    }
}
