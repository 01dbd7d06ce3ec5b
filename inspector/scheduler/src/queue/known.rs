//! Results of passes that apply to equal requests.
//!
//! Within a pass, slots are only allocated and reservations only added, so a request that failed fails again, and
//! nodes without room still have none; a reservation that is given up ends that. What failed because of insufficient
//! free resources still fails in later passes if nothing was freed and the graph did not change.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::inventory::{Inventory, Wants};
use crate::placement::{Blocked, FailedStart, Roomy};
use crate::request::{Planned, Request};

/// Maximum number of requests remembered across passes.
const MOST: usize = 100_000;
/// Number of requests remembered in addition to four for each waiting job.
const FEW: usize = 256;

/// Known results for a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// When this was found out.
    freed: u64,
    epoch: u64,
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
    /// The nodes with room for some of it; valid even after something was freed.
    pub(super) roomy: Option<Roomy>,
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

/// A reservation that is kept.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// The request it was made for.
    pub(super) request: Arc<Request>,
    /// The same with its duration.
    pub(super) whole: Arc<Request>,
    /// The priority that the job had.
    pub(super) priority: i64,
    pub(super) planned: Arc<Planned>,
}

/// What a queue's passes know: results by request, valid until something is freed, and the reservations that it keeps.
#[derive(Clone, Debug, Default)]
pub struct KnownFailures {
    freed: u64,
    /// Incremented whenever what applies within a pass no longer does.
    epoch: u64,
    places: BTreeMap<Arc<Request>, usize>,
    /// Places by the address of the request, which is kept so that the address stays its own.
    by_address: BTreeMap<usize, (Arc<Request>, usize)>,
    known: Vec<(Arc<Request>, Option<Wants>, Known)>,
    pub(super) plans: imbl::OrdMap<u32, Kept>,
}

impl KnownFailures {
    /// Only the reservations that are kept.
    pub(crate) fn only_reservations(&self) -> Self {
        Self { plans: self.plans.clone(), ..Self::default() }
    }

    /// What was known before something was freed no longer applies ([`Self::of`]). Bounds what is remembered, given the
    /// number of waiting jobs.
    pub(super) fn begin(&mut self, freed: u64, jobs: usize) {
        self.freed = freed;
        // Most of them are then requests of jobs that no longer wait.
        let most = jobs.saturating_mul(4).saturating_add(FEW).min(MOST);
        if self.known.len() > most || self.by_address.len() > most {
            self.places.clear();
            self.by_address.clear();
            self.known.clear();
        }
    }

    /// Drops everything that only applies within one pass, or until a reservation is given up.
    pub(super) fn end(&mut self) {
        self.epoch += 1;
    }

    /// Whether the known results are valid.
    pub(super) fn stands(&self, freed: u64) -> bool {
        self.freed == freed
    }

    /// The place of a request, which has this duration if it has none of its own.
    pub(super) fn place(&mut self, request: &Arc<Request>, duration: Option<i64>) -> usize {
        let address = Arc::as_ptr(request).addr();
        if let Some((_, place)) = self.by_address.get(&address) {
            return *place;
        }
        let whole = match (request.duration, duration) {
            (None, Some(_)) => Arc::new(Request { duration, ..request.as_ref().clone() }),
            _ => request.clone(),
        };
        let next = self.known.len();
        let place = *self.places.entry(whole.clone()).or_insert(next);
        if place == next {
            self.known.push((whole, None, Known::default()));
        }
        self.by_address.insert(address, (request.clone(), place));
        place
    }

    /// The request at a place, with its duration.
    pub(super) fn known_request(&self, place: usize) -> &Request {
        &self.known[place].0
    }

    /// The same, shared.
    pub(super) fn request(&self, place: usize) -> Arc<Request> {
        self.known[place].0.clone()
    }

    /// What the request at a place needs in total at least; nothing if that is unknown.
    pub(super) fn wants(&mut self, place: usize, inventory: &Inventory) -> Wants {
        let (request, wants, _) = &mut self.known[place];
        if let Some(wants) = wants {
            return wants.clone();
        }
        let mut sum = Wants::new();
        for shape in request.shapes.iter().filter(|_| request.minimum.is_none()) {
            for (resource, amount) in shape.needs.iter() {
                // Its number is assigned when a node has it.
                let Some(kind) = inventory.columns().kind(resource) else { return Wants::new() };
                let amount = u128::from(amount) * u128::from(shape.count);
                match sum.iter_mut().find(|(of, _)| *of == kind) {
                    Some((_, total)) => *total = total.saturating_add(amount),
                    None => sum.push((kind, amount)),
                }
            }
        }
        *wants = Some(sum.clone());
        sum
    }

    /// What is known of the request at a place.
    pub(super) fn of(&mut self, place: usize) -> &mut Known {
        let known = &mut self.known[place].2;
        if known.freed != self.freed {
            let roomy = known.roomy.take();
            *known = Known { freed: self.freed, epoch: self.epoch, roomy, ..Known::default() };
        } else if known.epoch != self.epoch {
            let (busy, hopeless, roomy) = (known.busy, known.hopeless, known.roomy.take());
            let (freed, epoch) = (self.freed, self.epoch);
            *known = Known { freed, epoch, busy, hopeless, roomy, ..Known::default() };
        }
        known
    }
}
