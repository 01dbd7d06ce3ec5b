//! Errors of the document readers.

use crate::graph::GraphError;

/// Why a document could not be read. As in flux-sched, messages include the step that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A GRUG recipe is not XML or is invalid.
    #[error("error in reading grug string; {0}")]
    Grug(String),
    /// A JGF document is not JSON or is incomplete.
    #[error("{step}: {what}.")]
    Jgf {
        /// The step that failed.
        step: &'static str,
        /// The error and the affected element.
        what: String,
    },
    /// An RV1 document is incomplete, or its ranks and hosts do not match.
    #[error("{step}: {what}")]
    Rv1 {
        /// The step that failed.
        step: &'static str,
        /// The error and its location.
        what: String,
    },
    /// An hwloc topology is not XML or is incomplete.
    #[error("Error {0}; ")]
    Hwloc(String),
    /// The graph rejected a change.
    #[error("{0}")]
    Graph(#[from] GraphError),
}

impl ReadError {
    pub(super) fn jgf(step: &'static str, what: impl Into<String>) -> Self {
        Self::Jgf { step, what: what.into() }
    }

    pub(super) fn rv1(step: &'static str, what: impl Into<String>) -> Self {
        Self::Rv1 { step, what: what.into() }
    }
}
