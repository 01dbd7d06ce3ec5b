//! Counts of members, and a planned start.

use serde::{Deserialize, Serialize};

use crate::model::SharedStr;

/// Members by how far they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    /// How many are wanted at once; `None` when the size is unknown or invalid.
    pub wanted: Option<u32>,
    /// There, not gated, not ended.
    pub seen: u32,
    pub gated: u32,
    /// Of an ended job: those that were bound in its last attempt.
    pub bound: u32,
    pub running: u32,
    /// In all attempts.
    pub ended: u32,
}

/// A planned start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    pub start: i64,
    pub end: Option<i64>,
    /// The start rests on the assumed end of a job without a time limit.
    pub start_assumed: bool,
    /// The end is assumed, or follows from such a start.
    pub end_assumed: bool,
    /// In natural order.
    pub nodes: Vec<SharedStr>,
}
