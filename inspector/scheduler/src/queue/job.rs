//! What a pass is given, and what it decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::known::KnownFailures;
use crate::request::{Placement, Planned, Request};

/// A waiting job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassJob {
    /// Its ID.
    pub id: u32,
    /// Its priority; it is never higher than that of a job before it. Only jobs with a higher priority take kept
    /// reservations away from others.
    pub priority: i64,
    /// Its request.
    pub request: Arc<Request>,
}

/// Why a job neither starts nor gets a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It does not fit now.
    Busy,
    /// It would fit if these jobs had no reservations.
    BehindReservation {
        /// The jobs, by ID.
        jobs: Vec<u32>,
    },
    /// A job before it is waiting, and the policy does not allow overtaking.
    Order,
    /// The pass ended before it, because of the queue's depth.
    DepthReached,
    /// It should get a reservation, but no start can be planned.
    NoEstimate {
        /// Holders without a planned end that are in the way.
        holders: Vec<Arc<str>>,
        /// Jobs being bound or with a reservation, without an end, that are in the way.
        jobs: Vec<u32>,
    },
}

/// State passed from one slice to the next.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "independent of each other")]
pub struct Carry {
    pub(super) done: BTreeSet<u32>,
    /// Those of them that count against the queue's depth.
    pub(super) counted: usize,
    pub(super) started: usize,
    pub(super) reservations: usize,
    pub(super) blocked: bool,
    pub(super) memory: Arc<KnownFailures>,
    pub(super) begun: bool,
    /// The slots of started jobs stay held.
    pub(super) holds: bool,
    /// Nobody asks why a job waits.
    pub(super) silent: bool,
    /// Number of attempts to rearrange reservations that failed.
    pub(super) in_vain: u32,
    /// Each kept reservation is to be moved to an earlier start, or planned again if it can't be kept.
    pub(super) compress: bool,
    /// All that happened since the last pass is that something ended before its planned end.
    pub(super) only_freed: bool,
    /// Reservations of jobs, by ID, with which the pass begins, instead of those known.
    pub(super) stored: Option<Arc<BTreeMap<u32, Planned>>>,
}

impl Carry {
    /// A new pass that uses the results of this queue's last one ([`PassResult::memory`]). Existing reservations are
    /// kept: with several queues, only the first pass removes all of them.
    pub fn remembering(memory: Arc<KnownFailures>) -> Self {
        Self { memory, ..Self::default() }
    }

    /// The same; `changed` says whether anything else than a planned end or start has happened since the last pass, so
    /// that kept reservations may start earlier or can't be kept.
    #[must_use]
    pub fn changed(self, changed: bool) -> Self {
        Self { compress: changed, ..self }
    }

    /// The same; the pass begins with the stored reservations of these jobs, by ID, as far as they are for their requests and
    /// still free. No others are kept.
    #[must_use]
    pub fn restoring(self, stored: Arc<BTreeMap<u32, Planned>>) -> Self {
        Self { stored: Some(stored), ..self }
    }

    /// The same; `only_freed` says whether all of that is that something ended before its planned end, so that every kept
    /// reservation can be kept. Only the simulator says so: of what happens in a cluster, the engine does not know that, and
    /// looks at every reservation.
    #[must_use]
    pub fn only_freed(self, only_freed: bool) -> Self {
        Self { only_freed, ..self }
    }

    /// The same; reasons are not wanted: a job that waits may be [`Refusal::Busy`] whatever it waits for.
    #[must_use]
    pub fn silent(self) -> Self {
        Self { silent: true, ..self }
    }

    /// The same; the slots of started jobs stay held, by the holders [`start_holder`].
    #[must_use]
    pub fn holding(self) -> Self {
        Self { holds: true, ..self }
    }

    /// Goes on with a pass that was complete and in which nothing started, to consider jobs that have come since, behind
    /// all others. Nothing else may have changed. The reservations made in it are those in the inventory.
    pub fn reopened(memory: Arc<KnownFailures>, so_far: PassTally) -> Self {
        let PassTally { counted, reservations, blocked } = so_far;
        Self { memory, counted, reservations, blocked, begun: true, ..Self::default() }
    }

    pub(super) fn tally(&self) -> PassTally {
        PassTally { counted: self.counted, reservations: self.reservations, blocked: self.blocked }
    }

    /// Ends the pass without considering the remaining jobs.
    pub fn abandon(mut self) -> Arc<KnownFailures> {
        Arc::make_mut(&mut self.memory).end();
        self.memory
    }
}

/// What a complete pass has counted, so that it can be reopened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassTally {
    counted: usize,
    reservations: usize,
    blocked: bool,
}

/// The holder of a slot of a job that starts in a pass: the slot's index in the placement.
pub fn start_holder(job: u32, slot: usize) -> Arc<str> {
    format!("start/{job}/{slot}").into()
}

/// The jobs of a pass that only wait for their turn: all from one position on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// The position of the first of them.
    pub from: usize,
    /// The position of the first one that exceeds the queue's depth.
    pub beyond: usize,
}

impl Rest {
    /// Why the job at this position neither starts nor gets a reservation.
    pub fn refusal(&self, at: usize) -> Refusal {
        if at < self.beyond { Refusal::Order } else { Refusal::DepthReached }
    }
}

/// The decisions of a pass, or a slice of it.
#[derive(Clone, Debug, Default)]
pub struct PassResult {
    /// Jobs that start now. The caller must hold their slots before the next slice.
    pub started: Vec<(u32, Placement)>,
    /// Jobs with a new or changed reservation, which is already in the inventory.
    pub reserved: Vec<(u32, Planned)>,
    /// Jobs that keep the reservation that they have.
    pub kept: Vec<u32>,
    /// All other jobs that were considered.
    pub refused: Vec<(u32, Refusal)>,
    /// The jobs that were not considered, because one before them is waiting, and the policy does not allow overtaking.
    pub rest: Option<Rest>,
    /// Number of jobs considered, including [`Self::rest`] up to the queue's depth.
    pub tried: usize,
    /// Number of nodes and alternatives examined.
    pub visited: u64,
    /// State for the next slice; none when the pass is complete.
    pub carry: Option<Carry>,
    /// When the pass is complete: it was ended by the queue's depth, and something started, so another pass at the
    /// same time would consider further jobs.
    pub look_again: bool,
    /// A job was refused because of reservations.
    pub behind: bool,
    /// Something started after that, and may be what blocks the job now.
    pub outdated: bool,
    /// When the pass is complete: what it has counted.
    pub tally: PassTally,
    /// When the pass is complete: its results, for the next one of this queue.
    pub memory: Arc<KnownFailures>,
}
