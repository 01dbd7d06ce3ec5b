//! The traversal of marked edges that allocates the selected resources and reports them to the sink.

use smallvec::SmallVec;

use super::allocations::Allocations;
use super::engine::Engine;
use super::filter::{Filters, MAX_DEPTH};
use super::job::{AllocationKind, JobId};
use super::operation::Failure;
use super::policy::Policy;
use super::scratch::Scratch;
use super::sink::{Sink, VertexEvent};
use crate::errno::Errno;
use crate::graph::{EdgeId, Graph, Subsystem, TypeId, VertexId};
use crate::quirks::Quirks;

/// What is booked, for whom and when.
#[derive(Clone, Debug)]
pub(super) struct Booking {
    pub job: JobId,
    pub start: i64,
    pub duration: i64,
    /// None to only show what would be booked.
    pub hold: Option<AllocationKind>,
    /// Whether vertices have their spans already, from a document.
    pub spans_exist: bool,
    /// Whether parts of vertices are taken: what is held of one is what is needed, not its size.
    pub divisible: bool,
    /// Types of which everything is taken whole.
    pub exclusive_types: Vec<TypeId>,
}

/// Amounts per type, few enough to be searched one by one.
type Sums = SmallVec<[(TypeId, u64); 4]>;

fn add(sums: &mut Sums, of: TypeId, amount: u64) {
    match sums.iter_mut().find(|(known, _)| *known == of) {
        Some((_, sum)) => *sum = sum.saturating_add(amount),
        None => sums.push((of, amount)),
    }
}

/// How a vertex is entered.
#[derive(Clone, Copy)]
struct Entered {
    needs: u64,
    exclusive: bool,
    /// Something above is taken with everything below it.
    whole: bool,
    parent_exclusive: bool,
    depth: u32,
}

/// One walk that books.
struct Walk<'a> {
    graph: &'a Graph,
    allocations: &'a mut Allocations,
    scratch: &'a mut Scratch,
    filters: &'a Filters,
    policy: Policy,
    quirks: Quirks,
    dominant: Subsystem,
    booking: &'a Booking,
    sink: &'a mut dyn Sink,
}

impl Engine {
    /// Allocates and reports the vertices marked in the current round. Errors: `Einval` if the root is not
    /// marked; if nothing marked is exclusive, the error number left by an earlier step.
    pub(super) fn book(&mut self, booking: &Booking, sink: &mut dyn Sink) -> Result<(), Failure> {
        let Some(root) = self.root().filter(|_| self.scratch.root_is_marked()) else {
            return Err(Failure::new(Errno::Einval, "the root of the graph is not part of the match"));
        };
        self.scratch.start_walk(&self.graph);
        let mark = self.scratch.root_mark;
        let entered = Entered {
            needs: mark.needs,
            exclusive: mark.exclusive,
            whole: false,
            parent_exclusive: false,
            depth: 1,
        };
        let mut walk = Walk {
            graph: &self.graph,
            allocations: &mut self.allocations,
            scratch: &mut self.scratch,
            filters: &self.filters,
            policy: self.policy,
            quirks: self.quirks,
            dominant: self.dominant,
            booking,
            sink,
        };
        if walk.visit(root, entered, &mut Sums::new()) == 0 {
            let errno = if self.quirks.stale_errno { self.scratch.errno } else { Errno::Einval };
            return Err(Failure::new(errno, "nothing in the match is exclusive: request a slot"));
        }
        sink.times(booking.start, booking.start.saturating_add(booking.duration));
        Ok(())
    }
}

impl Walk<'_> {
    /// Allocates a vertex and the marked vertices below it; adds the amounts of aggregated types to `above`.
    /// Returns the number of vertices that were allocated, or may have been before a failure.
    fn visit(&mut self, id: VertexId, entered: Entered, above: &mut Sums) -> u64 {
        let vertex = self.graph.vertex(id);
        let whole = entered.whole || self.booking.exclusive_types.contains(&vertex.type_id);
        let exclusive = entered.exclusive || whole;
        self.scratch.see(id);
        if entered.depth as usize > MAX_DEPTH {
            return 0;
        }
        let mut sums = Sums::new();
        let below = Entered { exclusive, whole, ..entered };
        let mut count =
            if vertex.out_edges.is_empty() { 0 } else { self.visit_children(id, below, &mut sums) };
        count += u64::from(exclusive);
        if count == 0 {
            return 0;
        }
        if self.booking.hold.is_some() {
            if !self.write(id, entered.needs, exclusive, &sums) {
                return count;
            }
            let own = match exclusive {
                true if self.booking.divisible => entered.needs,
                true => vertex.size,
                false => vertex.size.saturating_sub(entered.needs),
            };
            self.pass_up(vertex.type_id, own, &sums, above);
        }
        let event = VertexEvent {
            depth: entered.depth,
            vertex: id,
            needs: entered.needs,
            exclusive,
            parent_exclusive: entered.parent_exclusive,
            label: self.scratch.label(id, self.quirks.stale_labels),
            aggregates: None,
        };
        self.sink.vertex(self.graph, &event);
        count
    }

    /// Allocates the marked vertices below a vertex, as specified by `parent`.
    fn visit_children(&mut self, id: VertexId, parent: Entered, sums: &mut Sums) -> u64 {
        let graph = self.graph;
        let many = self.scratch.marked_among_many(graph, id);
        let marked = if parent.whole { None } else { many.as_deref() };
        let mut count = 0;
        for &edge_id in marked.unwrap_or(&graph.vertex(id).out_edges) {
            let edge = graph.edge(edge_id);
            if edge.subsystem != self.dominant || self.scratch.is_seen(edge.target) {
                continue;
            }
            let (needs, exclusive) = if parent.whole {
                (graph.vertex(edge.target).size, true)
            } else {
                let Some(mark) = self.scratch.mark_of(edge_id) else { continue };
                (mark.needs, mark.exclusive)
            };
            let child = Entered {
                needs,
                exclusive,
                whole: parent.whole,
                parent_exclusive: parent.exclusive,
                depth: parent.depth + 1,
            };
            let below = self.visit(edge.target, child, sums);
            if below == 0 {
                continue;
            }
            if self.policy.stop_on_first {
                self.refresh_weight(edge_id, edge.target);
            }
            self.sink.edge(graph, edge_id, parent.exclusive);
            count += below;
            if many.is_some() && self.booking.hold.is_some() {
                self.allocations.note_child(self.booking.job, id, edge.target);
            }
        }
        count
    }

    fn pass_up(&self, type_id: TypeId, own: u64, sums: &Sums, above: &mut Sums) {
        if self.filters.is_tracked(type_id) {
            add(above, type_id, own);
        }
        for &(of, amount) in sums {
            if self.filters.is_tracked(of) {
                add(above, of, amount);
            }
        }
    }

    /// Writes one vertex into the allocations. Answers whether its spans could be added; what could stays.
    fn write(&mut self, id: VertexId, needs: u64, exclusive: bool, sums: &Sums) -> bool {
        let &Booking { job, start, duration, hold, spans_exist, .. } = self.booking;
        let account = self.allocations.open(self.graph, id);
        let mut plan = None;
        if let Some(hold) = hold.filter(|_| exclusive && !spans_exist) {
            match account.plan.add(start, duration, needs) {
                Ok(span) => plan = Some((hold, span)),
                Err(errno) => {
                    self.scratch.errno = errno;
                    return false;
                }
            }
        }
        let (mut aggregate, mut fits) = (None, true);
        if let Some(aggregates) = account.aggregates.as_mut().filter(|_| !sums.is_empty()) {
            let amount = |of| sums.iter().find(|(known, _)| *known == of).map_or(0, |(_, sum)| *sum);
            match aggregates.add(start, duration, amount) {
                Ok(span) => aggregate = Some(span),
                Err(errno) => {
                    self.scratch.errno = errno;
                    fits = false;
                }
            }
        }
        let again = self.quirks.leaked_bookings;
        let entry = account.entry_mut(job);
        let before = entry.presence().filter(|_| again);
        entry.tag = true;
        entry.set_presence(start, start.saturating_add(duration));
        let second = plan.filter(|_| again && entry.plan.is_some());
        entry.plan = if second.is_some() { entry.plan } else { plan.or(entry.plan) };
        entry.aggregate = aggregate.or(entry.aggregate);
        if let Some(second) = second {
            account.hold_too(job, second);
        }
        if let Some(before) = before {
            account.leave_behind(before);
        }
        fits
    }

    /// After something was booked below a child: how it ranks among its siblings from now on.
    fn refresh_weight(&mut self, edge: EdgeId, child: VertexId) {
        let Some(aggregates) = self.allocations.aggregates(child) else { return };
        let left = aggregates.last().map_or(0, |planner| planner.remaining_at(0));
        if left == 0 && aggregates.span_count() == 0 {
            return;
        }
        self.scratch.set_weight(self.graph, edge, left);
    }
}
