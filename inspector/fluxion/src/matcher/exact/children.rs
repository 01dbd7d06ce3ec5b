//! Which children of a vertex are visited, in which order, and when that is enough.

use super::collector::Collector;
use super::walk::Walk;
use crate::errno::Errno;
use crate::graph::{TypeId, VertexId};
use crate::matcher::request::EntryId;

/// How many complete shares of one type were found.
struct Tally {
    of: TypeId,
    per_share: u64,
    in_share: u64,
    shares: u64,
    seen_total: u64,
}

impl Walk<'_, '_, '_> {
    /// Visits the children of a vertex. Where the policy stops on first matches, that is when there
    /// are enough for `shares` shares. Answers whether any child can be used.
    #[allow(clippy::too_many_arguments, reason = "the state of a walk at one vertex, passed down as it is")]
    pub(super) fn explore(
        &mut self,
        id: VertexId,
        list: &[EntryId],
        pristine: bool,
        exclusive: bool,
        found: &mut Collector,
        shares: u64,
        depth: usize,
    ) -> bool {
        let graph = self.ask.graph;
        let mut any = false;
        if graph.vertex(id).out_edges.is_empty() {
            return false;
        }
        if self.ask.policy.stop_on_first {
            return self.explore_until_enough(id, list, pristine, exclusive, found, shares, depth);
        }
        for (edge, child) in graph.children(id, self.ask.dominant) {
            if self.scratch.is_seen(child) {
                continue;
            }
            self.scratch.set_way(child, edge);
            if let Some(visited) = self.visit(child, list, pristine, exclusive, found, depth + 1) {
                self.add_child(edge, &visited, found);
                any = true;
            }
        }
        any
    }

    #[allow(clippy::too_many_arguments, reason = "the state of a walk at one vertex, passed down as it is")]
    fn explore_until_enough(
        &mut self,
        id: VertexId,
        list: &[EntryId],
        pristine: bool,
        exclusive: bool,
        found: &mut Collector,
        shares: u64,
        depth: usize,
    ) -> bool {
        let graph = self.ask.graph;
        let mut tallies: Vec<Tally> = Vec::with_capacity(list.len());
        for entry in self.ask.request.list(list) {
            let tally = Tally {
                of: entry.type_id,
                per_share: entry.count.largest(),
                in_share: 0,
                shares: 0,
                seen_total: found.total(entry.type_id),
            };
            tallies.push(tally);
        }
        let order = self.scratch.take_order(graph, id);
        let mut any = false;
        for edge in order.iter() {
            let target = graph.edge(edge);
            if target.subsystem != self.ask.dominant {
                continue;
            }
            let of = || graph.vertex(target.target).type_id;
            if tallies.iter().any(|tally| tally.shares >= shares && tally.of == of()) {
                continue;
            }
            // What `visit` does, before anything is read of the child. Where this is known, no two ways lead
            // to it.
            if self.is_ruled_out(target.target, list) {
                self.scratch.preorder += 1;
                self.scratch.errno = Errno::Ebusy;
                continue;
            }
            if self.scratch.is_seen(target.target) {
                continue;
            }
            self.scratch.set_way(target.target, edge);
            let visited = self.visit(target.target, list, pristine, exclusive, found, depth + 1);
            let Some(visited) = visited else { continue };
            self.add_child(edge, &visited, found);
            any = true;
            for tally in &mut tallies {
                let total = found.total(tally.of);
                tally.in_share += total - tally.seen_total;
                if total > tally.seen_total && tally.in_share >= tally.per_share {
                    tally.shares += 1;
                    tally.in_share = 0;
                }
                tally.seen_total = total;
            }
            if tallies.iter().all(|tally| tally.shares >= shares) {
                break;
            }
        }
        self.scratch.put_order(id, order);
        any
    }
}
