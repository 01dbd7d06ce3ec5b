//! Pods being bound.

use crate::job::JobId;
use crate::model::{AllocationRecord, SharedStr};

/// A member being bound: not yet observed on its node.
#[derive(Clone, Debug)]
pub(super) struct Assumed {
    pub node: SharedStr,
    pub job: JobId,
    /// Number of failed bindings, on any node.
    pub failures: u32,
    /// How the last one failed.
    pub failure: Option<BindFailure>,
    pub(super) retry_at: Option<i64>,
    pub(super) record: AllocationRecord,
    /// When it was first sent.
    pub(super) since: i64,
    /// The API server has confirmed the binding.
    pub(super) done: bool,
}

/// The result of a failed binding.
#[derive(Clone, Debug)]
pub(super) struct BindFailure {
    pub text: String,
    /// Permanent, not transient.
    pub refused: bool,
}
