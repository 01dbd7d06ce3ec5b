//! Snapshots: the state that readers see, identified by a sequence number.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use fluxion_scheduler::state::State;
use tokio::sync::watch;
use tokio::time::Instant;

/// The role of this inspector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It schedules and binds.
    Leader,
    /// It receives all events and waits for the Lease.
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

/// The role, which changes with the Lease, and the number of our last term as leader.
#[derive(Clone)]
pub(super) struct SharedRole {
    role: Arc<AtomicU8>,
    term: Arc<AtomicU64>,
}

impl SharedRole {
    pub(super) fn set(&self, role: Role) {
        self.role.store(role as u8, Ordering::Release);
    }

    /// Sets the role to leader.
    pub(super) fn lead(&self, term: u64) {
        // Whoever sees the role sees its term.
        self.term.store(term, Ordering::Release);
        self.set(Role::Leader);
    }

    pub(super) fn get(&self) -> Role {
        Role::from_number(self.role.load(Ordering::Acquire))
    }

    fn term(&self) -> u64 {
        self.term.load(Ordering::Acquire)
    }
}

/// An immutable snapshot.
#[derive(Clone, Debug)]
pub struct Published {
    pub state: State,
    /// Identifies the snapshot. It only increases, across restarts and from one leader to the next: it starts at the
    /// time of the start (epoch milliseconds) or the number of the leader's term, times 2^20.
    pub sequence: u64,
    /// The sequence of the first snapshot of this process, or of its last term as leader. Other inspectors may have
    /// published other snapshots before.
    pub since: u64,
    /// The number of this process' last term as leader; zero: none.
    pub term: u64,
    /// When this was last known to be current; epoch seconds.
    pub observed_at: i64,
    pub role: Role,
    /// Duration of the last complete pass over the queues, including everything done in the same steps.
    pub pass_seconds: f64,
}

pub(super) struct Publisher {
    current: Arc<ArcSwap<Published>>,
    changes: watch::Sender<u64>,
    role: SharedRole,
    sequence: u64,
    since: u64,
    term: u64,
    last: Instant,
    pass_seconds: f64,
}

impl Publisher {
    /// `now` is epoch milliseconds.
    pub(super) fn new(state: State, role: Role, now: i64) -> Self {
        let sequence = u64::try_from(now).unwrap_or(0).max(1) << 20;
        let first = Published {
            state,
            sequence,
            since: sequence,
            term: 0,
            observed_at: now.div_euclid(1000),
            role,
            pass_seconds: 0.0,
        };
        Self {
            current: Arc::new(ArcSwap::from_pointee(first)),
            changes: watch::Sender::new(sequence),
            role: SharedRole { role: Arc::new(AtomicU8::new(role as u8)), term: Arc::default() },
            sequence,
            since: sequence,
            term: 0,
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

    /// Whether our role or term has changed since the last snapshot.
    pub(super) fn role_changed(&self) -> bool {
        self.role.get() != self.current.load().role || self.role.term() != self.term
    }

    /// Whether the last snapshot is at least that old.
    pub(super) fn due(&self, every: Duration) -> bool {
        self.last.elapsed() >= every
    }

    /// How long until it is.
    pub(super) fn wait(&self, every: Duration) -> Duration {
        every.saturating_sub(self.last.elapsed())
    }

    /// Sets the duration of the last pass in subsequent snapshots.
    pub(super) fn pass_took(&mut self, took: Duration) {
        self.pass_seconds = took.as_secs_f64();
    }

    /// Whether the last pass took at least that long.
    pub(super) fn passes_take(&self, long: Duration) -> bool {
        self.pass_seconds >= long.as_secs_f64()
    }

    /// Publishes `state` to readers. If unchanged, it keeps its sequence and only its age is updated.
    pub(super) fn publish(&mut self, state: State, now: i64, changed: bool) {
        let changed = changed || self.role_changed();
        let (role, term) = (self.role.get(), self.role.term());
        if changed {
            self.sequence += 1;
        }
        if self.term != term {
            self.term = term;
            self.sequence = self.sequence.max(term << 20);
            self.since = self.sequence;
        }
        let observed_at = now.div_euclid(1000);
        self.current.store(Arc::new(Published {
            state,
            sequence: self.sequence,
            since: self.since,
            term,
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
