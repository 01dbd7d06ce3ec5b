//! A handle to the engine loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use fluxion_scheduler::event::Event;
use tokio::sync::watch;

use super::inbox::Inbox;
use super::publish::{Published, Publisher, Role, SharedRole};
use crate::supervise::{Failure, Pulse};
use crate::telemetry::Tracer;

/// How the loop ended.
pub(super) type End = Result<(), Failure>;

/// The loop has ended: the inspector is shutting down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the engine has stopped: the inspector is shutting down")]
pub struct Stopped;

/// Maximum time between a panic of the loop dropping its values and its end being known.
const UNWINDING: Duration = Duration::from_secs(1);

/// Sends events to the loop and reads its snapshots; cheap to clone.
#[derive(Clone)]
pub struct EngineHandle {
    inbox: Arc<Inbox>,
    current: Arc<ArcSwap<Published>>,
    changes: watch::Receiver<u64>,
    role: SharedRole,
    asked: Arc<AtomicU64>,
    answers: watch::Receiver<u64>,
    pulse: Pulse,
    end: watch::Receiver<Option<End>>,
    tracer: Tracer,
}

impl EngineHandle {
    pub(super) fn new(
        inbox: Arc<Inbox>,
        publisher: &Publisher,
        asked: Arc<AtomicU64>,
        answers: watch::Receiver<u64>,
        pulse: Pulse,
        end: watch::Receiver<Option<End>>,
    ) -> Self {
        let (current, changes, role) = (publisher.current(), publisher.changes(), publisher.role());
        Self { inbox, current, changes, role, asked, answers, pulse, end, tracer: Tracer::default() }
    }

    pub(super) fn with_tracer(mut self, tracer: Tracer) -> Self {
        self.tracer = tracer;
        self
    }

    /// Records spans of what is asked of the loop, and of what its effects cause.
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Sends an event; never blocks. It replaces an earlier event about the same object that the loop has not received
    /// yet.
    pub fn send(&self, event: Event) {
        self.inbox.push(event);
    }

    /// The latest snapshot.
    pub fn snapshot(&self) -> Arc<Published> {
        self.current.load_full()
    }

    /// A snapshot that includes everything sent before this call; the loop publishes it immediately.
    pub async fn fresh(&self) -> Result<Arc<Published>, Stopped> {
        let request = self.asked.fetch_add(1, Ordering::AcqRel) + 1;
        self.inbox.wake();
        let mut answers = self.answers.clone();
        answers.wait_for(|answered| *answered >= request).await.map_err(|_| Stopped)?;
        Ok(self.snapshot())
    }

    /// Notifies of the sequence of each new snapshot (if there were several, the latest). Its sender is dropped when
    /// the loop has ended.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// Number of events waiting to be processed by the loop.
    pub fn waiting(&self) -> usize {
        self.inbox.len()
    }

    /// Sets our role to leader in subsequent snapshots, whose sequence starts no lower than this term (below 2^43)
    /// times 2^20.
    pub fn lead(&self, term: u64) {
        self.role.lead(term);
        self.inbox.wake();
    }

    /// Sets our role in subsequent snapshots.
    pub fn set_role(&self, role: Role) {
        self.role.set(role);
        self.inbox.wake();
    }

    /// Ends the loop after the events sent before; a last snapshot is published.
    pub fn stop(&self) {
        self.inbox.stop();
    }

    /// The loop's heartbeat: at least one per second, unless a step takes longer.
    pub fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// Waits until the loop has ended for any reason other than [`Self::stop`].
    pub async fn failed(&self) -> Failure {
        let mut end = self.end.clone();
        match end.wait_for(Option::is_some).await.map(|end| end.clone()) {
            Ok(Some(Ok(()))) if self.inbox.stopped() => std::future::pending().await,
            Ok(Some(Err(failure))) => failure,
            _ => Failure::Ended(self.pulse.what().to_owned()),
        }
    }

    /// The root cause of another component's failure: if it merely ended because the loop has failed or is about to,
    /// the loop's failure.
    pub async fn cause_of(&self, failure: Failure) -> Failure {
        if !matches!(failure, Failure::Ended(_)) {
            return failure;
        }
        tokio::time::timeout(UNWINDING, self.failed()).await.unwrap_or(failure)
    }

    /// Waits until the loop has ended for any reason.
    pub async fn ended(&self) {
        // Its sender is dropped after reporting the end.
        let _ = self.end.clone().wait_for(Option::is_some).await;
    }

    /// Why the loop has ended, if it ended without being stopped.
    pub fn failure(&self) -> Option<Failure> {
        match &*self.end.borrow() {
            Some(Err(failure)) => Some(failure.clone()),
            Some(Ok(())) if !self.inbox.stopped() => Some(Failure::Ended(self.pulse.what().to_owned())),
            _ => None,
        }
    }
}
