//! How a queue is run.

use std::sync::Arc;

use crate::placement::NodePolicy;

/// Who may pass whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueuePolicy {
    /// Nobody passes a job that waits.
    Fcfs,
    /// The first job that waits gets a reservation; others may pass where they do not delay it.
    #[default]
    Easy,
    /// Every job that waits gets a reservation, up to `max_reservation_depth`.
    Conservative,
    /// The first `reservation_depth` jobs that wait get one.
    Hybrid,
}

/// What becomes of a gang of which only a part could be bound when the bind deadline is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnPartialBind {
    /// It stands as it is, and the audit says so.
    Hold,
    /// Every member is let go, so that the whole gathers again.
    Release,
}

/// A named queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Its name.
    pub name: Arc<str>,
    /// Who may pass whom.
    pub policy: QueuePolicy,
    /// Jobs looked at in one pass, at most; at least 1. Jobs for which not even a start can be planned do not
    /// count.
    pub queue_depth: usize,
    /// Reservations that hybrid makes in one pass, at most (default 64; easy makes one, whatever this says).
    pub reservation_depth: usize,
    /// Reservations that conservative and hybrid make in one pass, at most.
    pub max_reservation_depth: usize,
    /// Seconds for jobs that say nothing; none: without a limit.
    pub default_duration: Option<i64>,
    /// Seconds that jobs without a limit are assumed to take when others are planned behind them; none: nothing is
    /// planned behind them.
    pub assumed_duration: Option<i64>,
    /// Which of the nodes that fit are taken.
    pub node_policy: NodePolicy,
    /// What becomes of half-bound gangs; none: what is set for all queues.
    pub on_partial_bind: Option<OnPartialBind>,
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            name: "default".into(),
            policy: QueuePolicy::Easy,
            queue_depth: 10_000,
            reservation_depth: 64,
            max_reservation_depth: 100_000,
            default_duration: None,
            assumed_duration: Some(3_600),
            node_policy: NodePolicy::Low,
            on_partial_bind: None,
        }
    }
}

impl QueueConfig {
    /// Reservations that one pass makes, at most.
    pub fn reservations(&self) -> usize {
        match self.policy {
            QueuePolicy::Fcfs => 0,
            QueuePolicy::Easy => 1,
            QueuePolicy::Conservative => self.max_reservation_depth.min(self.queue_depth),
            QueuePolicy::Hybrid => self.reservation_depth.min(self.max_reservation_depth),
        }
    }
}
