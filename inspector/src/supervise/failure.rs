//! How something that must not end did.

/// Why the inspector can't go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("{what} panicked: {message}")]
    Panicked { what: String, message: String },
    #[error("{0} has ended, which it never should")]
    Ended(String),
    #[error("{what} has not come back for {seconds} s")]
    Stuck { what: String, seconds: u64 },
}
