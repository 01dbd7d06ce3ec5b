//! What a match is asked for, and what comes of it.

use thiserror::Error;

use crate::errno::Errno;

/// How long a graph lives, in seconds: jobs without a duration take all of it.
pub const LIFETIME: i64 = 3_153_600_000;

/// What is asked of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Now or not at all.
    Allocate,
    /// Now or not at all, and if not: could it ever?
    AllocateWithSatisfiability,
    /// Now, or as early as possible.
    AllocateOrElseReserve,
    /// Could it ever?
    Satisfiability,
    /// Now, but only shown.
    WithoutAllocating,
    /// Now, or as early as possible, but only shown.
    WithoutAllocatingFuture,
}

impl Operation {
    /// An operation by the name it has on the command line.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "allocate" => Self::Allocate,
            "allocate_with_satisfiability" => Self::AllocateWithSatisfiability,
            "allocate_orelse_reserve" => Self::AllocateOrElseReserve,
            "satisfiability" => Self::Satisfiability,
            "without_allocating" => Self::WithoutAllocating,
            "without_allocating_future" => Self::WithoutAllocatingFuture,
            _ => return None,
        })
    }

    /// Whether it books what it finds.
    pub fn allocates(self) -> bool {
        !matches!(self, Self::Satisfiability | Self::WithoutAllocating | Self::WithoutAllocatingFuture)
    }

    /// Whether it looks at later times.
    pub fn looks_ahead(self) -> bool {
        matches!(self, Self::AllocateOrElseReserve | Self::WithoutAllocatingFuture)
    }
}

/// A match that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Start, in seconds; 0 is now.
    pub at: i64,
    /// Seconds for which it holds.
    pub duration: i64,
}

/// A failed operation: the error number by Fluxion's rules, and what went wrong in words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Failure {
    /// The error number.
    pub errno: Errno,
    /// What is wrong; may be empty.
    pub message: String,
}

impl Failure {
    /// A failure with its reason.
    pub fn new(errno: Errno, message: impl Into<String>) -> Self {
        Self { errno, message: message.into() }
    }
}

/// Whole seconds that a job with this duration gets: rounded up, 0 means the graph's lifetime.
pub fn effective_duration(duration: f64) -> Result<i64, Failure> {
    let message = "the duration must be between 0 and the lifetime of the graph (3153600000 s)";
    // Beyond these checks the value fits an i64.
    if !(0.0..=LIFETIME as f64).contains(&duration) {
        return Err(Failure::new(Errno::Einval, message));
    }
    if duration == 0.0 {
        return Ok(LIFETIME);
    }
    #[allow(clippy::cast_possible_truncation, reason = "between 0 and the lifetime, checked above")]
    Ok(duration.ceil() as i64)
}
