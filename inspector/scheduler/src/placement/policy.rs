//! Which nodes are taken, and what the search says when none are.

use std::sync::Arc;

/// Which of the nodes that fit are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodePolicy {
    /// The first in natural order of names.
    #[default]
    Low,
    /// The last in natural order of names.
    High,
}

/// Why a request does not start, as far as the search itself knows; [`crate::explain`] says more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocked {
    /// It would start but for what these jobs are promised.
    pub behind: Vec<u32>,
    /// Holders without a planned end that stand in the way (at most 16), where no planned start is possible.
    pub no_end: Vec<Arc<str>>,
    /// Jobs that are about to hold, or are promised, something without an end that stands in the way (at most 16).
    pub no_end_jobs: Vec<u32>,
}
