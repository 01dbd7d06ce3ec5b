//! Deletion of objects for a user: called by the HTTP API and implemented by the connection to the API server.

use fluxion_scheduler::model::ObjectRef;
use futures::future::BoxFuture;

/// Deletes objects with the inspector's own permissions.
pub trait Deletion: std::fmt::Debug + Send + Sync {
    /// Deletes the object and, in the background, what it controls; never another object of its name. An object that no
    /// longer exists counts as deleted.
    fn delete<'a>(&'a self, object: &'a ObjectRef) -> BoxFuture<'a, Result<(), DeletionError>>;
}

/// Why an object was not deleted, with the API server's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeletionError {
    /// Repeating the request does not help: the inspector's permissions, or an admission policy.
    #[error("{0}")]
    Refused(String),
    /// The API server is unreachable, slow or overloaded.
    #[error("{0}")]
    Unavailable(String),
}
