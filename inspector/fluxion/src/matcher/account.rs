//! Accounts: the allocations of each vertex by job and time.

use smallvec::SmallVec;

use super::job::{AllocationKind, JobId};
use crate::graph::VertexId;
use crate::planner::{MultiPlanner, MultiSpan, Planner, SpanId};

/// Entry of one job at one vertex.
#[derive(Clone, Copy, Debug)]
pub struct JobEntry {
    /// The job.
    pub job: JobId,
    /// Whether the job uses this vertex or its descendants.
    pub tag: bool,
    /// Its span in the planner of the vertex, if it holds the vertex exclusively.
    pub plan: Option<(AllocationKind, SpanId)>,
    /// Its span in the aggregates.
    pub aggregate: Option<MultiSpan>,
    /// Start and end of its presence; equal if there is none.
    stay: (i64, i64),
}

impl JobEntry {
    fn new(job: JobId) -> Self {
        Self { job, tag: false, plan: None, aggregate: None, stay: (0, 0) }
    }

    /// The time range in which the job uses this vertex or its descendants, so that no other job can use all of it.
    pub fn presence(&self) -> Option<(i64, i64)> {
        (self.stay.0 < self.stay.1).then_some(self.stay)
    }

    /// Sets the time range in which the job uses this vertex or its descendants; cleared if the end is not after the start.
    pub fn set_presence(&mut self, start: i64, end: i64) {
        self.stay = (start, end);
    }

    fn is_empty(&self) -> bool {
        !self.tag && self.plan.is_none() && self.presence().is_none() && self.aggregate.is_none()
    }
}

/// The account of one vertex.
#[derive(Clone, Debug)]
pub struct Account {
    /// Free amount of the vertex over time.
    pub plan: Planner,
    /// Aggregates of the free amounts below it, if any.
    pub aggregates: Option<Box<MultiPlanner>>,
    /// Sorted by job.
    entries: SmallVec<[JobEntry; 1]>,
}

impl Account {
    fn new(total: u64) -> Self {
        Self { plan: Planner::new(total), aggregates: None, entries: SmallVec::new() }
    }

    /// Entries of all jobs, sorted by job id.
    pub fn entries(&self) -> &[JobEntry] {
        &self.entries
    }

    /// The entry of a job.
    pub fn entry(&self, job: JobId) -> Option<&JobEntry> {
        self.entries.binary_search_by_key(&job, |entry| entry.job).ok().map(|at| &self.entries[at])
    }

    /// The mutable entry of a job, created if missing. Call [`Account::tidy`] after clearing it.
    pub fn entry_mut(&mut self, job: JobId) -> &mut JobEntry {
        // Most jobs have higher numbers than those before them.
        let known = if self.entries.last().is_none_or(|last| last.job < job) {
            Err(self.entries.len())
        } else {
            self.entries.binary_search_by_key(&job, |entry| entry.job)
        };
        let at = match known {
            Ok(at) => at,
            Err(at) => {
                self.entries.insert(at, JobEntry::new(job));
                at
            }
        };
        &mut self.entries[at]
    }

    /// Records a presence that can't be cancelled, because the job id was reassigned to another job.
    pub(super) fn leave_behind(&mut self, (start, end): (i64, i64)) {
        self.lost_mut().set_presence(start, end);
    }

    /// Records the span of a job. If the job id already has a span of the other kind, both are kept, and only the
    /// allocation can be cancelled.
    pub(super) fn hold_too(&mut self, job: JobId, plan: (AllocationKind, SpanId)) {
        let before = self.entry_mut(job).plan.replace(plan);
        let Some(before) = before.filter(|before| before.0 != plan.0) else { return };
        let (kept, lost) = if plan.0 == AllocationKind::Allocation { (plan, before) } else { (before, plan) };
        self.entry_mut(job).plan = Some(kept);
        self.lost_mut().plan = Some(lost);
    }

    /// An entry without a job.
    fn lost_mut(&mut self) -> &mut JobEntry {
        let lost = (0..=JobId::MAX).rev().find(|job| self.entry(*job).is_none()).unwrap_or(JobId::MAX);
        self.entry_mut(lost)
    }

    /// Removes the entry of a job if it is empty.
    pub fn tidy(&mut self, job: JobId) {
        if let Ok(at) = self.entries.binary_search_by_key(&job, |entry| entry.job)
            && self.entries[at].is_empty()
        {
            self.entries.remove(at);
        }
    }

    /// Whether it is allocated to a job, including jobs that are overdue.
    pub fn is_allocated(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.plan, Some((AllocationKind::Allocation, _))))
    }

    /// Whether it is reserved for a job.
    pub fn is_reserved(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.plan, Some((AllocationKind::Reservation, _))))
    }

    /// First and last second of all spans; none if there are no spans.
    pub(super) fn hull(&self) -> Option<(i64, i64)> {
        let plan = self.plan.hull();
        let aggregates = self.aggregates.as_deref().and_then(MultiPlanner::hull);
        let presence = self.entries.iter().filter_map(JobEntry::presence);
        presence.chain(plan).chain(aggregates).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Whether any job uses this vertex or its descendants during a time range.
    pub fn is_visited(&self, start: i64, end: i64) -> bool {
        self.entries.iter().any(|entry| entry.presence().is_some_and(|(from, to)| from < end && start < to))
    }

    /// Removes a span from the aggregates.
    pub(super) fn release_aggregate(&mut self, span: Option<MultiSpan>) {
        if let (Some(span), Some(aggregates)) = (span, &mut self.aggregates) {
            // The span may have gone with a type that is no longer summed up.
            let _ = aggregates.remove(span);
        }
    }

    /// Releases all resources of a job; returns the released amount of the vertex. A missing span is
    /// not an error.
    pub fn release(&mut self, job: JobId) -> Option<(AllocationKind, u64)> {
        let at = self.entries.binary_search_by_key(&job, |entry| entry.job).ok()?;
        let entry = self.entries.remove(at);
        self.release_aggregate(entry.aggregate);
        let (hold, span) = entry.plan?;
        self.plan.remove(span).ok().map(|span| (hold, span.amount))
    }
}

/// Number of accounts allocated together, which reduces the time per account.
const CHUNK: usize = 64;

/// The accounts of vertices. A vertex without one costs four bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Accounts {
    /// Position of the account by vertex, starting at 1.
    places: Vec<u32>,
    chunks: Vec<Vec<Account>>,
    /// Positions of closed accounts.
    unused: Vec<u32>,
}

impl Accounts {
    /// Reserves memory for this many vertices.
    pub(super) fn reserve(&mut self, vertices: usize) {
        if self.places.len() < vertices {
            self.places.resize(vertices, 0);
        }
    }

    #[inline]
    fn place(&self, id: VertexId) -> Option<(usize, usize)> {
        let place = (*self.places.get(id.index())? as usize).checked_sub(1)?;
        Some((place / CHUNK, place % CHUNK))
    }

    #[inline]
    pub(super) fn get(&self, id: VertexId) -> Option<&Account> {
        let (chunk, at) = self.place(id)?;
        self.chunks.get(chunk)?.get(at)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: VertexId) -> Option<&mut Account> {
        let (chunk, at) = self.place(id)?;
        self.chunks.get_mut(chunk)?.get_mut(at)
    }

    /// The account of a vertex within the reserved memory, created with a total if missing.
    #[inline]
    pub(super) fn open(&mut self, id: VertexId, total: u64) -> &mut Account {
        let (chunk, at) = match self.place(id) {
            Some(place) => place,
            None => self.put(id, Account::new(total)),
        };
        &mut self.chunks[chunk][at]
    }

    fn put(&mut self, id: VertexId, account: Account) -> (usize, usize) {
        let place = if let Some(place) = self.unused.pop() {
            let at = place as usize - 1;
            self.chunks[at / CHUNK][at % CHUNK] = account;
            place
        } else {
            if self.chunks.last().is_none_or(|last| last.len() == CHUNK) {
                self.chunks.push(Vec::with_capacity(CHUNK));
            }
            let last = self.chunks.len() - 1;
            self.chunks[last].push(account);
            let place = last * CHUNK + self.chunks[last].len();
            u32::try_from(place).expect("there are fewer than 2^32 vertices")
        };
        self.places[id.index()] = place;
        let at = place as usize - 1;
        (at / CHUNK, at % CHUNK)
    }

    /// Removes the account of a vertex.
    pub(super) fn close(&mut self, id: VertexId) {
        if let Some(account) = self.get_mut(id) {
            *account = Account::new(0);
            self.unused.push(std::mem::take(&mut self.places[id.index()]));
        }
    }
}
