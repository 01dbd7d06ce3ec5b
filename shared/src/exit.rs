//! Exit codes of `kubectl fluxion`, a stable interface for scripts.

/// Exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Success.
    Done = 0,
    /// An error without a more specific code.
    Other = 1,
    /// Invalid command line.
    Usage = 2,
    /// The job does not exist, or its name is ambiguous.
    NotFound = 3,
    /// Forbidden or unauthorized.
    Forbidden = 4,
    /// The inspector is unreachable or not ready.
    Unreachable = 5,
    /// Partial success.
    Partly = 6,
    /// Refused: a conflict, or missing confirmation.
    Refused = 7,
    /// Timed out.
    TimedOut = 8,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
