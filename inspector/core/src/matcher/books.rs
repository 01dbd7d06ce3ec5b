//! Who holds what of each vertex, and when. A vertex that nobody ever used, and that has no aggregates,
//! costs one word.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::errno::Errno;
use crate::graph::{Graph, VertexId};
use crate::planner::{MultiPlanner, MultiSpan, Planner, SpanId};

/// The number of a job.
pub type JobId = u64;

/// What kind of hold a job has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It runs now.
    Allocation,
    /// It is planned for later.
    Reservation,
}

/// What one job has to do with one vertex.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The job.
    pub job: JobId,
    /// Whether the job's tree of vertices goes through here.
    pub tag: bool,
    /// Its span in the plan of the vertex, for what it holds exclusively.
    pub plan: Option<(Hold, SpanId)>,
    /// The time for which it is somewhere here or below: nobody else can have all of this vertex then.
    pub presence: Option<(i64, i64)>,
    /// Its span in the aggregates.
    pub aggregate: Option<MultiSpan>,
}

impl Entry {
    fn is_empty(&self) -> bool {
        !self.tag && self.plan.is_none() && self.presence.is_none() && self.aggregate.is_none()
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
    entries: SmallVec<[Entry; 1]>,
}

impl Account {
    /// All jobs that have to do with the vertex, by number.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What one job has to do with it.
    pub fn entry(&self, job: JobId) -> Option<&Entry> {
        self.entries.binary_search_by_key(&job, |entry| entry.job).ok().map(|at| &self.entries[at])
    }

    /// The entry of a job, to be changed; made when missing. Call [`Account::tidy`] after emptying it.
    pub fn entry_mut(&mut self, job: JobId) -> &mut Entry {
        // Most jobs have higher numbers than those before them.
        let known = if self.entries.last().is_none_or(|last| last.job < job) {
            Err(self.entries.len())
        } else {
            self.entries.binary_search_by_key(&job, |entry| entry.job)
        };
        let at = match known {
            Ok(at) => at,
            Err(at) => {
                let entry = Entry { job, tag: false, plan: None, presence: None, aggregate: None };
                self.entries.insert(at, entry);
                at
            }
        };
        &mut self.entries[at]
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
        self.entries.iter().any(|entry| matches!(entry.plan, Some((Hold::Allocation, _))))
    }

    /// Whether a job is to hold it later.
    pub fn is_reserved(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.plan, Some((Hold::Reservation, _))))
    }

    /// First and last second for which anything is booked here; none when nothing is.
    pub(super) fn hull(&self) -> Option<(i64, i64)> {
        let plan = self.plan.hull();
        let aggregates = self.aggregates.as_deref().and_then(MultiPlanner::hull);
        let presence = self.entries.iter().filter_map(|entry| entry.presence);
        presence.chain(plan).chain(aggregates).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Whether any job is here or below at some time of a stretch.
    pub fn is_visited(&self, start: i64, end: i64) -> bool {
        let meets = |&(from, to): &(i64, i64)| from < end && start < to;
        self.entries.iter().any(|entry| entry.presence.as_ref().is_some_and(meets))
    }

    /// Lets go of everything a job holds; answers how much of the vertex that was. A span that is not
    /// there is no error.
    pub fn release(&mut self, job: JobId) -> Option<(Hold, u64)> {
        let at = self.entries.binary_search_by_key(&job, |entry| entry.job).ok()?;
        let entry = self.entries.remove(at);
        if let (Some(span), Some(aggregates)) = (entry.aggregate, &mut self.aggregates) {
            // The span may have gone with a type that is no longer summed up.
            let _ = aggregates.remove(span);
        }
        let (hold, span) = entry.plan?;
        self.plan.remove(span).ok().map(|span| (hold, span.amount))
    }
}

/// The books of all vertices.
#[derive(Clone, Debug, Default)]
pub struct Books {
    accounts: Vec<Option<Box<Account>>>,
    /// Per vertex: the number of the unit it belongs to.
    units: Arc<[u32]>,
    /// Per unit: counts up whenever its books may have changed.
    stamps: Vec<u32>,
    /// Units whose books may have changed since somebody asked; each once.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    /// Per job and vertex with many children: those of them to which its tree of vertices led.
    branches: BTreeMap<(JobId, VertexId), Vec<VertexId>>,
    /// Vertices whose books may have changed since somebody asked; none when nobody follows them.
    log: Option<Vec<VertexId>>,
}

/// Changes that are noted one by one; with more, everything counts as changed.
const LOGGED: usize = 1 << 20;

impl Books {
    /// The books of a vertex, if it has any.
    #[inline]
    pub fn get(&self, id: VertexId) -> Option<&Account> {
        self.accounts.get(id.index())?.as_deref()
    }

    /// The books of a vertex that has some.
    #[inline]
    pub fn get_mut(&mut self, id: VertexId) -> Option<&mut Account> {
        self.touch(id);
        self.accounts.get_mut(id.index())?.as_deref_mut()
    }

    /// Says which vertices belong to which of so many units; changes are followed unit by unit from now on.
    pub(super) fn follow(&mut self, units: Arc<[u32]>, count: usize) {
        self.units = units;
        self.stamps = vec![0; count];
        self.is_touched = vec![false; count];
        self.touched.clear();
    }

    /// How often the books of a unit may have changed.
    #[inline]
    pub(super) fn stamp(&self, unit: u32) -> u32 {
        self.stamps.get(unit as usize).copied().unwrap_or(0)
    }

    /// Units whose books may have changed since the last call.
    pub(super) fn take_touched(&mut self) -> Vec<u32> {
        let touched = std::mem::take(&mut self.touched);
        for &unit in &touched {
            self.is_touched[unit as usize] = false;
        }
        touched
    }

    /// What [`Self::changes`] would answer.
    pub(super) fn pending(&self) -> Option<&Vec<VertexId>> {
        self.log.as_ref().filter(|log| log.len() < LOGGED)
    }

    /// Vertices whose books may have changed since the last call; none when that is not known, as at the first one.
    pub(super) fn changes(&mut self) -> Option<Vec<VertexId>> {
        self.log.replace(Vec::new()).filter(|log| log.len() < LOGGED)
    }

    /// Notes that the tree of a job leads to one of many children of a vertex, before the vertex itself is
    /// booked. Of a job that was there already, with fewer children around, nothing is noted.
    pub(super) fn note_child(&mut self, job: JobId, parent: VertexId, child: VertexId) {
        if let Some(known) = self.branches.get_mut(&(job, parent)) {
            known.push(child);
        } else if self.get(parent).is_none_or(|account| account.entry(job).is_none()) {
            self.branches.insert((job, parent), vec![child]);
        }
    }

    /// The children that were noted, which is forgotten; none when it is not known which they are. Some may
    /// not be tagged any more.
    pub(super) fn take_children(&mut self, job: JobId, parent: VertexId) -> Option<Vec<VertexId>> {
        self.branches.remove(&(job, parent))
    }

    /// Forgets all children that were noted for a job that is gone.
    pub(super) fn forget_children(&mut self, job: JobId) {
        while let Some((&key, _)) = self.branches.range((job, VertexId(0))..=(job, VertexId(u32::MAX))).next()
        {
            self.branches.remove(&key);
        }
    }

    #[inline]
    fn touch(&mut self, id: VertexId) {
        if let Some(log) = &mut self.log
            && log.len() < LOGGED
        {
            log.push(id);
        }
        if let Some(&unit) = self.units.get(id.index())
            && let Some(stamp) = self.stamps.get_mut(unit as usize)
        {
            *stamp = stamp.wrapping_add(1);
            if !std::mem::replace(&mut self.is_touched[unit as usize], true) {
                self.touched.push(unit);
            }
        }
    }

    /// The books of a vertex, opened when there are none yet.
    pub fn open(&mut self, graph: &Graph, id: VertexId) -> &mut Account {
        if self.accounts.len() <= id.index() {
            self.accounts.resize_with(graph.vertex_count(), || None);
        }
        self.touch(id);
        self.accounts[id.index()].get_or_insert_with(|| {
            let plan = Planner::new(graph.vertex(id).size);
            Box::new(Account { plan, aggregates: None, entries: SmallVec::new() })
        })
    }

    /// Forgets everything about a vertex.
    pub fn close(&mut self, id: VertexId) {
        self.touch(id);
        if let Some(account) = self.accounts.get_mut(id.index()) {
            *account = None;
        }
    }

    /// How much of a vertex is free throughout a stretch of time.
    #[inline]
    pub fn min_free(&self, graph: &Graph, id: VertexId, start: i64, duration: i64) -> Result<u64, Errno> {
        match self.get(id) {
            Some(account) => account.plan.min_during(start, duration),
            None if duration < 1 => Err(Errno::Einval),
            None if start.checked_add(duration).is_none() => Err(Errno::Erange),
            None => Ok(graph.vertex(id).size),
        }
    }

    /// The aggregates of a vertex.
    #[inline]
    pub fn aggregates(&self, id: VertexId) -> Option<&MultiPlanner> {
        self.get(id)?.aggregates.as_deref()
    }

    /// Whether the tree of a job goes through a vertex.
    pub fn is_tagged(&self, id: VertexId, job: JobId) -> bool {
        self.get(id).and_then(|account| account.entry(job)).is_some_and(|entry| entry.tag)
    }
}
