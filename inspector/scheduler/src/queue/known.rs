//! What passes know already of requests that are equal to one they have tried.
//!
//! Within a pass slots are only taken and promises only added, so a request that failed fails again, and nodes that
//! could take nothing of it still cannot. From pass to pass promises are made anew; what failed for want of free
//! resources still fails, as long as nothing was freed and the graph did not change.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::placement::{Blocked, FailedStart};
use crate::request::Request;

/// Requests that are remembered from pass to pass, at most.
const MOST: usize = 100_000;

/// What is known of one request.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// In this pass: nodes at the beginning of the order that take nothing of it.
    pub(super) skip: usize,
    /// In this pass: it does not start.
    pub(super) failed: Option<Failed>,
    /// In this pass: the last start that was planned for it; there is none before.
    pub(super) not_before: i64,
    /// In this pass: no planned start is possible for it, and why.
    pub(super) no_estimate: Option<Blocked>,
    /// It would not start even if nothing were promised to others.
    pub(super) busy: bool,
    /// No start could be planned for it even if nothing were promised to others.
    pub(super) hopeless: bool,
}

/// A start that failed at some place of a pass.
#[derive(Clone, Debug)]
pub(super) struct Failed {
    pub(super) start: FailedStart,
    /// When it was tried.
    pub(super) now: i64,
    /// How many had been started and promised something by then. Each of them may be in the way since.
    pub(super) decided: (usize, usize),
}

/// What is known, by request; valid for one state of what was freed.
#[derive(Clone, Debug, Default)]
pub struct KnownFailures {
    freed: u64,
    places: BTreeMap<Arc<Request>, usize>,
    known: Vec<Known>,
}

impl KnownFailures {
    /// Forgets everything when something was freed since.
    pub(super) fn begin(&mut self, freed: u64) {
        if self.freed != freed || self.known.len() > MOST {
            *self = Self { freed, ..Self::default() };
        }
    }

    /// Forgets what holds within one pass only.
    pub(super) fn end(&mut self) {
        for known in &mut self.known {
            *known = Known { busy: known.busy, hopeless: known.hopeless, ..Known::default() };
        }
    }

    /// Whether what is known stands.
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
