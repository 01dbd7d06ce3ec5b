//! A simulator: runs a trace of jobs on a cluster with one or several queues, under a virtual clock.
//!
//! It uses the scheduler's own queue pass and inventory. Nothing happens between two events, so simulating a year
//! takes as long as its arrivals and ends. The nodes are identical: where only their number decides when jobs start, the
//! inventory has them as one node (`pool`).

mod groups;
mod measure;
mod nodes;
mod pool;
mod series;
mod trace;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::constraint::NodeConstraint;
use crate::inventory::{Inventory, NodeSpec};
use crate::placement::NodePolicy;
use crate::queue::{Carry, KnownFailures, PassJob, QueueConfig, QueuePolicy, pass, start_holder};
use crate::request::{Placement, Request, Shape, Slot};
use crate::resources::ResourceList;

pub use groups::{Group, GroupBy, groups};
pub use measure::{Cut, Measure, Report, Spread};
pub use nodes::{NodeSpan, node_list};
use pool::NodePool;
pub use series::{Point, allocated, series};

pub use trace::{SwfTrace, TraceError, read_csv, read_swf};

/// Number of jobs of an fcfs queue that a pass considers.
const AT_ONCE: usize = 16;

/// A cluster of identical nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Number of nodes.
    pub nodes: u32,
    /// Cores per node.
    pub cores: u32,
    /// Whether jobs are allocated whole nodes.
    pub whole_nodes: bool,
    /// Whether jobs are ended at their time limit. If not, they run to their end, and the scheduler, which plans by the
    /// limit, is surprised.
    pub enforce_limits: bool,
    /// Whether the scheduler places jobs on individual nodes in any case, as it does for the inspector. If not, it only
    /// counts free nodes where the policy depends on nothing else, which is much faster: the starts are the same, but not
    /// always the nodes.
    pub each_node: bool,
}

/// A job of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceJob {
    /// Its number in the trace.
    pub id: u64,
    /// Submit time, in seconds.
    pub submit: i64,
    /// Number of cores requested.
    pub cores: u32,
    /// Time limit in seconds, at least 1.
    pub limit: i64,
    /// Run time in seconds, without a limit; at least 1.
    pub run: i64,
    /// Higher goes first.
    pub priority: i64,
    /// Its queue, if specified.
    pub queue: Option<Arc<str>>,
    /// Its user, if specified.
    pub user: Option<Arc<str>>,
}

/// The result for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Start time, in seconds.
    pub start: i64,
    /// End time, in seconds.
    pub end: i64,
}

/// The result for a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// For each job of the trace, in order; none for one that can never run on the cluster.
    pub jobs: Vec<Option<Ran>>,
    /// For each job of the trace, the nodes it ran on, in order.
    pub nodes: Vec<Box<[NodeSpan]>>,
    /// For each job of the trace, the start that was planned first; none for one that never had a reservation.
    pub promised: Vec<Option<i64>>,
    /// Number of queue passes.
    pub passes: u64,
}

/// The cluster can't be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// More jobs than supported.
    #[error("the trace has more than 4294967295 jobs: split it")]
    TooManyJobs,
    /// No nodes, or nodes without cores.
    #[error("a cluster needs at least one node with one core")]
    NoCores,
    /// No queues.
    #[error("at least one queue is required")]
    NoQueue,
    /// A job names a queue that is not among several.
    #[error(
        "job {job} is for queue `{name}`, which is not defined: define it, or use one queue for all jobs"
    )]
    UnknownQueue {
        /// The number of the job in the trace.
        job: u64,
        /// The queue's name.
        name: Arc<str>,
    },
}

/// A queue and its waiting jobs.
struct Queue<'a> {
    config: &'a QueueConfig,
    /// In queue order: priority, submission, position in the trace.
    waiting: VecDeque<PassJob>,
    /// Results of its last pass.
    memory: Arc<KnownFailures>,
}

/// A cluster in use, and its queues.
struct Simulation<'a> {
    machine: Machine,
    trace: &'a [TraceJob],
    queues: Vec<Queue<'a>>,
    inventory: Inventory,
    /// The nodes, if the inventory has them as one.
    pool: Option<NodePool>,
    /// What a slot needs.
    needs: Arc<ResourceList>,
    constraint: Arc<NodeConstraint>,
    ends: BTreeSet<(i64, u32)>,
    /// Number of holders of each running job.
    holdings: BTreeMap<u32, usize>,
    outcome: Outcome,
}

/// Whether only the number of free nodes decides when jobs start. It does not where reservations on certain nodes can't
/// be moved to others.
fn counts(machine: Machine, queues: &[QueueConfig]) -> bool {
    let counts = |queue: &QueueConfig| match queue.policy {
        QueuePolicy::Fcfs | QueuePolicy::Easy => true,
        QueuePolicy::Conservative => queue.keeps() && machine.enforce_limits,
        QueuePolicy::Hybrid => false,
    };
    !machine.each_node
        && matches!(queues, [queue] if counts(queue) && queue.node_policy != NodePolicy::Spread)
}

/// Simulates a trace. The queues share the cluster and are scheduled in order; a job without a queue waits in the
/// first, and a single queue is used for all jobs. `progress` is called after every event with the number of jobs that
/// have ended or were refused.
pub fn simulate(
    machine: Machine,
    trace: &[TraceJob],
    queues: &[QueueConfig],
    progress: &mut dyn FnMut(usize),
) -> Result<Outcome, SimError> {
    if machine.nodes == 0 || machine.cores == 0 {
        return Err(SimError::NoCores);
    }
    if queues.is_empty() {
        return Err(SimError::NoQueue);
    }
    let places = trace.iter().map(|job| place_of(job, queues)).collect::<Result<Vec<usize>, _>>()?;
    let count = u32::try_from(trace.len()).map_err(|_| SimError::TooManyJobs)?;
    let mut arrivals: Vec<u32> = (0..count).collect();
    arrivals.sort_by_key(|&index| trace[index as usize].submit);
    let mut simulation = Simulation::new(machine, trace, queues);
    let mut arrivals = arrivals.into_iter().peekable();
    let (mut done, mut last) = (0, i64::MIN);
    loop {
        let arrival = arrivals.peek().map(|&index| trace[index as usize].submit);
        let end = simulation.ends.first().map(|&(end, _)| end);
        let planned = simulation.planned_start(last);
        let Some(now) = arrival.into_iter().chain(end).chain(planned).min() else {
            return Ok(simulation.outcome);
        };
        last = now;
        done += simulation.end_jobs(now);
        while let Some(index) = arrivals.next_if(|&index| trace[index as usize].submit == now) {
            done += usize::from(!simulation.arrive(index, places[index as usize]));
        }
        simulation.schedule(now);
        progress(done);
    }
}

/// The index of a job's queue.
fn place_of(job: &TraceJob, queues: &[QueueConfig]) -> Result<usize, SimError> {
    let Some(name) = job.queue.as_ref().filter(|_| queues.len() > 1) else { return Ok(0) };
    let unknown = || SimError::UnknownQueue { job: job.id, name: name.clone() };
    queues.iter().position(|queue| queue.name == *name).ok_or_else(unknown)
}

impl<'a> Simulation<'a> {
    fn new(machine: Machine, trace: &'a [TraceJob], queues: &'a [QueueConfig]) -> Self {
        let queue = |config| Queue { config, waiting: VecDeque::new(), memory: Arc::default() };
        let mut inventory = Inventory::new();
        let highest = queues.first().is_some_and(|queue| queue.node_policy == NodePolicy::High);
        let pool = counts(machine, queues).then(|| NodePool::new(machine.nodes, machine.cores, highest));
        let cores = u64::from(machine.cores);
        let (nodes, each) = match pool {
            Some(_) => (1, cores * u64::from(machine.nodes)),
            None => (machine.nodes, cores),
        };
        for index in 0..nodes {
            let mut has = ResourceList::new();
            has.set("cpu", each);
            let name = nodes::name(index);
            inventory.set_node(NodeSpec {
                uid: name.clone(),
                name,
                ready: true,
                capacity: has.clone(),
                allocatable: has,
                ..NodeSpec::default()
            });
        }
        let mut needs = ResourceList::new();
        needs.set("cpu", if machine.whole_nodes { cores } else { 1 });
        Self {
            machine,
            trace,
            queues: queues.iter().map(queue).collect(),
            inventory,
            pool,
            needs: Arc::new(needs),
            constraint: Arc::default(),
            ends: BTreeSet::new(),
            holdings: BTreeMap::new(),
            outcome: Outcome {
                jobs: vec![None; trace.len()],
                nodes: vec![Box::default(); trace.len()],
                promised: vec![None; trace.len()],
                passes: 0,
            },
        }
    }

    /// Whether reservations stay in the inventory from one pass to the next.
    fn keeps(&self) -> bool {
        matches!(self.queues.as_slice(), [queue] if queue.config.keeps())
    }

    /// The next planned start, at which perhaps nothing ends, if reservations are kept.
    fn planned_start(&self, last: i64) -> Option<i64> {
        let start = self.inventory.promised().next().map(|(start, _)| start).filter(|_| self.keeps());
        // Behind jobs that run longer than planned, another second is planned each time.
        let next = if self.machine.enforce_limits { last } else { last.saturating_add(1) };
        start.filter(|start| *start > next)
    }

    /// The request of a job; none if the cluster is too small for it.
    fn request(&self, job: &TraceJob) -> Option<Request> {
        let Machine { nodes, cores, whole_nodes, .. } = self.machine;
        let count = if whole_nodes { job.cores.div_ceil(cores) } else { job.cores };
        let fits = if whole_nodes {
            count <= nodes
        } else {
            u64::from(count) <= u64::from(nodes) * u64::from(cores)
        };
        let shape = Shape {
            count,
            needs: self.needs.clone(),
            constraint: self.constraint.clone(),
            ports: Arc::default(),
            peer: None,
            preferences: None,
        };
        let duration = Some(job.limit.max(1));
        (fits && count > 0).then(|| Request { shapes: vec![shape], duration, ..Request::default() })
    }

    /// Adds a job to the queue; false if it can never run.
    fn arrive(&mut self, index: u32, queue: usize) -> bool {
        let job = &self.trace[index as usize];
        let Some(request) = self.request(job) else { return false };
        let queue = &mut self.queues[queue];
        let at = queue.waiting.partition_point(|other| other.priority >= job.priority);
        queue.waiting.insert(at, PassJob { id: index, priority: job.priority, request: Arc::new(request) });
        true
    }

    /// Frees the resources of jobs that end at a time; returns their number.
    fn end_jobs(&mut self, now: i64) -> usize {
        let mut ended = 0;
        while let Some(&(_, index)) = self.ends.first().filter(|(end, _)| *end <= now) {
            self.ends.pop_first();
            for part in 0..self.holdings.remove(&index).unwrap_or(0) {
                self.inventory.release(&start_holder(index, part));
            }
            if let Some(pool) = &mut self.pool {
                pool.give_back(&self.outcome.nodes[index as usize]);
            }
            ended += 1;
        }
        ended
    }

    /// Runs passes over all queues, until none was ended by its depth after something had started.
    fn schedule(&mut self, now: i64) {
        loop {
            if !self.keeps() {
                self.inventory.clear_reservations();
            }
            let (changed, freed) = (self.inventory.disturbed(now), self.inventory.only_freed());
            self.inventory.settle();
            let mut again = false;
            for queue in 0..self.queues.len() {
                again |= self.pass(queue, now, changed, freed);
            }
            if !again {
                return;
            }
        }
    }

    /// One pass over a queue; returns whether it was ended by its depth after something had started.
    fn pass(&mut self, at: usize, now: i64, changed: bool, freed: bool) -> bool {
        let queue = &mut self.queues[at];
        // Of an fcfs queue, only those are considered that may start, a few at a time.
        let most = if queue.config.policy == QueuePolicy::Fcfs { AT_ONCE } else { usize::MAX };
        let count = queue.waiting.len().min(queue.config.queue_depth).min(most);
        let cut_short = queue.waiting.len() > count;
        let jobs = &queue.waiting.make_contiguous()[..count];
        if jobs.is_empty() {
            return false;
        }
        let carry = Carry::remembering(std::mem::take(&mut queue.memory))
            .changed(changed)
            .only_freed(freed)
            .silent()
            .holding();
        self.outcome.passes += 1;
        let result = pass(&mut self.inventory, queue.config, jobs, now, u64::MAX, Some(carry));
        queue.memory = result.memory;
        for (index, planned) in &result.reserved {
            self.outcome.promised[*index as usize].get_or_insert(planned.start);
        }
        let again = cut_short && !result.started.is_empty();
        if result.started.is_empty() {
            return again;
        }
        let started: BTreeSet<u32> = result.started.iter().map(|(index, _)| *index).collect();
        let places: Vec<usize> = (0..count).filter(|at| started.contains(&jobs[*at].id)).collect();
        // From the last one on, so that the places of those before it stay theirs.
        let jobs: BTreeMap<u32, PassJob> =
            places.iter().rev().filter_map(|at| queue.waiting.remove(*at)).map(|job| (job.id, job)).collect();
        for (index, placement) in result.started {
            if let Some(job) = jobs.get(&index) {
                self.start(index, &job.request, &placement, now);
            }
        }
        again
    }

    fn start(&mut self, index: u32, request: &Request, placement: &Placement, now: i64) {
        let job = &self.trace[index as usize];
        let cores =
            |slot: &Slot| request.shapes[slot.shape as usize].needs.get("cpu") * u64::from(slot.count);
        let nodes = if let Some(pool) = &mut self.pool {
            pool.take(placement.slots.iter().map(cores).sum())
        } else {
            let named = |slot: &Slot| nodes::index(&slot.node).zip(u32::try_from(cores(slot)).ok());
            nodes::spans(placement.slots.iter().filter_map(named).collect())
        };
        self.holdings.insert(index, placement.slots.len());
        let run = if self.machine.enforce_limits { job.run.min(job.limit) } else { job.run };
        let end = now.saturating_add(run.max(1));
        self.ends.insert((end, index));
        self.outcome.nodes[index as usize] = nodes;
        self.outcome.jobs[index as usize] = Some(Ran { start: now, end });
    }
}

#[cfg(test)]
mod tests;
