//! How a supervised task failed.

/// Why the inspector can't continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("{what} panicked: {message}")]
    Panicked { what: String, message: String },
    #[error("{0} stopped unexpectedly")]
    Ended(String),
    #[error("{what} has not responded for {seconds} s")]
    Stuck { what: String, seconds: u64 },
}
