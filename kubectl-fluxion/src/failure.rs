//! How a command fails: an exit code, and what is said about it.

use std::io;

use fluxion_api::Exit;
use fluxion_api::client::Error;

/// A command that did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub exit: Exit,
    /// `None` when everything has been said already.
    pub message: Option<String>,
}

impl Failure {
    /// A failure with its text.
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
