//! Booking what a graph says of its own nodes: which parts were held and promised when it was written down.

use super::book::Booking;
use super::books::{Hold, JobId};
use super::carve::Pieces;
use super::engine::{Engine, Failure, LIFETIME};
use super::nodes::Nodes;
use super::sink::{Sink, VertexEvent};
use crate::graph::{EdgeId, Graph, VertexId};
use crate::inventory::share::{Share, shares_of};

/// Takes nothing down.
struct Nobody;

impl Sink for Nobody {
    fn vertex(&mut self, _: &Graph, _: &VertexEvent<'_>) {}

    fn edge(&mut self, _: &Graph, _: EdgeId, _: bool) {}

    fn times(&mut self, _: i64, _: i64) {}

    fn queue(&mut self, _: &str) {}
}

impl Engine {
    /// Books the shares that properties of the nodes tell of, in place of these properties, for jobs that are numbered
    /// from the largest number down. What is held beyond what there is leaves nothing free, and is not booked.
    ///
    /// Errors: those of booking, which books that were empty do not run into.
    pub fn book_shares(&mut self) -> Result<(), Failure> {
        self.read_nodes();
        let nodes = self.nodes.iter().flat_map(Nodes::vertices);
        let told: Vec<(VertexId, String, Share)> = nodes
            .flat_map(|id| shares_of(&self.graph, id).into_iter().map(move |(key, share)| (id, key, share)))
            .collect();
        if told.is_empty() {
            return Ok(());
        }
        for (id, key, _) in &told {
            self.graph.remove_property(*id, key);
        }
        let mut told: Vec<(VertexId, Share)> = told.into_iter().map(|(id, _, share)| (id, share)).collect();
        // Those that stay longest come first: of what is held in excess, what leaves first frees nothing.
        told.sort_by_key(|(id, share)| {
            let until = share.until.unwrap_or(i64::MAX);
            (*id, share.from > 0, !share.permanent, std::cmp::Reverse(until))
        });
        let mut job = JobId::MAX;
        for (id, share) in told {
            let until = share.until.unwrap_or(LIFETIME).min(LIFETIME);
            if share.from < 0 || share.from >= until {
                continue;
            }
            let pieces = self.pieces_of(id, &share, until - share.from);
            if pieces.is_empty() {
                continue;
            }
            self.mark_pieces(&pieces);
            let hold = if share.from == 0 { Hold::Allocation } else { Hold::Reservation };
            let booking = Booking {
                job,
                start: share.from,
                duration: until - share.from,
                hold: Some(hold),
                spans_exist: false,
                carved: true,
                exclusive_types: Vec::new(),
            };
            self.book(&booking, &mut Nobody)?;
            if !share.ports.is_empty() {
                self.beside.ports.insert((id, job), share.ports);
            }
            if share.permanent {
                self.beside.permanent.insert(job);
            }
            job -= 1;
        }
        Ok(())
    }

    fn pieces_of(&self, id: VertexId, share: &Share, duration: i64) -> Pieces {
        let mut needs = share.needs.clone();
        let mut pieces = Pieces::new();
        let node = self.nodes.as_ref().and_then(|nodes| nodes.by_vertex(id));
        for pool in node.into_iter().flat_map(|node| &node.pools) {
            let wanted = needs.get(&pool.type_name);
            let free = self.books.min_free(&self.graph, pool.vertex, share.from, duration).unwrap_or(0);
            let taken = wanted.min(free);
            if taken > 0 {
                pieces.insert(pool.vertex, taken);
                needs.set(pool.type_name.clone(), wanted - taken);
            }
        }
        pieces
    }
}
