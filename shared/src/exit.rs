//! Exit codes of `kubectl fluxion`; scripts rely on them.

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All that was asked is done.
    Done = 0,
    /// An error that has no code of its own.
    Other = 1,
    /// The command line was wrong.
    Usage = 2,
    /// No such job, or a name that several jobs carry.
    NotFound = 3,
    /// The user may not, or is not known.
    Forbidden = 4,
    /// The inspector can't be reached or is not ready.
    Unreachable = 5,
    /// Some of it was done, some not.
    Partly = 6,
    /// Refused: a conflict, or a confirmation is missing.
    Refused = 7,
    /// No answer in time.
    TimedOut = 8,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
