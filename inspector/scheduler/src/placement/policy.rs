//! Node selection policies, and the result of a failed search.

use std::sync::Arc;

/// Which of the suitable nodes are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodePolicy {
    /// The first in natural order of names.
    #[default]
    Low,
    /// The last in natural order of names.
    High,
    /// Those that would be the least allocated: for each slot, the node of which the smallest share of its scarcest
    /// resource would be in use.
    Spread,
}

/// Why a request does not start, according to the search; [`crate::explain`] gives more details.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocked {
    /// It would start if these jobs had no reservations.
    pub behind: Vec<u32>,
    /// Holders without a planned end that are in the way (at most 16), if no start can be planned.
    pub no_end: Vec<Arc<str>>,
    /// Jobs being bound or with a reservation, without an end, that are in the way (at most 16).
    pub no_end_jobs: Vec<u32>,
}
