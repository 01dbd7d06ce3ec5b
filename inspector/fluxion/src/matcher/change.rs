//! Changes to a graph with jobs: adding and removing vertices, and changing status and properties.

use std::collections::{BTreeMap, BTreeSet};

use super::engine::Engine;
use super::job::{AllocationKind, JobId};
use super::operation::Failure;
use super::partial::Freed;
use crate::errno::Errno;
use crate::graph::{Graph, Status, VertexId};

fn fail<T>(message: String) -> Result<T, Failure> {
    Err(Failure::new(Errno::Einval, message))
}

impl Engine {
    /// Lets a reader add to the graph, then recalculates the aggregates. Additions before an error are kept.
    pub fn attach<E: From<Failure>>(
        &mut self,
        read: impl FnOnce(&mut Graph) -> Result<(), E>,
    ) -> Result<(), E> {
        let outcome = read(&mut self.graph);
        self.scratch.forget_orders();
        let primed = self.prime().map_err(|error| Failure::new(Errno::Einval, error.to_string()));
        outcome?;
        primed.map_err(E::from)
    }

    /// Sets the status of all vertices at a path. Returns the number of vertices.
    pub fn set_status(&mut self, path: &str, status: Status) -> usize {
        self.forget_visits();
        let ids = self.graph.at_path_text(path).to_vec();
        for &id in &ids {
            self.memo.tell_apart(id);
            if !self.graph.set_status(id, status) {
                continue;
            }
            if self.graph.vertex(id).type_id == self.node_type {
                self.nodes_really_up += if status == Status::Up { 1 } else { -1 };
            }
            let nodes = self
                .subtree(id)
                .into_iter()
                .filter(|&below| self.graph.vertex(below).type_id == self.node_type);
            let size: u64 = nodes.map(|node| self.graph.vertex(node).size).sum();
            let size = i64::try_from(size).unwrap_or(i64::MAX);
            let change = if status == Status::Up { size } else { -size };
            self.nodes_up = self.nodes_up.saturating_add(change);
        }
        ids.len()
    }

    /// Sets a property of all vertices at a path. Returns the number of vertices.
    pub fn set_property(&mut self, path: &str, key: &str, value: &str) -> usize {
        self.forget_visits();
        let ids = self.graph.at_path_text(path).to_vec();
        for &id in &ids {
            self.memo.tell_apart(id);
            self.graph.set_property(id, key, value);
        }
        ids.len()
    }

    /// Removes a property of all vertices at a path. Returns the number of vertices.
    pub fn remove_property(&mut self, path: &str, key: &str) -> usize {
        self.forget_visits();
        let ids = self.graph.at_path_text(path).to_vec();
        for &id in &ids {
            self.memo.tell_apart(id);
            self.graph.remove_property(id, key);
        }
        ids.len()
    }

    /// Removes the vertex last registered at a path and its descendants. Returns the jobs that have no
    /// resources left.
    pub fn remove_path(&mut self, path: &str) -> Result<Vec<JobId>, Failure> {
        let Some(&top) = self.graph.at_path_text(path).last() else {
            return fail(format!("remove: {path} not found in the graph.\n"));
        };
        if self.graph.parents(top, self.dominant).next().is_none() {
            return fail(format!("remove: {path} is a root: it can't be removed.\n"));
        }
        let gone = self.subtree(top);
        let ended = if self.quirks.pooled_rank_removal { Vec::new() } else { self.end_jobs(&[top])? };
        self.cut_out(&gone)?;
        Ok(ended)
    }

    /// Removes all vertices of some ranks. Returns the jobs that have no resources left.
    pub fn remove_ranks(&mut self, ranks: &[i32]) -> Result<Vec<JobId>, Failure> {
        let missing = ranks.iter().position(|&rank| self.graph.of_rank(rank).is_empty());
        if let Some(at) = missing {
            if self.quirks.pooled_rank_removal {
                self.forget_ranks(&ranks[..at]);
            }
            return fail(format!("remove: {} not found in by_rank map.\n", ranks[at]));
        }
        let vertices: Vec<VertexId> =
            ranks.iter().flat_map(|&rank| self.graph.of_rank(rank)).copied().collect();
        if self.quirks.pooled_rank_removal {
            self.reset_ranks(ranks)?;
            self.cut_out(&vertices)?;
            return Ok(Vec::new());
        }
        let set: BTreeSet<VertexId> = vertices.iter().copied().collect();
        let inner =
            |id: VertexId| self.graph.parents(id, self.dominant).any(|(_, parent)| set.contains(&parent));
        let tops: Vec<VertexId> = vertices.into_iter().filter(|&id| !inner(id)).collect();
        let gone: Vec<VertexId> = tops.iter().flat_map(|&top| self.subtree(top)).collect();
        let ended = self.end_jobs(&tops)?;
        self.cut_out(&gone)?;
        Ok(ended)
    }

    fn cut_out(&mut self, gone: &[VertexId]) -> Result<(), Failure> {
        self.graph.isolate(gone);
        if self.quirks.pooled_rank_removal {
            for &id in gone {
                let paths: Vec<_> = self.graph.vertex(id).paths.iter().map(|&(_, path)| path).collect();
                for path in paths {
                    self.graph.drop_path(path);
                }
            }
        }
        self.scratch.forget_orders();
        self.prime().map_err(|error| Failure::new(Errno::Einval, error.to_string()))
    }

    /// Releases the resources of jobs at and below vertices, and updates the aggregates above. Returns the jobs
    /// that have no resources left.
    fn end_jobs(&mut self, tops: &[VertexId]) -> Result<Vec<JobId>, Failure> {
        let mut touched = BTreeSet::new();
        for &top in tops {
            let mut per_job: BTreeMap<JobId, Freed> = BTreeMap::new();
            for id in self.subtree(top) {
                let Some(account) = self.allocations.get_mut(id) else { continue };
                let jobs: Vec<JobId> = account.entries().iter().map(|entry| entry.job).collect();
                for job in jobs {
                    let freed = per_job.entry(job).or_default();
                    if let Some((_, amount)) = account.release(job) {
                        *freed.entry(self.graph.vertex(id).type_id).or_default() += amount;
                    }
                }
            }
            for (job, freed) in per_job {
                self.give_back(job, top, &freed)?;
                touched.insert(job);
            }
        }
        let root = self.root();
        let gone = |job: &JobId| root.is_none_or(|root| !self.allocations.is_tagged(root, *job));
        let ended: Vec<JobId> = touched.into_iter().filter(gone).collect();
        for &job in &ended {
            self.allocations.forget_children(job);
        }
        Ok(ended)
    }

    /// Forgets everything about the vertices of ranks, and credits every job that was there with what
    /// all of them held together.
    fn reset_ranks(&mut self, ranks: &[i32]) -> Result<(), Failure> {
        let (jobs, credits) = self.forget_ranks(ranks);
        for &job in &jobs {
            for (top, freed) in &credits {
                self.give_back(job, *top, freed)?;
            }
        }
        Ok(())
    }

    /// Forgets everything about the vertices of ranks. Answers which jobs were there, and what was allocated in
    /// each rank, with its topmost vertex.
    fn forget_ranks(&mut self, ranks: &[i32]) -> (BTreeSet<JobId>, Vec<(VertexId, Freed)>) {
        self.forget_visits();
        let mut jobs = BTreeSet::new();
        let mut credits: Vec<(VertexId, Freed)> = Vec::new();
        for &rank in ranks {
            let mut freed = Freed::new();
            let mut top: Option<(usize, VertexId)> = None;
            for id in self.graph.of_rank(rank).to_vec() {
                let vertex = self.graph.vertex(id);
                let length =
                    vertex.path(self.dominant).map_or(usize::MAX, |path| self.graph.path_length(path));
                if top.is_none_or(|(shortest, _)| length < shortest) {
                    top = Some((length, id));
                }
                let Some(account) = self.allocations.get(id) else { continue };
                for entry in account.entries() {
                    if entry.tag {
                        jobs.insert(entry.job);
                    }
                    if let Some((AllocationKind::Allocation, span)) = entry.plan {
                        let amount = account.plan.span(span).map_or(0, |span| span.amount);
                        *freed.entry(vertex.type_id).or_default() += amount;
                    }
                }
                self.allocations.close(id);
                // Should the removal fail, it has no sums any more, other than its like.
                self.memo.single_out(id);
            }
            credits.extend(top.map(|(_, id)| (id, freed)));
        }
        (jobs, credits)
    }
}
