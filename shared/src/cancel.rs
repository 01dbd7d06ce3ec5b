//! Cancelling a job: what is deleted, and the outcome.

use serde::{Deserialize, Serialize};

use crate::meta::Quantities;

/// The response to `POST …/fluxionjobs/NAME/cancel`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CancelAnswer {
    pub api_version: String,
    /// `CancelAnswer`.
    pub kind: String,
    #[serde(default)]
    pub metadata: crate::meta::ObjectMeta,
    pub outcome: CancelOutcome,
    /// Human-readable message.
    pub message: String,
    /// Objects to delete so that the job ends and is not recreated.
    pub targets: Vec<CancelTarget>,
    /// Pods of other jobs that belong to the targets; if not empty, the request is refused unless explicitly allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_deletes: Vec<String>,
    /// Resources that cancelling the job frees.
    #[serde(default)]
    pub frees: Quantities,
    /// Jobs that would start next, as `KIND/NAME` in order, limited to those the caller is allowed to see.
    #[serde(default)]
    pub starts_next: Vec<String>,
    /// Number of Pods of the job that are deleted.
    #[serde(default)]
    pub pods: u32,
}

/// Outcome of a cancel request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CancelOutcome {
    /// The targets were deleted.
    Cancelled,
    /// Dry run: nothing was changed. In cluster mode, the caller deletes the targets.
    DryRun,
    /// The job is already being deleted.
    AlreadyEnding,
    /// The job has already finished.
    AlreadyEnded,
}

/// An object to delete, with `preconditions.uid`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct CancelTarget {
    pub api_version: String,
    pub kind: String,
    /// Plural resource name, as in the path.
    pub resource: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// `Background` or `Foreground`.
    pub propagation_policy: String,
}
