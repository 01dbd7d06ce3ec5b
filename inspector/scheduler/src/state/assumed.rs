//! Pods being bound.

use crate::constraint::volumes::ClaimKey;
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
    /// The binding was sent: before that, claims are prepared.
    pub(super) sent: bool,
    /// Claims without a volume, until it is sent.
    pub(super) claims: Vec<PendingClaim>,
}

/// A claim that is being prepared.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "independent of each other")]
pub(super) struct PendingClaim {
    pub key: ClaimKey,
    pub uid: SharedStr,
    /// The volume that is reserved for it; none: it is provisioned for the member's node.
    pub volume: Option<SharedStr>,
    /// This member's preparation writes to it, not another one's.
    pub writes: bool,
    /// There was no volume for it, or for another claim of those that start together.
    pub lacking: bool,
    /// When the API server has confirmed what we wrote.
    pub written: Option<i64>,
    pub retry_at: Option<i64>,
    /// The watch has reported our node.
    pub seen: bool,
    /// And then that it was removed.
    pub removed: bool,
    /// The API server has rejected what we wrote.
    pub refused: Option<SharedStr>,
}

/// The result of a failed binding.
#[derive(Clone, Debug)]
pub(super) struct BindFailure {
    pub text: String,
    /// Permanent, not transient.
    pub refused: bool,
}
