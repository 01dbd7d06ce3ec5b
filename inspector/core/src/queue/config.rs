//! How a queue is run.

use std::sync::Arc;

use crate::matcher::gang::NodePolicy;

/// Who may pass whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueuePolicy {
    /// Nobody passes a job that waits.
    Fcfs,
    /// The first job that waits gets a reservation; others may pass where they do not delay it.
    #[default]
    Easy,
    /// Every job that waits gets a reservation.
    Conservative,
    /// The first `reservation_depth` jobs that wait get one.
    Hybrid,
}

/// A named queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Its name.
    pub name: Arc<str>,
    /// Who may pass whom.
    pub policy: QueuePolicy,
    /// Jobs looked at in one pass, at most.
    pub queue_depth: usize,
    /// Reservations made in one pass, at most; easy makes one and conservative one for every job whatever it says.
    pub reservation_depth: usize,
    /// Seconds for jobs that say nothing; none: without a limit.
    pub default_duration: Option<i64>,
    /// Which of the nodes that fit are taken.
    pub node_policy: NodePolicy,
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            name: "default".into(),
            policy: QueuePolicy::Easy,
            queue_depth: 10_000,
            reservation_depth: 1,
            default_duration: None,
            node_policy: NodePolicy::Low,
        }
    }
}

impl QueueConfig {
    /// Reservations that one pass makes, at most.
    pub fn reservations(&self) -> usize {
        match self.policy {
            QueuePolicy::Fcfs => 0,
            QueuePolicy::Easy => 1,
            QueuePolicy::Conservative => usize::MAX,
            QueuePolicy::Hybrid => self.reservation_depth,
        }
    }
}
