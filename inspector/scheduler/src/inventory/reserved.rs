//! Reservations on one node.

use std::sync::{Arc, OnceLock};

use super::reservation::NodeReservation;
use super::timeline::Timeline;

/// The reservations on one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Reserved {
    pub(super) entries: Vec<NodeReservation>,
    /// Availability over time, created on first use.
    pub(super) timeline: OnceLock<Arc<Timeline>>,
}

impl Reserved {
    /// When the first promise begins, epoch seconds.
    pub(super) fn next(&self) -> Option<i64> {
        self.entries.iter().map(|entry| entry.start).min()
    }
}
