//! Configuration of a queue.

use std::sync::Arc;

use crate::placement::NodePolicy;

/// Which jobs may overtake others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueuePolicy {
    /// No job overtakes a waiting job.
    Fcfs,
    /// The first waiting job gets a reservation; others may overtake it if they don't delay it.
    #[default]
    Easy,
    /// Every waiting job gets a reservation, up to `max_reservation_depth`.
    Conservative,
    /// The first `reservation_depth` waiting jobs get a reservation.
    Hybrid,
}

/// What becomes of the reservations of a conservative queue in its next pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Planning {
    /// They are kept, and the schedule is compressed: each is only moved to an earlier start. A later one is planned only
    /// where a job with a higher priority, a lost node, an overrun or a change by a user makes it necessary.
    #[default]
    Compress,
    /// All of them are planned again, in queue order, as Fluxion does.
    Replan,
}

/// What happens to a partially bound gang when the bind deadline expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnPartialBind {
    /// It is kept as it is, and the audit reports it.
    Hold,
    /// All members are released, so that the whole gang is scheduled again.
    Release,
}

/// A named queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Its name.
    pub name: Arc<str>,
    /// Which jobs may overtake others.
    pub policy: QueuePolicy,
    /// Maximum number of jobs considered in one pass; at least 1. Jobs for which no start can be planned are not
    /// counted.
    pub queue_depth: usize,
    /// Number of reservations made in one pass with policy hybrid (default 64; easy always makes one).
    pub reservation_depth: usize,
    /// Maximum number of reservations made in one pass with policies conservative and hybrid.
    pub max_reservation_depth: usize,
    /// What becomes of reservations in the next pass with policy conservative. Those of other policies are always planned
    /// again.
    pub planning: Planning,
    /// Default duration in seconds; none: no limit.
    pub default_duration: Option<i64>,
    /// Assumed duration in seconds of jobs without a limit, for planning others behind them; none: nothing is planned
    /// behind them.
    pub assumed_duration: Option<i64>,
    /// Which of the suitable nodes are used.
    pub node_policy: NodePolicy,
    /// What happens to partially bound gangs; none: the setting for all queues.
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
            planning: Planning::default(),
            default_duration: None,
            assumed_duration: Some(3_600),
            node_policy: NodePolicy::Low,
            on_partial_bind: None,
        }
    }
}

impl QueueConfig {
    /// Whether reservations are kept from one pass to the next.
    pub fn keeps(&self) -> bool {
        self.policy == QueuePolicy::Conservative && self.planning == Planning::Compress
    }

    /// Maximum number of reservations made in one pass.
    pub fn reservations(&self) -> usize {
        match self.policy {
            QueuePolicy::Fcfs => 0,
            QueuePolicy::Easy => 1,
            QueuePolicy::Conservative => self.max_reservation_depth.min(self.queue_depth),
            QueuePolicy::Hybrid => self.reservation_depth.min(self.max_reservation_depth),
        }
    }
}
