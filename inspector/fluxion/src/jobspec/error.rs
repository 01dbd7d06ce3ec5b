//! Why a jobspec is refused.

use thiserror::Error;

use super::yaml::YamlError;

/// A jobspec is refused; the text says what is wrong, in Fluxion's words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JobspecError {
    /// Not YAML, or too large a document.
    #[error(transparent)]
    Yaml(#[from] YamlError),
    /// A rule of the jobspec is broken.
    #[error("{0}")]
    Rule(String),
}

/// An error with its text.
pub(super) fn refuse<T>(text: impl Into<String>) -> Result<T, JobspecError> {
    Err(JobspecError::Rule(text.into()))
}
