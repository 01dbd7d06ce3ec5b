//! The walk over marked edges that books what was chosen and tells it to whoever writes it down.

use super::books::{Hold, JobId};
use super::engine::{Engine, Failure};
use super::filter::MAX_DEPTH;
use super::sink::{Sink, VertexEvent};
use crate::errno::Errno;
use crate::graph::{TypeId, VertexId};

/// What is booked, for whom and when.
#[derive(Clone, Debug)]
pub(super) struct Booking {
    pub job: JobId,
    pub start: i64,
    pub duration: i64,
    /// None to only show what would be booked.
    pub hold: Option<Hold>,
    /// Whether vertices have their spans already, from a document.
    pub spans_exist: bool,
    /// Whether parts of vertices are taken: what is held of one is what is needed, not its size.
    pub carved: bool,
    /// Types of which everything is taken whole.
    pub exclusive_types: Vec<TypeId>,
}

/// Amounts per type, few enough to be searched one by one.
type Sums = Vec<(TypeId, u64)>;

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

impl Engine {
    /// Books and reports what is marked in the current round. Errors: `Einval` when the root is not
    /// marked, otherwise whatever number an earlier step left when nothing marked is exclusive.
    pub(super) fn book(&mut self, booking: &Booking, sink: &mut dyn Sink) -> Result<(), Failure> {
        let Some(root) = self.root().filter(|_| self.scratch.root_is_marked()) else {
            return Err(Failure::new(Errno::Einval, "the root of the graph is not part of the answer"));
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
        let mut sums = Sums::new();
        if self.book_vertex(root, entered, booking, &mut sums, sink) == 0 {
            let errno = if self.quirks.stale_errno { self.scratch.errno } else { Errno::Einval };
            return Err(Failure::new(errno, "nothing in the answer is exclusive: ask for a slot"));
        }
        sink.times(booking.start, booking.start.saturating_add(booking.duration));
        Ok(())
    }

    fn book_vertex(
        &mut self,
        id: VertexId,
        entered: Entered,
        booking: &Booking,
        above: &mut Sums,
        sink: &mut dyn Sink,
    ) -> u64 {
        let type_id = self.graph.vertex(id).type_id;
        let size = self.graph.vertex(id).size;
        let whole = entered.whole || booking.exclusive_types.contains(&type_id);
        let exclusive = entered.exclusive || whole;
        self.scratch.see(id);
        let mut sums = Sums::new();
        let mut count = 0;
        if entered.depth as usize > MAX_DEPTH {
            return 0;
        }
        let many = self.scratch.marked_among_many(&self.graph, id);
        let marked = if whole { None } else { many.as_deref() };
        let edges = marked.map_or(self.graph.vertex(id).out_edges.len(), <[_]>::len);
        for at in 0..edges {
            let edge_id = marked.map_or_else(|| self.graph.vertex(id).out_edges[at], |marked| marked[at]);
            let edge = self.graph.edge(edge_id);
            if edge.subsystem != self.dominant || self.scratch.is_seen(edge.target) {
                continue;
            }
            let mark = self.scratch.mark_of(edge_id);
            let (needs, marked_exclusive) = match mark {
                _ if whole => (self.graph.vertex(edge.target).size, true),
                Some(mark) => (mark.needs, mark.exclusive),
                None => continue,
            };
            let child = Entered {
                needs,
                exclusive: marked_exclusive,
                whole,
                parent_exclusive: exclusive,
                depth: entered.depth + 1,
            };
            let below = self.book_vertex(edge.target, child, booking, &mut sums, sink);
            if below > 0 {
                if self.policy.stop_on_first {
                    self.refresh_weight(edge_id, edge.target);
                }
                sink.edge(&self.graph, edge_id, exclusive);
                count += below;
                if many.is_some() && booking.hold.is_some() {
                    self.books.note_child(booking.job, id, edge.target);
                }
            }
        }
        match booking.hold {
            Some(hold) => {
                if exclusive {
                    count += 1;
                }
                if count > 0 && !self.write(id, entered.needs, exclusive, hold, booking, &sums) {
                    return count;
                }
                if count > 0 {
                    let own = match exclusive {
                        true if booking.carved => entered.needs,
                        true => size,
                        false => size.saturating_sub(entered.needs),
                    };
                    self.pass_up(type_id, own, sums, above);
                }
            }
            None => count += u64::from(exclusive),
        }
        if count > 0 {
            let event = VertexEvent {
                depth: entered.depth,
                vertex: id,
                needs: entered.needs,
                exclusive,
                parent_exclusive: entered.parent_exclusive,
                label: self.scratch.label(id, self.quirks.stale_labels),
                aggregates: None,
            };
            sink.vertex(&self.graph, &event);
        }
        count
    }

    fn pass_up(&self, type_id: TypeId, own: u64, sums: Sums, above: &mut Sums) {
        if self.filters.is_tracked(type_id) {
            add(above, type_id, own);
        }
        for (of, amount) in sums {
            if self.filters.is_tracked(of) {
                add(above, of, amount);
            }
        }
    }

    /// Writes one vertex into the books. Answers whether its spans could be added.
    fn write(
        &mut self,
        id: VertexId,
        needs: u64,
        exclusive: bool,
        hold: Hold,
        booking: &Booking,
        sums: &Sums,
    ) -> bool {
        let (start, duration) = (booking.start, booking.duration);
        let end = start.saturating_add(duration);
        let account = self.books.open(&self.graph, id);
        let mut plan = None;
        if exclusive && !booking.spans_exist {
            match account.plan.add(start, duration, needs) {
                Ok(span) => plan = Some((hold, span)),
                Err(errno) => {
                    self.scratch.errno = errno;
                    return false;
                }
            }
        }
        let mut aggregate = None;
        if let Some(aggregates) = account.aggregates.as_mut().filter(|_| !sums.is_empty()) {
            let amount = |of| sums.iter().find(|(known, _)| *known == of).map_or(0, |(_, sum)| *sum);
            match aggregates.add(start, duration, amount) {
                Ok(span) => aggregate = Some(span),
                Err(errno) => {
                    self.scratch.errno = errno;
                    return false;
                }
            }
        }
        let entry = account.entry_mut(booking.job);
        entry.tag = true;
        entry.presence = Some((start, end));
        entry.plan = plan.or(entry.plan);
        entry.aggregate = aggregate.or(entry.aggregate);
        true
    }

    /// After something was booked below a child: how it ranks among its siblings from now on.
    fn refresh_weight(&mut self, edge: crate::graph::EdgeId, child: VertexId) {
        let Some(aggregates) = self.books.aggregates(child) else { return };
        let left = aggregates.last().map_or(0, |planner| planner.remaining_at(0));
        if left == 0 && aggregates.span_count() == 0 {
            return;
        }
        self.scratch.set_weight(&self.graph, edge, left);
    }
}
