//! State kept between the slices of a pass, and between passes.

use std::sync::Arc;

use imbl::OrdMap;

use crate::job::Reason;
use crate::model::SharedStr;
use crate::queue::Carry;
use crate::request::Request;

/// Results of a queue's last complete pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassReport {
    /// Epoch seconds.
    pub at: i64,
    pub tried: u32,
    pub started: u32,
    /// Number of complete passes over this queue since the start of the engine.
    pub passes: u64,
}

/// The pass over the queues, which may be split over several steps.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "independent of each other")]
pub(super) struct PassState {
    /// There is a job that has not been considered yet.
    pub wanted: bool,
    /// The inventory's generations as of the last pass.
    pub(super) seen: (u64, u64),
    /// An interrupted pass: its queue, and the position in it.
    pub(super) cut: Option<(usize, Carry)>,
    /// Results of the pass in that queue before it was interrupted.
    pub(super) before_cut: PassReport,
    /// In the current pass: a job was refused because of reservations, and whether others started after that.
    pub(super) behind: bool,
    pub(super) outdated: bool,
    /// Something happened since the last complete pass that kept reservations did not foresee.
    pub(super) disturbed: bool,
    /// When the next pass is due because of time alone.
    pub(super) due: Option<i64>,
    pub(super) at: i64,
    pub(super) reports: OrdMap<SharedStr, PassReport>,
    /// Known results of the last pass of each queue.
    pub(super) memory: OrdMap<SharedStr, Arc<crate::queue::KnownFailures>>,
    /// Satisfiability of requests, for one generation of the graph.
    pub(super) verdicts: OrdMap<Arc<Request>, Option<Arc<Reason>>>,
    pub(super) verdicts_of: u64,
}
