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
    /// What the error is about, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<StatusDetails>,
    /// HTTP status code.
    pub code: u16,
}

/// What an error is about; empty members are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusDetails {
    /// Name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// API group of the resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource, in plural, as kube-apiserver has it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// When to try again; 0 if that is not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

/// One of the causes of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusCause {
    /// Machine-readable: `ResourceVersionTooLarge`, `FieldValueInvalid` …
    pub reason: String,
    pub message: String,
    /// The field or parameter, if it is one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(seconds: &u32) -> bool {
    *seconds == 0
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
