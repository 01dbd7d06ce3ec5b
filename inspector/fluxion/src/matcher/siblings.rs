//! The children of one vertex: in which order they are tried, and what there is among many of them, so
//! that a vertex with 100,000 children costs no more per match than one with few.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{EdgeId, Graph, Subsystem, TypeId, VertexId};

/// How a child ranks among its siblings where the search stops on first matches; larger comes first.
pub(super) type Weight = u64;

/// The weight of an edge that was never used.
const UNTOUCHED: Weight = u64::MAX;

/// With more children than these a vertex is treated as one with many. Few in tests, so that small graphs
/// have such vertices too.
pub(super) const WIDE: usize = if cfg!(test) { 4 } else { 128 };

/// By weight, then by unique id, both descending.
type Rank = (Reverse<Weight>, Reverse<i64>, EdgeId);

/// The edges of a vertex in the order in which they are tried.
#[derive(Clone, Debug, Default)]
pub(super) struct Siblings {
    /// All of them when they are few.
    few: Vec<EdgeId>,
    /// All of them when they are many.
    many: BTreeSet<Rank>,
}

/// The weights of edges, each behind the vertex at which it starts.
pub(super) type Weights = BTreeMap<(VertexId, EdgeId), Weight>;

fn rank(graph: &Graph, edge: EdgeId, weights: &Weights) -> Rank {
    let weight = weights.get(&(graph.edge(edge).source, edge)).copied().unwrap_or(UNTOUCHED);
    rank_with(graph, edge, weight)
}

fn rank_with(graph: &Graph, edge: EdgeId, weight: Weight) -> Rank {
    (Reverse(weight), Reverse(graph.vertex(graph.edge(edge).target).uniq_id), edge)
}

impl Siblings {
    /// The edges of a vertex, ordered by weights as far as they have some.
    pub(super) fn new(graph: &Graph, id: VertexId, weights: &Weights) -> Self {
        let all = &graph.vertex(id).out_edges;
        let used = weights.range((id, EdgeId(0))..=(id, EdgeId(u32::MAX))).next().is_some();
        let rank = |&edge: &EdgeId| {
            if used { rank(graph, edge, weights) } else { rank_with(graph, edge, UNTOUCHED) }
        };
        let ranks = all.iter().map(rank);
        if all.len() > WIDE {
            return Self { few: Vec::new(), many: ranks.collect() };
        }
        let mut ranks: Vec<Rank> = ranks.collect();
        // Most often they come ascending by their ids, which a stable sort notices.
        ranks.sort();
        Self { few: ranks.iter().map(|rank| rank.2).collect(), many: BTreeSet::new() }
    }

    /// The edges in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = EdgeId> + '_ {
        self.few.iter().copied().chain(self.many.iter().map(|rank| rank.2))
    }

    /// Gives an edge another weight than it has so far.
    pub(super) fn move_to(&mut self, graph: &Graph, edge: EdgeId, weight: Weight, weights: &Weights) {
        let old = rank(graph, edge, weights);
        let new = (Reverse(weight), old.1, edge);
        if self.many.remove(&old) {
            self.many.insert(new);
            return;
        }
        self.few.retain(|&other| other != edge);
        let to = self.few.partition_point(|&other| rank(graph, other, weights) < new);
        self.few.insert(to, edge);
    }
}

/// What there is below a vertex with many children.
#[derive(Clone, Debug, Default)]
pub(super) struct Wide {
    /// The types of its children in any subsystem, ascending.
    types: Vec<TypeId>,
    /// How many children it has in each subsystem.
    counts: Vec<(Subsystem, u64)>,
}

impl Wide {
    /// Looks at all children of a vertex.
    pub(super) fn of(graph: &Graph, id: VertexId) -> Self {
        let mut wide = Self::default();
        for &edge in &graph.vertex(id).out_edges {
            let edge = graph.edge(edge);
            let of = graph.vertex(edge.target).type_id;
            if let Err(at) = wide.types.binary_search(&of) {
                wide.types.insert(at, of);
            }
            match wide.counts.iter_mut().find(|(known, _)| *known == edge.subsystem) {
                Some((_, count)) => *count += 1,
                None => wide.counts.push((edge.subsystem, 1)),
            }
        }
        wide
    }

    /// Whether any child is of a type.
    pub(super) fn has(&self, of: TypeId) -> bool {
        self.types.binary_search(&of).is_ok()
    }

    /// How many children there are in a subsystem.
    pub(super) fn count(&self, subsystem: Subsystem) -> u64 {
        self.counts.iter().find(|(known, _)| *known == subsystem).map_or(0, |(_, count)| *count)
    }
}
