//! Who holds what of one vertex, and when; and where the books of all vertices lie.

use smallvec::SmallVec;

use super::job::{AllocationKind, JobId};
use crate::graph::VertexId;
use crate::planner::{MultiPlanner, MultiSpan, Planner, SpanId};

/// What one job has to do with one vertex.
#[derive(Clone, Copy, Debug)]
pub struct JobEntry {
    /// The job.
    pub job: JobId,
    /// Whether the job's tree of vertices goes through here.
    pub tag: bool,
    /// Its span in the plan of the vertex, for what it holds exclusively.
    pub plan: Option<(AllocationKind, SpanId)>,
    /// Its span in the aggregates.
    pub aggregate: Option<MultiSpan>,
    /// Start and end of its presence; the same for none.
    stay: (i64, i64),
}

impl JobEntry {
    fn new(job: JobId) -> Self {
        Self { job, tag: false, plan: None, aggregate: None, stay: (0, 0) }
    }

    /// The time for which the job is somewhere here or below: nobody else can have all of this vertex then.
    pub fn presence(&self) -> Option<(i64, i64)> {
        (self.stay.0 < self.stay.1).then_some(self.stay)
    }

    /// Says when it is somewhere here or below, from a first second up to another; never when that is not later.
    pub fn set_presence(&mut self, start: i64, end: i64) {
        self.stay = (start, end);
    }

    fn is_empty(&self) -> bool {
        !self.tag && self.plan.is_none() && self.presence().is_none() && self.aggregate.is_none()
    }
}

/// The books of one vertex.
#[derive(Clone, Debug)]
pub struct Account {
    /// What is free of it when.
    pub plan: Planner,
    /// Sums of what is free below it, when there are any.
    pub aggregates: Option<Box<MultiPlanner>>,
    /// Sorted by job.
    entries: SmallVec<[JobEntry; 1]>,
}

impl Account {
    fn new(total: u64) -> Self {
        Self { plan: Planner::new(total), aggregates: None, entries: SmallVec::new() }
    }

    /// All jobs that have to do with the vertex, by number.
    pub fn entries(&self) -> &[JobEntry] {
        &self.entries
    }

    /// What one job has to do with it.
    pub fn entry(&self, job: JobId) -> Option<&JobEntry> {
        self.entries.binary_search_by_key(&job, |entry| entry.job).ok().map(|at| &self.entries[at])
    }

    /// The entry of a job, to be changed; made when missing. Call [`Account::tidy`] after emptying it.
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

    /// Notes that somebody is here for some time whom nobody can cancel: the number went to another job.
    pub(super) fn leave_behind(&mut self, (start, end): (i64, i64)) {
        self.lost_mut().set_presence(start, end);
    }

    /// Notes what a job holds. Where its number has a hold of the other kind already, both stand, and it is the
    /// allocation that can be cancelled.
    pub(super) fn hold_too(&mut self, job: JobId, plan: (AllocationKind, SpanId)) {
        let before = self.entry_mut(job).plan.replace(plan);
        let Some(before) = before.filter(|before| before.0 != plan.0) else { return };
        let (kept, lost) = if plan.0 == AllocationKind::Allocation { (plan, before) } else { (before, plan) };
        self.entry_mut(job).plan = Some(kept);
        self.lost_mut().plan = Some(lost);
    }

    /// An entry of nobody.
    fn lost_mut(&mut self) -> &mut JobEntry {
        let lost = (0..=JobId::MAX).rev().find(|job| self.entry(*job).is_none()).unwrap_or(JobId::MAX);
        self.entry_mut(lost)
    }

    /// Drops the entry of a job if nothing is left in it.
    pub fn tidy(&mut self, job: JobId) {
        if let Ok(at) = self.entries.binary_search_by_key(&job, |entry| entry.job)
            && self.entries[at].is_empty()
        {
            self.entries.remove(at);
        }
    }

    /// Whether a job holds it now, or formally still does.
    pub fn is_allocated(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.plan, Some((AllocationKind::Allocation, _))))
    }

    /// Whether a job is to hold it later.
    pub fn is_reserved(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.plan, Some((AllocationKind::Reservation, _))))
    }

    /// First and last second for which anything is booked here; none when nothing is.
    pub(super) fn hull(&self) -> Option<(i64, i64)> {
        let plan = self.plan.hull();
        let aggregates = self.aggregates.as_deref().and_then(MultiPlanner::hull);
        let presence = self.entries.iter().filter_map(JobEntry::presence);
        presence.chain(plan).chain(aggregates).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Whether any job is here or below at some time of a stretch.
    pub fn is_visited(&self, start: i64, end: i64) -> bool {
        self.entries.iter().any(|entry| entry.presence().is_some_and(|(from, to)| from < end && start < to))
    }

    /// Gives back a span in the aggregates.
    pub(super) fn release_aggregate(&mut self, span: Option<MultiSpan>) {
        if let (Some(span), Some(aggregates)) = (span, &mut self.aggregates) {
            // The span may have gone with a type that is no longer summed up.
            let _ = aggregates.remove(span);
        }
    }

    /// Lets go of everything a job holds; answers how much of the vertex that was. A span that is not
    /// there is no error.
    pub fn release(&mut self, job: JobId) -> Option<(AllocationKind, u64)> {
        let at = self.entries.binary_search_by_key(&job, |entry| entry.job).ok()?;
        let entry = self.entries.remove(at);
        self.release_aggregate(entry.aggregate);
        let (hold, span) = entry.plan?;
        self.plan.remove(span).ok().map(|span| (hold, span.amount))
    }
}

/// Accounts that lie side by side, so that a match that opens many takes little time for each.
const CHUNK: usize = 64;

/// The accounts of vertices. A vertex without one costs four bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Accounts {
    /// Per vertex: the place of its account, counted from 1.
    places: Vec<u32>,
    chunks: Vec<Vec<Account>>,
    /// Places of accounts that were closed.
    unused: Vec<u32>,
}

impl Accounts {
    /// Makes room for so many vertices.
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

    /// The account of a vertex for which there is room; opened with a total when there is none.
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

    /// Forgets the account of a vertex.
    pub(super) fn close(&mut self, id: VertexId) {
        if let Some(account) = self.get_mut(id) {
            *account = Account::new(0);
            self.unused.push(std::mem::take(&mut self.places[id.index()]));
        }
    }
}
