//! Releases part of the resources of a job and updates the aggregates.

use std::collections::{BTreeMap, BTreeSet};

use super::engine::Engine;
use super::job::{AllocationKind, JobId};
use super::operation::Failure;
use crate::document::{Document, GraphDocument, RankDocument};
use crate::errno::Errno;
use crate::graph::{TypeId, VertexId};
use crate::planner::Reduced;

/// What was let go of, per type.
pub(super) type Freed = BTreeMap<TypeId, u64>;

/// What was let go of in one rank, and the topmost vertex it was under.
#[derive(Debug, Default)]
struct Released {
    freed: Freed,
    top: Option<(usize, VertexId)>,
}

impl Released {
    fn consider(&mut self, id: VertexId, path_length: usize) {
        if self.top.is_none_or(|(length, _)| path_length < length) {
            self.top = Some((path_length, id));
        }
    }
}

fn fail<T>(message: String) -> Result<T, Failure> {
    Err(Failure::new(Errno::Einval, message))
}

impl Engine {
    /// Releases the resources listed in a document. Returns whether the job has no resources left. Only the
    /// ranks of an execution document are used.
    ///
    /// Errors: `Einval` if the document does not match the graph or the resources of the job; resources
    /// released before the error stay released.
    pub fn partial_cancel(&mut self, job: JobId, document: &Document) -> Result<bool, Failure> {
        self.scratch.start(&self.graph);
        self.scratch.preorder = 0;
        self.scratch.postorder = 0;
        let released = match document {
            Document::Graph(document) => self.release_listed(job, document)?,
            Document::Ranks(document) => self.release_ranks(job, document)?,
        };
        let root = self.root();
        let tagged = |engine: &Self| root.is_some_and(|root| engine.allocations.is_tagged(root, job));
        if tagged(self) {
            for part in released.values() {
                if let Some((_, top)) = part.top {
                    self.give_back(job, top, &part.freed)?;
                }
            }
        } else {
            self.drop_plans(job);
        }
        let gone = !tagged(self);
        if gone {
            self.allocations.forget_children(job);
        }
        Ok(gone)
    }

    fn path_length(&self, id: VertexId) -> usize {
        let path = self.graph.vertex(id).path(self.dominant);
        path.map_or(usize::MAX, |path| self.graph.path_length(path))
    }

    fn release_listed(
        &mut self,
        job: JobId,
        document: &GraphDocument,
    ) -> Result<BTreeMap<i32, Released>, Failure> {
        let mut released: BTreeMap<i32, Released> = BTreeMap::new();
        let mut ids = BTreeSet::new();
        for record in &document.nodes {
            let id = self.find_record(record)?;
            if !ids.insert(id) {
                return fail(format!("find_vtx: found duplicate JGF node id for {}.\n", record.key));
            }
            let freed = self.release_held(id, job)?;
            let vertex = self.graph.vertex(id);
            let part = released.entry(vertex.rank).or_default();
            *part.freed.entry(vertex.type_id).or_default() += freed;
            part.consider(id, self.path_length(id));
        }
        Ok(released)
    }

    /// Lets go of a vertex that a job holds; answers how much that was.
    fn release_held(&mut self, id: VertexId, job: JobId) -> Result<u64, Failure> {
        let entry = self.allocations.get(id).and_then(|account| account.entry(job).copied());
        let present = entry.is_some_and(|entry| entry.presence().is_some());
        if present && entry.is_some_and(|entry| matches!(entry.plan, Some((AllocationKind::Allocation, _)))) {
            let freed = self.allocations.get_mut(id).and_then(|account| account.release(job));
            return Ok(freed.map_or(0, |(_, amount)| amount));
        }
        if entry.is_some() && self.quirks.half_updates {
            self.forget_way(id, job);
        }
        let name = self.graph.text(self.graph.vertex(id).name);
        let what = if present { "allocation of" } else { "x_checker span for" };
        fail(format!("cancel_vtx: can't find {what} job {job} in {name}.\n"))
    }

    /// Forgets that the tree of a job goes through a vertex, but not what it holds of it.
    fn forget_way(&mut self, id: VertexId, job: JobId) {
        let Some(account) = self.allocations.get_mut(id) else { return };
        let span = account.entry_mut(job).aggregate.take();
        account.release_aggregate(span);
        let entry = account.entry_mut(job);
        if entry.presence().is_some() {
            entry.set_presence(0, 0);
            entry.tag = false;
        }
        account.tidy(job);
    }

    fn release_ranks(
        &mut self,
        job: JobId,
        document: &RankDocument,
    ) -> Result<BTreeMap<i32, Released>, Failure> {
        let mut released: BTreeMap<i32, Released> = BTreeMap::new();
        let ranks: BTreeSet<i32> = document.ranks.iter().map(|record| record.rank).collect();
        for rank in ranks {
            let vertices = self.graph.of_rank(rank).to_vec();
            if vertices.is_empty() {
                return fail(format!("partial_cancel: rank {rank} is not in the graph.\n"));
            }
            let mut part = Released::default();
            let mut any = false;
            for id in vertices {
                part.consider(id, self.path_length(id));
                if !self.allocations.is_tagged(id, job) {
                    continue;
                }
                let freed = self.allocations.get_mut(id).and_then(|account| account.release(job));
                if let Some((_, amount)) = freed {
                    any = true;
                    *part.freed.entry(self.graph.vertex(id).type_id).or_default() += amount;
                }
            }
            if !any {
                return fail(format!("partial_cancel: rank {rank} not found in counts.\n"));
            }
            released.insert(rank, part);
        }
        Ok(released)
    }

    /// Tells the sums of everything above a vertex that a job let go of something there. A job that has
    /// nothing left below a vertex is not known there any more.
    pub(super) fn give_back(&mut self, job: JobId, below: VertexId, freed: &Freed) -> Result<(), Failure> {
        let mut at = below;
        let mut seen = BTreeSet::from([below]);
        loop {
            let above = self.graph.parents(at, self.dominant).next();
            let Some((_, above)) = above else { break };
            if !seen.insert(above) {
                break;
            }
            at = above;
            self.give_back_at(job, above, freed)?;
        }
        Ok(())
    }

    fn give_back_at(&mut self, job: JobId, id: VertexId, freed: &Freed) -> Result<(), Failure> {
        let quirk = self.quirks.early_unmark;
        let Some(account) = self.allocations.get_mut(id) else { return Ok(()) };
        let Some(entry) = account.entry(job).copied().filter(|entry| entry.tag) else { return Ok(()) };
        if let Some(span) = entry.aggregate
            && let Some(aggregates) = account.aggregates.as_deref_mut()
        {
            let amount = |of| freed.get(&of).copied().unwrap_or(0);
            let reduced = aggregates
                .reduce(span, amount)
                .map_err(|errno| Failure::new(errno, format!("can't reduce the sums of job {job}.\n")))?;
            let entry = account.entry_mut(job);
            if reduced == Reduced::Removed {
                entry.aggregate = None;
                if quirk {
                    entry.tag = false;
                }
            }
            if quirk {
                entry.set_presence(0, 0);
            }
            account.tidy(job);
        }
        if !quirk {
            let below = self
                .graph
                .children(id, self.dominant)
                .any(|(_, child)| self.allocations.is_tagged(child, job));
            if !below
                && entry.plan.is_none()
                && let Some(account) = self.allocations.get_mut(id)
            {
                account.release(job);
            }
        }
        Ok(())
    }
}
