//! Pods that were sent to a node and were not seen there yet.

use crate::job::JobId;
use crate::model::{AllocationRecord, SharedStr};

/// A member that was sent to a node and was not seen there yet.
#[derive(Clone, Debug)]
pub(super) struct Assumed {
    pub node: SharedStr,
    pub job: JobId,
    /// Bindings that failed so far, to whichever node.
    pub failures: u32,
    /// How the last one failed.
    pub failure: Option<BindFailure>,
    pub(super) retry_at: Option<i64>,
    pub(super) record: AllocationRecord,
    /// When it was sent first.
    pub(super) since: i64,
    /// The API server has said that it is bound.
    pub(super) done: bool,
}

/// An answer to a binding.
#[derive(Clone, Debug)]
pub(super) struct BindFailure {
    pub text: String,
    /// For good, not for the moment.
    pub refused: bool,
}
