//! Cancels jobs.

use super::engine::Engine;
use super::filter::MAX_DEPTH;
use super::job::{AllocationKind, JobId};
use super::operation::Failure;
use crate::errno::Errno;
use crate::graph::VertexId;

impl Engine {
    /// Releases all resources allocated or reserved for a job.
    ///
    /// Errors: `Einval` if the job has no entry at the root, which by Fluxion's rules is an error even
    /// though its resources are released; `Enoent` if it has no resources.
    pub fn cancel(&mut self, job: JobId) -> Result<(), Failure> {
        let outcome = self.let_go(job);
        self.allocations.forget_children(job);
        outcome
    }

    fn let_go(&mut self, job: JobId) -> Result<(), Failure> {
        self.scratch.preorder = 0;
        self.scratch.postorder = 0;
        if let Some(extension) = &mut self.extension {
            extension.cancelled(job);
        }
        let root = self.root().filter(|&root| self.allocations.is_tagged(root, job));
        if let Some(root) = root {
            self.scratch.start_walk(&self.graph);
            self.cancel_below(root, job, 0);
            return Ok(());
        }
        if self.quirks.rootless_cancel_fails {
            self.drop_plans(job);
            return Err(Failure::new(Errno::Einval, format!("job {job} has no allocation at the root")));
        }
        let mut any = false;
        for id in 0..self.graph.vertex_count() {
            if let Some(account) = self.allocations.get_mut(VertexId::from_index(id))
                && account.entry(job).is_some()
            {
                account.release(job);
                any = true;
            }
        }
        if any { Ok(()) } else { Err(Failure::new(Errno::Enoent, format!("job {job} has no allocation"))) }
    }

    fn cancel_below(&mut self, id: VertexId, job: JobId, depth: usize) {
        self.scratch.preorder += 1;
        self.scratch.see(id);
        if depth > MAX_DEPTH || !self.allocations.is_tagged(id, job) {
            return;
        }
        if let Some(account) = self.allocations.get_mut(id) {
            account.release(job);
        }
        if self.memo.is_enabled()
            && let Some(count) = self.scratch.wide(&self.graph, id).map(|wide| wide.count(self.dominant))
            && let Some(children) = self.allocations.take_children(job, id)
        {
            // Of many children only those are visited that know the job; all are counted.
            self.scratch.preorder += count;
            for child in children {
                if self.allocations.is_tagged(child, job) {
                    self.scratch.preorder -= 1;
                    self.cancel_below(child, job, depth + 1);
                }
            }
            self.scratch.postorder += 1;
            return;
        }
        for at in 0..self.graph.vertex(id).out_edges.len() {
            let edge = self.graph.edge(self.graph.vertex(id).out_edges[at]);
            if edge.subsystem == self.dominant && !self.scratch.is_seen(edge.target) {
                self.cancel_below(edge.target, job, depth + 1);
            }
        }
        self.scratch.postorder += 1;
    }

    /// Removes a job's spans from the plans of all vertices, and nothing else.
    pub(super) fn drop_plans(&mut self, job: JobId) {
        for at in 0..self.graph.vertex_count() {
            self.drop_plan(VertexId::from_index(at), job);
        }
    }

    /// Removes a job's span from the plan of a vertex; answers what it held.
    pub(super) fn drop_plan(&mut self, id: VertexId, job: JobId) -> Option<(AllocationKind, u64)> {
        let (hold, span) = self.allocations.get(id)?.entry(job)?.plan?;
        let account = self.allocations.get_mut(id)?;
        let span = account.plan.remove(span).ok();
        account.entry_mut(job).plan = None;
        account.tidy(job);
        span.map(|span| (hold, span.amount))
    }
}
