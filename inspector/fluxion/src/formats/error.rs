//! Why a document can't be read.

use crate::graph::GraphError;

/// Why a document is refused. The texts name the step that failed, as flux-sched's own do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A GRUG recipe that is not XML or doesn't make sense.
    #[error("error in reading grug string; {0}")]
    Grug(String),
    /// A JGF document that is not JSON or lacks something.
    #[error("{step}: {what}.")]
    Jgf {
        /// The step of reading that failed.
        step: &'static str,
        /// What is wrong, and with which element.
        what: String,
    },
    /// An RV1 document with something missing, or with ranks and hosts that don't agree.
    #[error("{step}: {what}")]
    Rv1 {
        /// The step of reading that failed.
        step: &'static str,
        /// What is wrong, and where.
        what: String,
    },
    /// An hwloc topology that is not XML or lacks something.
    #[error("Error {0}; ")]
    Hwloc(String),
    /// The graph does not take it.
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
