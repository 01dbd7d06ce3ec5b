//! Snapshots: what readers see, and the sequence that names it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use fluxion_scheduler::state::State;
use tokio::sync::watch;
use tokio::time::Instant;

/// What this inspector is among its likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It decides and binds.
    Leader,
    /// It sees everything and waits for the Lease.
    Follower,
    /// There is no cluster.
    Standalone,
}

impl Role {
    fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Leader,
            1 => Self::Follower,
            _ => Self::Standalone,
        }
    }
}

/// The role, which changes with the Lease.
#[derive(Clone)]
pub(super) struct SharedRole(Arc<AtomicU8>);

impl SharedRole {
    pub(super) fn set(&self, role: Role) {
        self.0.store(role as u8, Ordering::Release);
    }

    pub(super) fn get(&self) -> Role {
        Role::from_number(self.0.load(Ordering::Acquire))
    }
}

/// An immutable snapshot.
#[derive(Clone, Debug)]
pub struct Published {
    pub state: State,
    /// Names the snapshot. It only grows, over restarts too: it starts at epoch milliseconds times 2^20.
    pub sequence: u64,
    /// When this was last known to be what there is; epoch seconds.
    pub observed_at: i64,
    pub role: Role,
    /// How long the last complete pass over the queues took, with all that was done in the same steps.
    pub pass_seconds: f64,
}

pub(super) struct Publisher {
    current: Arc<ArcSwap<Published>>,
    changes: watch::Sender<u64>,
    role: SharedRole,
    sequence: u64,
    last: Instant,
    pass_seconds: f64,
}

impl Publisher {
    /// `now` is epoch milliseconds.
    pub(super) fn new(state: State, role: Role, now: i64) -> Self {
        let sequence = u64::try_from(now).unwrap_or(0).max(1) << 20;
        let first = Published { state, sequence, observed_at: now.div_euclid(1000), role, pass_seconds: 0.0 };
        Self {
            current: Arc::new(ArcSwap::from_pointee(first)),
            changes: watch::Sender::new(sequence),
            role: SharedRole(Arc::new(AtomicU8::new(role as u8))),
            sequence,
            last: Instant::now(),
            pass_seconds: 0.0,
        }
    }

    pub(super) fn current(&self) -> Arc<ArcSwap<Published>> {
        Arc::clone(&self.current)
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn role(&self) -> SharedRole {
        self.role.clone()
    }

    /// Whether the last snapshot says something else of our role than is true now.
    pub(super) fn role_changed(&self) -> bool {
        self.role.get() != self.current.load().role
    }

    /// Whether the last snapshot is at least that old.
    pub(super) fn due(&self, every: Duration) -> bool {
        self.last.elapsed() >= every
    }

    /// How long until it is.
    pub(super) fn wait(&self, every: Duration) -> Duration {
        every.saturating_sub(self.last.elapsed())
    }

    /// What the next snapshots say of the last pass.
    pub(super) fn pass_took(&mut self, took: Duration) {
        self.pass_seconds = took.as_secs_f64();
    }

    /// Makes `state` what readers see. Unchanged, it keeps its sequence and only its age is new.
    pub(super) fn publish(&mut self, state: &State, now: i64, changed: bool) {
        let role = self.role.get();
        let changed = changed || self.role_changed();
        if changed {
            self.sequence += 1;
        }
        let observed_at = now.div_euclid(1000);
        self.current.store(Arc::new(Published {
            state: state.clone(),
            sequence: self.sequence,
            observed_at,
            role,
            pass_seconds: self.pass_seconds,
        }));
        self.last = Instant::now();
        if changed {
            self.changes.send_replace(self.sequence);
        }
    }
}
