//! State kept between the slices of a pass, and between passes.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::explain::WhyNot;
use crate::job::Reason;
use crate::model::SharedStr;
use crate::queue::{Carry, PassJob, PassTally, Refusal};
use crate::request::Request;
use crate::state::waiting::OrderKey;

/// Results of a queue's last complete pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PassReport {
    /// Epoch seconds.
    pub at: i64,
    /// Jobs considered, with those of before the pass was reopened.
    pub tried: u32,
    /// Those of them considered since the report before this one. It is less if the pass was reopened, for jobs that have
    /// come since.
    pub tried_since: u32,
    pub started: u32,
    /// Number of complete passes over this queue since the start of the engine.
    pub passes: u64,
}

/// The pass over the queues, which may be split over several steps.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "independent of each other")]
pub(super) struct PassState {
    /// All jobs have to be considered again.
    pub wanted: bool,
    /// There are jobs that have not been considered yet, behind all that have.
    pub(super) arrived: bool,
    /// The last complete pass, if it can be reopened for such jobs.
    pub(super) open: Option<OpenPass>,
    /// The inventory's generations as of the last pass.
    pub(super) seen: (u64, u64),
    /// An interrupted pass: its queue, and the position in it.
    pub(super) cut: Option<(usize, Carry)>,
    /// Results of the pass in that queue before it was interrupted.
    pub(super) before_cut: PassReport,
    /// In the current pass: a job was refused because of reservations, and whether others started after that.
    pub(super) behind: bool,
    pub(super) outdated: bool,
    /// Something happened since the last complete pass that kept reservations did not foresee.
    pub(super) disturbed: bool,
    /// Queues that have not read the stored reservations of their jobs yet.
    pub(super) unrestored: OrdSet<usize>,
    /// In the current pass: one has.
    pub(super) restored: bool,
    /// When the next pass is due because of time alone.
    pub(super) due: Option<i64>,
    pub(super) at: i64,
    pub(super) reports: OrdMap<SharedStr, PassReport>,
    /// Known results of the last pass of each queue.
    pub(super) memory: OrdMap<SharedStr, Arc<crate::queue::KnownFailures>>,
    /// The jobs that may start, by queue.
    pub(super) lineups: OrdMap<usize, Lineup>,
    /// Satisfiability of requests, for one generation of the graph.
    pub(super) verdicts: OrdMap<Arc<Request>, Option<Arc<Reason>>>,
    pub(super) verdicts_of: u64,
    /// Why requests wait, and when that was found out, for one generation of the graph.
    pub(super) whys: OrdMap<Arc<Request>, (i64, Arc<WhyNot>)>,
    pub(super) whys_of: u64,
    /// The generation of the graph as of the last complete pass over all jobs.
    pub(super) told_of: u64,
}

/// A complete pass over a single queue in which nothing started.
#[derive(Clone, Debug)]
pub(super) struct OpenPass {
    /// The last job considered; those behind it were not.
    pub(super) last: Option<OrderKey>,
    pub(super) tally: PassTally,
    /// The inventory as the pass left it ([`crate::inventory::Inventory::changes`]).
    pub(super) inventory: u64,
    /// Epoch seconds.
    pub(super) at: i64,
}

/// The jobs of a queue that may start, in order, as a pass gets them.
#[derive(Clone, Debug, Default)]
pub(super) struct Lineup {
    /// The generation of the graph that it is for.
    pub(super) graph: u64,
    pub(super) jobs: Arc<Vec<PassJob>>,
    /// What each of them was told.
    pub(super) told: Arc<Vec<PassedOver>>,
}

/// What a job of a lineup was told last, if it need not be told again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum PassedOver {
    /// Something else.
    #[default]
    Unknown,
    /// On the graph of the lineup.
    Busy,
    /// Behind the reservation of this job, by ID.
    Behind(u32),
    Order,
    DepthReached,
}

impl From<&Refusal> for PassedOver {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Busy => Self::Busy,
            Refusal::BehindReservation { jobs } => match jobs.as_slice() {
                [job] => Self::Behind(*job),
                _ => Self::Unknown,
            },
            Refusal::Order => Self::Order,
            Refusal::DepthReached => Self::DepthReached,
            Refusal::NoEstimate { .. } => Self::Unknown,
        }
    }
}
