//! Member counts, and a planned start.

use serde::{Deserialize, Serialize};

use crate::model::SharedStr;

/// Members by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members {
    /// Number of members required at once; `None` if the size is unknown or invalid.
    pub wanted: Option<u32>,
    /// Existing, not gated, not finished.
    pub seen: u32,
    pub gated: u32,
    /// For a finished job: those bound in its last attempt.
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
    /// The start depends on the assumed end of a job without a time limit.
    pub start_assumed: bool,
    /// The end is assumed, or depends on such a start.
    pub end_assumed: bool,
    /// In natural order.
    pub nodes: Vec<SharedStr>,
}
