//! Cancelling a job: what goes, and what came of it.

use serde::{Deserialize, Serialize};

use crate::meta::Quantities;

/// The answer to `POST …/fluxionjobs/NAME/cancel`.
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
    /// For a person: what happened or what to do.
    pub message: String,
    /// What has to be deleted for the job to end and stay ended.
    pub targets: Vec<CancelTarget>,
    /// Pods of the targets that belong to other jobs; not empty means that it is refused unless asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_deletes: Vec<String>,
    /// What ending the job gives back.
    #[serde(default)]
    pub frees: Quantities,
    /// `KIND/NAME` of jobs that would start then, in order, as far as the asker may see them.
    #[serde(default)]
    pub starts_next: Vec<String>,
    /// The number of the job's Pods that go.
    #[serde(default)]
    pub pods: u32,
}

/// How a cancel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CancelOutcome {
    /// Done: the targets are deleted.
    Cancelled,
    /// Only asked; nothing was changed. In cluster mode the caller deletes the targets itself.
    DryRun,
    /// It is being deleted already.
    AlreadyEnding,
    /// It has ended before.
    AlreadyEnded,
}

/// An object to delete, with `preconditions.uid`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct CancelTarget {
    pub api_version: String,
    pub kind: String,
    /// The plural, as it stands in the path.
    pub resource: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// `Background` or `Foreground`.
    pub propagation_policy: String,
}
