//! Books the allocations and reservations contained in a graph.

use std::cmp::Reverse;

use fluxion::graph::{EdgeId, Graph, VertexId};
use fluxion::matcher::extension::Pieces;
use fluxion::matcher::sink::{Sink, VertexEvent};
use fluxion::matcher::{Engine, Failure, JobId, LIFETIME};

use super::matcher::GangMatcher;
use crate::inventory::share::{Share, shares_of};

/// Ignores all matches.
struct Nobody;

impl Sink for Nobody {
    fn vertex(&mut self, _: &Graph, _: &VertexEvent<'_>) {}

    fn edge(&mut self, _: &Graph, _: EdgeId, _: bool) {}

    fn times(&mut self, _: i64, _: i64) {}

    fn queue(&mut self, _: &str) {}
}

/// The parts of a graph's nodes that are not free, and until when.
#[derive(Debug, Default)]
pub struct Shares(Vec<(VertexId, Share)>);

impl Shares {
    /// Removes the properties that describe shares from a graph.
    pub fn take(graph: &mut Graph) -> Self {
        let nodes = graph.find_type("node").map_or_else(Vec::new, |of| graph.of_type(of).to_vec());
        let mut shares = Vec::new();
        for id in nodes {
            for (key, share) in shares_of(graph, id) {
                graph.remove_property(id, &key);
                shares.push((id, share));
            }
        }
        // Latest end first: for allocations in excess, the earliest end frees nothing.
        shares.sort_by_key(|(id, share)| {
            (*id, share.from > 0, !share.permanent, Reverse(share.until.unwrap_or(i64::MAX)))
        });
        Self(shares)
    }
}

/// Plugs the gang matcher into an unused engine, and books the shares from its graph for jobs numbered downwards from
/// the largest number. Allocations in excess of the capacity leave nothing free, and are not booked.
/// is not booked.
///
/// Errors: those of booking, which do not occur in an unused engine.
pub fn plug_in(engine: &mut Engine, shares: Shares) -> Result<(), Failure> {
    engine.plug_in(GangMatcher::default());
    let mut job = JobId::MAX;
    for (id, share) in shares.0 {
        let until = share.until.unwrap_or(LIFETIME).min(LIFETIME);
        if share.from < 0 || share.from >= until {
            continue;
        }
        let duration = until - share.from;
        let pieces = pieces_of(engine, id, &share, duration);
        if pieces.is_empty() {
            continue;
        }
        let from = share.from;
        // Before booking: the index reads both together.
        if let Some((gangs, _)) = engine.extension::<GangMatcher>() {
            gangs.note(id, job, share);
        }
        engine.book_pieces(job, from, duration, &pieces, &mut Nobody)?;
        job -= 1;
    }
    Ok(())
}

fn pieces_of(engine: &mut Engine, id: VertexId, share: &Share, duration: i64) -> Pieces {
    let mut needs = share.needs.clone();
    let mut pieces = Pieces::new();
    let Some((gangs, view)) = engine.extension::<GangMatcher>() else { return pieces };
    let node = gangs.nodes().and_then(|nodes| nodes.by_vertex(id));
    for pool in node.into_iter().flat_map(|node| &node.pools) {
        let wanted = needs.get(&pool.type_name);
        let free = view.allocations.min_free(view.graph, pool.vertex, share.from, duration).unwrap_or(0);
        let taken = wanted.min(free);
        if taken > 0 {
            pieces.insert(pool.vertex, taken);
            needs.set(pool.type_name.clone(), wanted - taken);
        }
    }
    pieces
}
