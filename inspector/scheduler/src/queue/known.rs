//! Results of passes that apply to equal requests.
//!
//! Within a pass, slots are only allocated and reservations only added, so a request that failed fails again, and
//! nodes without room still have none. Reservations are recomputed in each pass; what failed because of insufficient
//! free resources still fails if nothing was freed and the graph did not change.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::placement::{Blocked, FailedStart};
use crate::request::Request;

/// Maximum number of requests remembered across passes.
const MOST: usize = 100_000;

/// Known results for a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// In this pass: nodes at the start of the order that have no room for it.
    pub(super) skip: usize,
    /// In this pass: it does not start.
    pub(super) failed: Option<Failed>,
    /// In this pass: its last planned start; there is none before that.
    pub(super) not_before: i64,
    /// In this pass: no start can be planned for it, and why.
    pub(super) no_estimate: Option<Blocked>,
    /// It would not start even without reservations of others.
    pub(super) busy: bool,
    /// No start could be planned for it even without reservations of others.
    pub(super) hopeless: bool,
}

/// A start that failed in a pass.
#[derive(Clone, Debug)]
pub(super) struct Failed {
    pub(super) start: FailedStart,
    /// When it was attempted.
    pub(super) now: i64,
    /// Number of jobs started and reservations made before that. Later ones may also be in the way.
    pub(super) decided: (usize, usize),
}

/// Known results by request; valid until something is freed.
#[derive(Clone, Debug, Default)]
pub struct KnownFailures {
    freed: u64,
    places: BTreeMap<Arc<Request>, usize>,
    known: Vec<Known>,
}

impl KnownFailures {
    /// Drops everything if something was freed since.
    pub(super) fn begin(&mut self, freed: u64) {
        if self.freed != freed || self.known.len() > MOST {
            *self = Self { freed, ..Self::default() };
        }
    }

    /// Drops everything that only applies within one pass.
    pub(super) fn end(&mut self) {
        for known in &mut self.known {
            *known = Known { busy: known.busy, hopeless: known.hopeless, ..Known::default() };
        }
    }

    /// Whether the known results are valid.
    pub(super) fn stands(&self, freed: u64) -> bool {
        self.freed == freed
    }

    pub(super) fn of(&mut self, request: &Arc<Request>) -> &mut Known {
        let next = self.known.len();
        let place = if let Some(place) = self.places.get(request) {
            *place
        } else {
            self.places.insert(request.clone(), next);
            self.known.push(Known::default());
            next
        };
        &mut self.known[place]
    }
}
