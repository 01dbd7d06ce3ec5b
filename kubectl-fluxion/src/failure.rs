//! Command failures: an exit code and an error message.

use std::io;

use fluxion_api::Exit;
use fluxion_api::client::Error;

/// A failed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub exit: Exit,
    /// Error message; `None` if it has already been printed.
    pub message: Option<String>,
}

impl Failure {
    /// Creates a failure with an error message.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: Some(message.into()) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(error.exit(), error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            // Whoever read us has seen enough.
            return Self { exit: Exit::Done, message: None };
        }
        Self::new(Exit::Other, format!("failed to write the output: {error}"))
    }
}
