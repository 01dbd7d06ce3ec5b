//! The allocations of all vertices, with change tracking. A vertex that was never used and has no aggregates
//! needs four bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::account::Accounts;
pub use super::account::{Account, JobEntry};
use super::job::JobId;
use crate::errno::Errno;
use crate::graph::{Graph, VertexId};
use crate::planner::MultiPlanner;

/// The allocations of all vertices.
#[derive(Clone, Debug, Default)]
pub struct Allocations {
    accounts: Accounts,
    /// Per vertex: the number of the unit it belongs to.
    units: Arc<[u32]>,
    /// Per unit: counts up whenever its allocations may have changed.
    stamps: Vec<u32>,
    /// Units whose allocations may have changed since somebody asked; each once.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    /// Per job and vertex with many children: those of them to which its tree of vertices led.
    branches: BTreeMap<(JobId, VertexId), Vec<VertexId>>,
    /// Vertices whose allocations may have changed since somebody asked; none when nobody follows them.
    log: Option<Vec<VertexId>>,
}

/// Changes that are noted one by one; with more, everything counts as changed.
const LOGGED: usize = 1 << 20;

impl Allocations {
    /// The account of a vertex, if it has one.
    #[inline]
    pub fn get(&self, id: VertexId) -> Option<&Account> {
        self.accounts.get(id)
    }

    /// The allocations of a vertex that has some.
    #[inline]
    pub fn get_mut(&mut self, id: VertexId) -> Option<&mut Account> {
        self.touch(id);
        self.accounts.get_mut(id)
    }

    /// Says which vertices belong to which of so many units; changes are followed unit by unit from now on.
    pub(super) fn follow(&mut self, units: Arc<[u32]>, count: usize) {
        self.units = units;
        self.stamps = vec![0; count];
        self.is_touched = vec![false; count];
        self.touched.clear();
    }

    /// How often the allocations of a unit may have changed.
    #[inline]
    pub(super) fn stamp(&self, unit: u32) -> u32 {
        self.stamps.get(unit as usize).copied().unwrap_or(0)
    }

    /// Units whose allocations may have changed since the last call.
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

    /// Vertices whose allocations may have changed since the last call; none when that is not known, as at the first one.
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

    /// The allocations of a vertex, opened when there are none yet.
    pub fn open(&mut self, graph: &Graph, id: VertexId) -> &mut Account {
        self.accounts.reserve(graph.vertex_count());
        self.touch(id);
        self.accounts.open(id, graph.vertex(id).size)
    }

    /// Forgets everything about a vertex.
    pub fn close(&mut self, id: VertexId) {
        self.touch(id);
        self.accounts.close(id);
    }

    /// The minimum free amount of a vertex during a time range.
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

    /// Whether a job uses a vertex or its descendants.
    pub fn is_tagged(&self, id: VertexId, job: JobId) -> bool {
        self.get(id).and_then(|account| account.entry(job)).is_some_and(|entry| entry.tag)
    }
}
