//! What a pass knows already of requests that are equal to one it has tried.
//!
//! Within a pass slots are only taken and promises only added, so a request that failed fails again, and nodes that
//! could take nothing of it still cannot.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::matcher::gang::Failure;
use crate::request::Request;

/// What is known of one request.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// Nodes at the beginning of the order that take nothing of it.
    pub(super) skip: usize,
    /// It does not start now; with what stood in the way, and how many promises there were when that was seen.
    pub(super) failed: Option<(Failure, usize)>,
    /// No start can be planned for it, and why.
    pub(super) no_estimate: Option<Failure>,
}

/// What is known, by request.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    places: BTreeMap<Arc<Request>, usize>,
    known: Vec<Known>,
}

impl Memory {
    pub(super) fn of(&mut self, request: &Arc<Request>) -> &mut Known {
        let next = self.known.len();
        let place = *self.places.entry(request.clone()).or_insert(next);
        if place == next {
            self.known.push(Known::default());
        }
        &mut self.known[place]
    }
}
