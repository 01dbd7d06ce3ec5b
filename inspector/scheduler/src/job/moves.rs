//! The last change of a planned start.

/// The last change recorded in a job's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    /// The previous planned start.
    pub(crate) from: i64,
    pub(crate) why: String,
    /// The entry.
    pub(crate) text: String,
}
