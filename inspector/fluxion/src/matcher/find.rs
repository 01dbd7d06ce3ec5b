//! Searching the graph: which vertices an expression holds for, with the way to them.

use super::engine::Engine;
use super::filter::MAX_DEPTH;
use super::job::AllocationKind;
use super::sink::{AggregateUse, Sink, VertexEvent};
use crate::graph::{Status, VertexId};
use crate::search::{Criterion, Expression};

/// What is inherited from the vertices above.
#[derive(Clone, Copy, Default)]
struct Above {
    down: bool,
    allocated: bool,
    reserved: bool,
}

/// What a search shows of the sums.
#[derive(Clone, Copy)]
struct Shown {
    aggregates: bool,
    /// Only what is planned for this job.
    job: Option<u64>,
    now: i64,
}

impl Engine {
    /// Reports to the sink all vertices that match the expression or have a matching descendant.
    /// `now` is the time in seconds for which aggregates are shown.
    pub fn find(&mut self, expression: &Expression, now: i64, sink: &mut dyn Sink) {
        let mut shown = Shown { aggregates: false, job: None, now };
        for criterion in expression.criteria() {
            match criterion {
                Criterion::ShowAggregates(on) => shown.aggregates = *on,
                Criterion::AllocatedTo(job)
                | Criterion::ReservedFor(job)
                | Criterion::InAggregatesOf(job)
                | Criterion::TouchedBy(job) => shown.job = Some(*job),
                _ => {}
            }
        }
        let Some(root) = self.root() else { return };
        self.scratch.start_walk(&self.graph);
        self.find_below(root, expression, Above::default(), shown, 1, sink);
        sink.times(0, 0);
    }

    fn find_below(
        &mut self,
        id: VertexId,
        expression: &Expression,
        above: Above,
        shown: Shown,
        depth: u32,
        sink: &mut dyn Sink,
    ) -> bool {
        self.scratch.see(id);
        if depth as usize > MAX_DEPTH {
            return false;
        }
        let account = self.allocations.get(id);
        let here = Above {
            down: above.down || self.graph.vertex(id).status == Status::Down,
            allocated: above.allocated || account.is_some_and(super::allocations::Account::is_allocated),
            reserved: above.reserved || account.is_some_and(super::allocations::Account::is_reserved),
        };
        let mut found = expression.holds(&mut |criterion| self.holds(id, criterion, here));
        for at in 0..self.graph.vertex(id).out_edges.len() {
            let edge_id = self.graph.vertex(id).out_edges[at];
            let edge = self.graph.edge(edge_id);
            if edge.subsystem != self.dominant || self.scratch.is_seen(edge.target) {
                continue;
            }
            if self.find_below(edge.target, expression, here, shown, depth + 1, sink) {
                found = true;
                if !shown.aggregates || self.uses(edge.target, shown).is_some() {
                    // All is shown: the shorthand forms leave out nothing of a search.
                    sink.edge(&self.graph, edge_id, false);
                }
            }
        }
        if found {
            self.show(id, shown, depth, sink);
        }
        found
    }

    fn show(&mut self, id: VertexId, shown: Shown, depth: u32, sink: &mut dyn Sink) {
        let uses = if shown.aggregates {
            let Some(uses) = self.uses(id, shown) else { return };
            Some(uses)
        } else {
            None
        };
        let event = VertexEvent {
            depth,
            vertex: id,
            needs: self.graph.vertex(id).size,
            exclusive: true,
            parent_exclusive: false,
            label: self.scratch.label(id, false),
            aggregates: uses.as_deref(),
        };
        sink.vertex(&self.graph, &event);
        self.scratch.clear_label(id);
    }

    /// What of the sums of a vertex is used; none when it has no sums, or the job none in them.
    fn uses(&self, id: VertexId, shown: Shown) -> Option<Vec<AggregateUse>> {
        let account = self.allocations.get(id)?;
        let aggregates = account.aggregates.as_deref()?;
        let span = match shown.job {
            Some(job) => Some(account.entry(job)?.aggregate?),
            None => None,
        };
        let uses = aggregates.planners().map(|(type_id, planner)| {
            let total = planner.total();
            let used = match span {
                Some(span) => aggregates.amount(span, type_id),
                None => match total.saturating_sub(planner.remaining_at(shown.now)) {
                    0 => total.saturating_sub(planner.remaining_at(0)),
                    used => used,
                },
            };
            AggregateUse { type_id, used, total }
        });
        Some(uses.collect())
    }

    fn holds(&self, id: VertexId, criterion: &Criterion, here: Above) -> bool {
        let entry = |job: u64| self.allocations.get(id).and_then(|account| account.entry(job));
        let plan = |job: u64, hold: AllocationKind| {
            entry(job).is_some_and(|entry| entry.plan.is_some_and(|plan| plan.0 == hold))
        };
        match criterion {
            Criterion::Down(down) => here.down == *down,
            Criterion::Allocated(allocated) => here.allocated == *allocated,
            Criterion::Reserved(reserved) => here.reserved == *reserved,
            Criterion::AllocatedTo(job) => plan(*job, AllocationKind::Allocation),
            Criterion::ReservedFor(job) => plan(*job, AllocationKind::Reservation),
            Criterion::InAggregatesOf(job) => entry(*job).is_some_and(|entry| entry.aggregate.is_some()),
            Criterion::TouchedBy(job) => entry(*job).is_some_and(|entry| entry.tag),
            Criterion::ShowAggregates(on) => *on,
            Criterion::Names(names) => names.contains(self.graph.text(self.graph.vertex(id).name)),
            Criterion::Property(key) => {
                self.graph.find_text(key).is_some_and(|key| self.graph.has_property(id, key))
            }
        }
    }
}
