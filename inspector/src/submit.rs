//! Submission of manifests: called by the HTTP API and implemented by standalone mode.

use futures::future::BoxFuture;

/// Accepts manifests.
pub trait Submit: Send + Sync {
    /// Submits every object in the text (YAML or JSON, several documents), up to the first one that is rejected.
    /// Objects without a namespace get this one. What is accepted is on disk when this returns.
    fn submit(&self, namespace: String, manifests: String) -> BoxFuture<'_, Result<Vec<Taken>, SubmitError>>;
}

/// The result for a submitted object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It was created.
    Created { called: String },
    /// It will be created at this time (epoch seconds).
    Later { called: String, due: i64 },
    /// One of the same name was submitted before; it is not run again.
    Known { called: String },
}

/// Why not everything was accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// It can't be parsed or is invalid.
    #[error("{0}")]
    Invalid(String),
    /// It conflicts with existing objects.
    #[error("{0}")]
    Conflict(String),
    /// Some were accepted before one that was not.
    #[error("{problem}")]
    Partly { taken: Vec<Taken>, problem: String },
    #[error("failed to read the request body")]
    Unread,
    #[error("the inspector is shutting down")]
    Stopped,
}
