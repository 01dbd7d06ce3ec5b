//! What walks over the graph leave behind for each other: which edges are marked in the current round,
//! which vertices were seen, in which order children are tried, labels, counters, the last error.

use std::collections::BTreeMap;

use super::notes::Notes;
use super::shorts::Shorts;
use super::siblings::Siblings;
pub(super) use super::siblings::Weight;
use super::siblings::{WIDE, Weights, Wide};
use crate::errno::Errno;
use crate::graph::{EdgeId, Graph, VertexId};

/// A mark on an edge: its target was chosen in a round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    pub round: u32,
    pub exclusive: bool,
    pub needs: u64,
}

/// Where no edge leads to a vertex.
const NO_EDGE: EdgeId = EdgeId(u32::MAX);

/// The space that walks share.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// Counts selections and updates; marks of other rounds don't count.
    pub round: u32,
    /// The mark of the edge that leads into the root.
    pub root_mark: Mark,
    /// The last error number.
    pub errno: Errno,
    /// Vertices entered by selections since the counters were reset.
    pub preorder: u64,
    /// Vertices left successfully.
    pub postorder: u64,
    marks: Vec<Mark>,
    walk: u32,
    /// Per vertex: the last walk that saw it, and the edge by which it was reached.
    seen: Vec<(u32, EdgeId)>,
    weights: Weights,
    /// Children by weight, then by unique id, both descending; made when first needed.
    order: BTreeMap<VertexId, Siblings>,
    /// Marked edges of this round that start at vertices with many children.
    marked: Vec<(VertexId, EdgeId)>,
    /// What there is below vertices with many children; made when first needed.
    wide: BTreeMap<VertexId, Wide>,
    labels: BTreeMap<VertexId, (String, u32)>,
    /// Room for what many candidates are compared by, and their positions.
    pub keys: Vec<(i64, u32)>,
    /// When there is too little at vertices, as far as walks came across it.
    pub shorts: Shorts,
    /// Why vertices were turned back at, when somebody asks.
    pub notes: Option<Box<Notes>>,
}

impl Scratch {
    /// Makes room for every vertex and edge of a graph.
    pub(crate) fn make_room(&mut self, graph: &Graph) {
        if self.marks.len() < graph.edge_count() {
            self.marks.resize(graph.edge_count(), Mark::default());
        }
        if self.seen.len() < graph.vertex_count() {
            self.seen.resize(graph.vertex_count(), (0, NO_EDGE));
        }
    }

    /// Starts a round: nothing is marked or seen.
    pub(crate) fn start(&mut self, graph: &Graph) {
        if self.round == u32::MAX {
            self.marks.clear();
            self.round = 0;
        }
        self.round += 1;
        self.marked.clear();
        self.start_walk(graph);
    }

    /// Starts another walk of the same round: nothing is seen.
    pub(crate) fn start_walk(&mut self, graph: &Graph) {
        if self.walk == u32::MAX {
            self.seen.clear();
            self.walk = 0;
        }
        self.walk += 1;
        self.make_room(graph);
    }

    pub(crate) fn mark(&mut self, graph: &Graph, edge: EdgeId, needs: u64, exclusive: bool) {
        self.marks[edge.index()] = Mark { round: self.round, exclusive, needs };
        let source = graph.edge(edge).source;
        if graph.vertex(source).out_edges.len() > WIDE {
            self.marked.push((source, edge));
        }
    }

    /// The edges of a vertex with many children that are marked in the current round, in order of
    /// insertion; none for a vertex with few.
    pub(crate) fn marked_among_many(&self, graph: &Graph, id: VertexId) -> Option<Vec<EdgeId>> {
        if graph.vertex(id).out_edges.len() <= WIDE {
            return None;
        }
        let here = self.marked.iter().filter(|(source, _)| *source == id);
        let mut edges: Vec<EdgeId> = here.map(|&(_, edge)| edge).collect();
        // Edges are numbered as they are inserted.
        edges.sort_unstable();
        edges.dedup();
        Some(edges)
    }

    /// What there is below a vertex, if that is much.
    pub(crate) fn wide(&mut self, graph: &Graph, id: VertexId) -> Option<&Wide> {
        if graph.vertex(id).out_edges.len() <= WIDE {
            return None;
        }
        Some(self.wide.entry(id).or_insert_with(|| Wide::of(graph, id)))
    }

    /// The mark of an edge in the current round.
    pub(crate) fn mark_of(&self, edge: EdgeId) -> Option<Mark> {
        self.marks.get(edge.index()).copied().filter(|mark| mark.round == self.round)
    }

    pub(crate) fn is_marked(&self, edge: EdgeId) -> bool {
        self.mark_of(edge).is_some()
    }

    /// Whether the root is marked in the current round.
    pub(crate) fn root_is_marked(&self) -> bool {
        self.root_mark.round == self.round
    }

    pub(crate) fn see(&mut self, id: VertexId) {
        self.seen[id.index()].0 = self.walk;
    }

    pub(crate) fn is_seen(&self, id: VertexId) -> bool {
        self.seen[id.index()].0 == self.walk
    }

    pub(crate) fn set_way(&mut self, id: VertexId, edge: EdgeId) {
        self.seen[id.index()].1 = edge;
    }

    /// The edge by which a vertex was last reached.
    pub(crate) fn way_to(&self, id: VertexId) -> Option<EdgeId> {
        self.seen.get(id.index()).map(|seen| seen.1).filter(|edge| *edge != NO_EDGE)
    }

    /// The edges of a vertex in the order in which they are tried. Give them back with
    /// [`Scratch::put_order`].
    pub(crate) fn take_order(&mut self, graph: &Graph, id: VertexId) -> Siblings {
        if let Some(order) = self.order.get_mut(&id) {
            return std::mem::take(order);
        }
        Siblings::new(graph, id, &self.weights)
    }

    pub(crate) fn put_order(&mut self, id: VertexId, order: Siblings) {
        self.order.insert(id, order);
    }

    /// Gives a child a new rank among its siblings.
    pub(crate) fn set_weight(&mut self, graph: &Graph, edge: EdgeId, weight: Weight) {
        let source = graph.edge(edge).source;
        if let Some(order) = self.order.get_mut(&source) {
            order.move_to(graph, edge, weight, &self.weights);
        }
        self.weights.insert((source, edge), weight);
    }

    /// Forgets the order and the number of children everywhere, after edges have come or gone.
    pub(crate) fn forget_orders(&mut self) {
        self.order.clear();
        self.wide.clear();
    }

    pub(crate) fn set_label(&mut self, id: VertexId, label: &str) {
        self.labels.insert(id, (label.to_owned(), self.round));
    }

    /// The label of a vertex; with `stale` also one of an earlier round.
    pub(crate) fn label(&self, id: VertexId, stale: bool) -> Option<&str> {
        let (label, round) = self.labels.get(&id)?;
        (stale || *round == self.round).then_some(label.as_str())
    }

    /// Forgets the label of a vertex.
    pub(crate) fn clear_label(&mut self, id: VertexId) {
        self.labels.remove(&id);
    }
}
