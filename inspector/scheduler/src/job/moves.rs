//! The last move of a planned start.

/// The last move that a job's history tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    /// Where it was planned before that.
    pub(crate) from: i64,
    pub(crate) why: String,
    /// The entry.
    pub(crate) text: String,
}
