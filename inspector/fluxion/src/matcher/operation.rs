//! Match operations and their results.

use thiserror::Error;

use crate::errno::Errno;

/// Lifetime of a graph in seconds; the duration of jobs that do not specify one.
pub const LIFETIME: i64 = 3_153_600_000;

/// A match operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Allocate now, or fail.
    Allocate,
    /// Allocate now, or fail and report whether the request is satisfiable.
    AllocateWithSatisfiability,
    /// Allocate now, or reserve at the earliest possible time.
    AllocateOrElseReserve,
    /// Only check whether the request is satisfiable.
    Satisfiability,
    /// Match now without allocating.
    WithoutAllocating,
    /// Match now or at the earliest possible time, without allocating.
    WithoutAllocatingFuture,
}

impl Operation {
    /// Parses the command-line name of an operation.
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

    /// Whether it allocates or reserves the matched resources.
    pub fn allocates(self) -> bool {
        !matches!(self, Self::Satisfiability | Self::WithoutAllocating | Self::WithoutAllocatingFuture)
    }

    /// Whether it considers later start times.
    pub fn looks_ahead(self) -> bool {
        matches!(self, Self::AllocateOrElseReserve | Self::WithoutAllocatingFuture)
    }
}

/// A successful match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Start, in seconds; 0 is now.
    pub at: i64,
    /// Duration in seconds.
    pub duration: i64,
}

/// A failed operation: Fluxion's error number and a message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Failure {
    /// The error number.
    pub errno: Errno,
    /// Error message; may be empty.
    pub message: String,
}

impl Failure {
    /// Creates a failure with a message.
    pub fn new(errno: Errno, message: impl Into<String>) -> Self {
        Self { errno, message: message.into() }
    }
}

/// The duration of a job in whole seconds: rounded up, and the lifetime of the graph if 0.
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
