//! What is kept between the slices of a pass, and between passes.

use std::sync::Arc;

use imbl::OrdMap;

use crate::job::Reason;
use crate::model::SharedStr;
use crate::queue::Carry;
use crate::request::Request;

/// What a queue's last complete pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassReport {
    /// Epoch seconds.
    pub at: i64,
    pub tried: u32,
    pub started: u32,
}

/// The pass over the queues, which may be cut into several steps.
#[derive(Clone, Debug, Default)]
pub(super) struct PassState {
    /// A job came that was not tried yet.
    pub wanted: bool,
    /// The inventory's generations that the last pass saw.
    pub(super) seen: (u64, u64),
    /// A pass was cut off: the queue it stands in, and where.
    pub(super) cut: Option<(usize, Carry)>,
    /// What the pass did in that queue before it was cut off.
    pub(super) before_cut: PassReport,
    /// Of the pass so far: a job was refused because of promises, and whether others started after that.
    pub(super) behind: bool,
    pub(super) outdated: bool,
    /// When time alone calls for the next one.
    pub(super) due: Option<i64>,
    pub(super) at: i64,
    pub(super) reports: OrdMap<SharedStr, PassReport>,
    /// What the last pass of each queue knows of requests that fail.
    pub(super) memory: OrdMap<SharedStr, Arc<crate::queue::KnownFailures>>,
    /// Whether a request can ever be met, for one generation of the graph.
    pub(super) verdicts: OrdMap<Arc<Request>, Option<Arc<Reason>>>,
    pub(super) verdicts_of: u64,
}
