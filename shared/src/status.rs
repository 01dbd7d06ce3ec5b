//! Errors as Kubernetes `Status` objects.

use serde::{Deserialize, Serialize};

/// A Kubernetes `Status`, returned mostly for errors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    pub api_version: String,
    pub kind: String,
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// `Success` or `Failure`.
    pub status: String,
    pub message: String,
    /// Machine-readable reason: `NotFound`, `Forbidden`, `Unauthorized`, `Conflict`, `Expired` …
    pub reason: String,
    /// HTTP status code.
    pub code: u16,
}

impl Status {
    /// Creates a failure; `code` is the HTTP status code.
    pub fn failure(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self {
            api_version: "v1".to_owned(),
            kind: "Status".to_owned(),
            status: "Failure".to_owned(),
            message: message.into(),
            reason: reason.to_owned(),
            code,
            ..Self::default()
        }
    }
}
