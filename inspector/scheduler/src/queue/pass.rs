//! One pass over the queue, or a slice of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::known::{Failed, KnownFailures};
use super::{QueueConfig, QueuePolicy};
use crate::inventory::{Allocation, AllocationKind, Inventory, planned_or_assumed};
use crate::placement::{Blocked, Plan, Work, first_start, in_the_way, start_now};
use crate::request::{Placement, Planned, Request, Slot};

/// A waiting job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassJob {
    /// Its ID.
    pub id: u32,
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
pub struct Carry {
    done: BTreeSet<u32>,
    /// Those of them that count against the queue's depth.
    counted: usize,
    started: usize,
    reservations: usize,
    blocked: bool,
    memory: Arc<KnownFailures>,
    begun: bool,
}

impl Carry {
    /// A new pass that uses the results of this queue's last one ([`PassResult::memory`]). Existing reservations are
    /// kept: with several queues, only the first pass removes all of them.
    pub fn remembering(memory: Arc<KnownFailures>) -> Self {
        Self { memory, ..Self::default() }
    }
}

/// The decisions of a pass, or a slice of it.
#[derive(Clone, Debug, Default)]
pub struct PassResult {
    /// Jobs that start now. The caller must hold their slots before the next slice.
    pub started: Vec<(u32, Placement)>,
    /// Jobs with a reservation, which is already in the inventory.
    pub reserved: Vec<(u32, Planned)>,
    /// All other jobs that were considered.
    pub refused: Vec<(u32, Refusal)>,
    /// Number of jobs considered.
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
    /// When the pass is complete: its results, for the next one of this queue.
    pub memory: Arc<KnownFailures>,
}

/// Considers the jobs in queue order until the budget of visits is used up. Without `carry`, it first removes all
/// reservations; the slots of started jobs are not held in the inventory when it returns: that is up to the caller.
pub fn pass(
    inventory: &mut Inventory,
    config: &QueueConfig,
    jobs: &[PassJob],
    now: i64,
    budget: u64,
    carry: Option<Carry>,
) -> PassResult {
    let mut carry = carry.unwrap_or_else(|| {
        inventory.clear_reservations();
        Carry::default()
    });
    let freed = inventory.freed_generation();
    if !carry.begun || !carry.memory.stands(freed) {
        Arc::make_mut(&mut carry.memory).begin(freed);
        carry.begun = true;
    }
    prepare(inventory, jobs);
    let mut books = inventory.clone();
    let mut result = PassResult::default();
    let mut work = Work::default();
    for job in jobs {
        if carry.done.contains(&job.id) {
            continue;
        }
        if work.visited >= budget && result.tried > 0 {
            result.visited = work.visited;
            result.carry = Some(carry);
            return result;
        }
        if carry.counted >= config.queue_depth {
            result.look_again = carry.started > 0 && !carry.blocked;
            result.refused.push((job.id, Refusal::DepthReached));
            continue;
        }
        carry.done.insert(job.id);
        carry.counted += 1;
        result.tried += 1;
        if carry.blocked {
            result.refused.push((job.id, Refusal::Order));
            continue;
        }
        let request = with_default(&job.request, config.default_duration);
        match start(&books, config, &request, now, &mut carry, &mut work) {
            Ok(placement) => {
                take(&mut books, config, job.id, &request, &placement, now);
                carry.started += 1;
                result.outdated |= result.behind;
                result.started.push((job.id, placement));
            }
            Err(behind) if carry.reservations < config.reservations() => {
                match plan(&books, config, &request, now, &mut carry, &mut work) {
                    Ok(planned) => {
                        for books in [&mut books, &mut *inventory] {
                            books.promise(job.id, &request, &planned, config.assumed_duration);
                        }
                        carry.reservations += 1;
                        result.reserved.push((job.id, planned));
                    }
                    Err(_) if !behind.is_empty() => {
                        carry.counted -= 1;
                        result.behind = true;
                        result.refused.push((job.id, Refusal::BehindReservation { jobs: behind }));
                    }
                    Err(why) => {
                        carry.counted -= 1;
                        let refusal = Refusal::NoEstimate { holders: why.no_end, jobs: why.no_end_jobs };
                        result.refused.push((job.id, refusal));
                    }
                }
            }
            Err(behind) => {
                carry.blocked = config.policy == QueuePolicy::Fcfs;
                let refusal = if behind.is_empty() {
                    Refusal::Busy
                } else {
                    result.behind = true;
                    Refusal::BehindReservation { jobs: behind }
                };
                result.refused.push((job.id, refusal));
            }
        }
    }
    result.visited = work.visited;
    Arc::make_mut(&mut carry.memory).end();
    result.memory = carry.memory;
    result
}

/// An immediate start, unless an equal request is known to fail; or the jobs that only block it by their reservations.
fn start(
    books: &Inventory,
    config: &QueueConfig,
    request: &Arc<Request>,
    now: i64,
    carry: &mut Carry,
    work: &mut Work,
) -> Result<Placement, Vec<u32>> {
    let decided = (carry.started, carry.reservations);
    let known = Arc::make_mut(&mut carry.memory).of(request);
    // Others that have started since may be what it waits for.
    let awaits = request.awaits_others();
    if known.busy && !awaits {
        return Err(Vec::new());
    }
    if let Some(failed) = &mut known.failed {
        let same = failed.decided == decided
            || failed.now == now && failed.start.look_again(books, request, now, config.node_policy, work);
        if same {
            failed.decided = decided;
            known.busy = failed.start.behind.is_empty() && !awaits;
            return Err(failed.start.behind.clone());
        }
    }
    work.skip = known.skip;
    let outcome = start_now(books, request, now, config.node_policy, work);
    known.skip = if request.level.is_none() { work.first } else { 0 };
    work.skip = 0;
    outcome.map_err(|start| {
        let behind = start.behind.clone();
        known.busy = behind.is_empty() && !awaits;
        known.failed = Some(Failed { start, now, decided });
        behind
    })
}

/// A planned start, unless an equal request is known to have none.
fn plan(
    books: &Inventory,
    config: &QueueConfig,
    request: &Arc<Request>,
    now: i64,
    carry: &mut Carry,
    work: &mut Work,
) -> Result<Planned, Blocked> {
    let known = Arc::make_mut(&mut carry.memory).of(request);
    if request.awaits_others() {
        return first_start(books, request, (now, now), config.node_policy, work);
    }
    if let Some(failure) = &known.no_estimate {
        return Err(failure.clone());
    }
    let outcome = if known.hopeless {
        // Different jobs may be in the way by now.
        Err(in_the_way(&Plan::new(books, request, config.node_policy), now))
    } else {
        first_start(books, request, (now, known.not_before), config.node_policy, work)
    };
    match &outcome {
        Ok(planned) => known.not_before = planned.start,
        Err(failure) => {
            known.no_estimate = Some(failure.clone());
            known.hopeless |= books.reservations().next().is_none();
        }
    }
    outcome
}

/// Holds the slots of a starting job in the pass's own inventory.
fn take(
    books: &mut Inventory,
    config: &QueueConfig,
    job: u32,
    request: &Request,
    placement: &Placement,
    now: i64,
) {
    let (until, end_assumed) = planned_or_assumed(request.end(now), now, config.assumed_duration, now);
    // Where others have constraints on them, Pods are counted.
    let each = |slot: &Slot| {
        let single = request.shapes.get(slot.shape as usize).is_some_and(|shape| shape.peer.is_some());
        if single { vec![Slot { count: 1, ..slot.clone() }; slot.count as usize] } else { vec![slot.clone()] }
    };
    for (index, slot) in placement.slots.iter().flat_map(each).enumerate() {
        let Some(shape) = request.shapes.get(slot.shape as usize) else { continue };
        let needs = shape
            .needs
            .checked_mul(u64::from(slot.count))
            .expect("slots that were placed on one node fit into what it offers");
        let hold = Allocation {
            needs: Arc::new(needs),
            ports: shape.ports.clone(),
            from: now,
            until,
            end_assumed,
            kind: AllocationKind::Assumed,
            permanent: false,
            job: Some(job),
            peer: shape.peer.clone(),
        };
        books.hold(format!("start/{job}/{index}").into(), &slot.node, hold);
    }
}

fn prepare(inventory: &mut Inventory, jobs: &[PassJob]) {
    let constraints: BTreeSet<_> =
        jobs.iter().flat_map(|job| &job.request.shapes).map(|shape| &shape.constraint).collect();
    inventory.prepare(constraints);
    inventory.prepare_peers(jobs.iter().map(|job| job.request.as_ref()));
    let levels: BTreeSet<_> = jobs.iter().filter_map(|job| job.request.level.as_ref()).collect();
    for level in levels {
        inventory.prepare_level(level);
    }
}

fn with_default(request: &Arc<Request>, duration: Option<i64>) -> Arc<Request> {
    match (request.duration, duration) {
        (None, Some(seconds)) => Arc::new(Request { duration: Some(seconds), ..request.as_ref().clone() }),
        _ => request.clone(),
    }
}
