//! Jobspec errors.

use thiserror::Error;

use super::yaml::YamlError;

/// Invalid jobspec; the message is the same as Fluxion's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JobspecError {
    /// The document is not YAML, or too large.
    #[error(transparent)]
    Yaml(#[from] YamlError),
    /// The document is not a valid jobspec.
    #[error("{0}")]
    Rule(String),
}

/// An error with its text.
pub(super) fn refuse<T>(text: impl Into<String>) -> Result<T, JobspecError> {
    Err(JobspecError::Rule(text.into()))
}
