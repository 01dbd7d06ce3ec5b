//! Handing manifests in: what the HTTP API asks for and standalone mode does, so that neither knows the other.

use futures::future::BoxFuture;

/// Takes manifests in.
pub trait Submit: Send + Sync {
    /// Takes in every object of the text (YAML or JSON, several documents), or as many as come before one that is
    /// refused. Objects that name no namespace are of this one. What is taken is on disk when the answer comes.
    fn submit(&self, namespace: String, manifests: String) -> BoxFuture<'_, Result<Vec<Taken>, SubmitError>>;
}

/// What became of an object that was handed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is there.
    Created { called: String },
    /// It comes at this time (epoch seconds).
    Later { called: String, due: i64 },
    /// One of its name was handed in before, and is not run twice.
    Known { called: String },
}

/// Why not everything was taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// It can't be understood or is not valid, and never will be as it is written.
    #[error("{0}")]
    Invalid(String),
    /// What there is already stands against it.
    #[error("{0}")]
    Conflict(String),
    /// These were taken before one that was not.
    #[error("{problem}")]
    Partly { taken: Vec<Taken>, problem: String },
    #[error("failed to read the request body")]
    Unread,
    #[error("the inspector is shutting down")]
    Stopped,
}
