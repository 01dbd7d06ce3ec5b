//! The parts of a graph whose visits are remembered, and how they hang together.
//!
//! A *home* is a node with everything below it, or something beside nodes that has no node below it. What
//! is above homes is an *upper* vertex. Homes and uppers with many siblings are put into *bundles* of a
//! few, so that a change of one reaches the top in few steps. All of them are units; they are numbered from
//! the root down, so that a unit has a lower number than what is below it.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::graph::{EdgeId, Graph, Status, Subsystem, TypeId, VertexId};

/// Not the number of a unit, nor of a class.
pub(super) const NONE: u32 = u32::MAX;

/// How many units a bundle holds. Few in tests, so that small graphs have bundles too.
const FAN: usize = if cfg!(test) { 3 } else { 16 };

/// How many classes of homes are told apart.
const MAX_CLASSES: usize = 64;

/// Numbers of vertices from here on are left to exact visits, for their sums may not fit.
const MAX_ID: i64 = 1 << 40;

/// What a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitKind {
    Home,
    Upper,
    Bundle,
}

/// One unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unit {
    pub kind: UnitKind,
    /// The vertex, of a bundle the one above it.
    pub vertex: VertexId,
    /// The edge that leads to the vertex.
    pub edge: EdgeId,
    pub parent: u32,
    /// The units below; of a home the vertices that belong to it.
    first: u32,
    count: u32,
    /// Places in the order in which a walk is done with vertices: the first one in here, and its own.
    pub low: u32,
    pub place: u32,
    /// Homes of the same class differ only in the numbers of their topmost vertices.
    pub class: u32,
}

/// All units.
#[derive(Clone, Debug, Default)]
pub(super) struct Units {
    all: Vec<Unit>,
    /// Per vertex: its unit.
    of: Arc<[u32]>,
    members: Vec<VertexId>,
    pub classes: usize,
}

impl Units {
    /// The units of a graph; none unless the subsystem is a tree with nodes below its root.
    pub(super) fn new(graph: &Graph, dominant: Subsystem, node_type: TypeId) -> Option<Self> {
        let root = graph.root(dominant)?;
        let is_node = |id: VertexId| graph.vertex(id).type_id == node_type;
        if is_node(root) {
            return None;
        }
        let upper = uppers(graph, dominant, root, &is_node)?;
        let mut of = vec![NONE; graph.vertex_count()];
        let mut units = Self::default();
        units.push(UnitKind::Upper, root, EdgeId(0), NONE);
        of[root.index()] = 0;
        let mut open = VecDeque::from([(0, graph.children(root, dominant).collect::<Vec<_>>())]);
        while let Some((parent, children)) = open.pop_front() {
            let at = parent as usize;
            units.all[at].first = units.next();
            if children.len() > FAN {
                let size = bundle_size(children.len());
                for part in children.chunks(size) {
                    let unit = units.push(UnitKind::Bundle, units.all[at].vertex, EdgeId(0), parent);
                    open.push_back((unit, part.to_vec()));
                }
            } else {
                for (edge, child) in children {
                    let kind = if upper[child.index()] && !is_node(child) {
                        UnitKind::Upper
                    } else {
                        UnitKind::Home
                    };
                    let unit = units.push(kind, child, edge, parent);
                    of[child.index()] = unit;
                    if kind == UnitKind::Upper {
                        open.push_back((unit, graph.children(child, dominant).collect()));
                    }
                }
            }
            units.all[at].count = units.next() - units.all[at].first;
        }
        units.number();
        units.fill(graph, dominant, &mut of);
        units.of = of.into();
        Some(units)
    }

    fn next(&self) -> u32 {
        u32::try_from(self.all.len()).expect("there are fewer units than vertices, bundles included")
    }

    fn push(&mut self, kind: UnitKind, vertex: VertexId, edge: EdgeId, parent: u32) -> u32 {
        let (first, count, low, place) = (0, 0, 0, 0);
        self.all.push(Unit { kind, vertex, edge, parent, first, count, low, place, class: NONE });
        self.next() - 1
    }

    /// Finds the places of all units in the order of a walk.
    fn number(&mut self) {
        let mut sizes = vec![0_u32; self.all.len()];
        for at in (0..self.all.len()).rev() {
            sizes[at] += u32::from(self.all[at].kind != UnitKind::Bundle);
            if self.all[at].parent != NONE {
                sizes[self.all[at].parent as usize] += sizes[at];
            }
        }
        for at in 0..self.all.len() {
            let unit = self.all[at];
            self.all[at].place = unit.low + sizes[at].saturating_sub(1);
            let mut low = unit.low;
            for child in unit.first..unit.first + unit.count {
                self.all[child as usize].low = low;
                low += sizes[child as usize];
            }
        }
    }

    /// Lists what belongs to each home, and finds out which homes are alike.
    fn fill(&mut self, graph: &Graph, dominant: Subsystem, of: &mut [u32]) {
        let mut known: Vec<Vec<u64>> = Vec::new();
        let mut last = 0;
        let mut open = Vec::new();
        let mut signature = Vec::new();
        for at in 0..self.all.len() {
            if self.all[at].kind != UnitKind::Home {
                continue;
            }
            let unit = u32::try_from(at).expect("units have numbers of 32 bits");
            let from = self.members.len();
            signature.clear();
            let mut plain = true;
            open.push(self.all[at].vertex);
            while let Some(id) = open.pop() {
                of[id.index()] = unit;
                self.members.push(id);
                let start = open.len();
                open.extend(graph.children(id, dominant).map(|(_, child)| child));
                open[start..].reverse();
                let children = open.len() - start;
                plain &= describe(graph, id, children, self.members.len() == from + 1, &mut signature);
            }
            let count = self.members.len() - from;
            let narrow = |number| u32::try_from(number).expect("there are fewer than 2^32 vertices");
            (self.all[at].first, self.all[at].count) = (narrow(from), narrow(count));
            if !plain {
                continue;
            }
            if known.get(last) != Some(&signature) {
                last = known.iter().position(|other| *other == signature).unwrap_or_else(|| {
                    if known.len() < MAX_CLASSES {
                        known.push(signature.clone());
                    }
                    known.len() - 1
                });
            }
            if known[last] == signature {
                self.all[at].class = narrow(last);
            }
        }
        self.classes = known.len();
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get(&self, unit: u32) -> &Unit {
        &self.all[unit as usize]
    }

    /// The units below an upper vertex or in a bundle.
    pub(super) fn children(&self, unit: u32) -> std::ops::Range<u32> {
        let unit = self.get(unit);
        if unit.kind == UnitKind::Home { 0..0 } else { unit.first..unit.first + unit.count }
    }

    /// The vertices of a unit.
    pub(super) fn members(&self, unit: u32) -> &[VertexId] {
        let unit = self.get(unit);
        match unit.kind {
            UnitKind::Home => &self.members[unit.first as usize..(unit.first + unit.count) as usize],
            UnitKind::Upper => std::slice::from_ref(&unit.vertex),
            UnitKind::Bundle => &[],
        }
    }

    /// Per vertex: the unit it belongs to.
    pub(super) fn by_vertex(&self) -> Arc<[u32]> {
        Arc::clone(&self.of)
    }

    /// The unit of a vertex, if it is the topmost one of it.
    pub(super) fn topped_by(&self, id: VertexId) -> Option<u32> {
        let unit = *self.of.get(id.index())?;
        (unit != NONE && self.get(unit).vertex == id).then_some(unit)
    }

    /// The home of a vertex is not like others any more.
    pub(super) fn single_out(&mut self, id: VertexId) {
        if let Some(&unit) = self.of.get(id.index())
            && let Some(unit) = self.all.get_mut(unit as usize)
        {
            unit.class = NONE;
        }
    }

    /// Status or properties of a vertex have changed: its home is not like others any more, unless that is
    /// looked at for each one.
    pub(super) fn tell_apart(&mut self, id: VertexId) {
        if self.topped_by(id).is_none() {
            self.single_out(id);
        }
    }
}

/// Per vertex, whether there is a node below it; none when two ways lead to one vertex.
fn uppers(
    graph: &Graph,
    dominant: Subsystem,
    root: VertexId,
    is_node: &impl Fn(VertexId) -> bool,
) -> Option<Vec<bool>> {
    let mut seen = vec![false; graph.vertex_count()];
    let mut upper = vec![false; graph.vertex_count()];
    let mut order = vec![(root, root)];
    seen[root.index()] = true;
    let mut at = 0;
    while let Some(&(id, _)) = order.get(at) {
        at += 1;
        for (_, child) in graph.children(id, dominant) {
            if std::mem::replace(&mut seen[child.index()], true) {
                return None;
            }
            order.push((child, id));
        }
    }
    for &(id, parent) in order.iter().rev() {
        if id != root && (is_node(id) || upper[id.index()]) {
            upper[parent.index()] = true;
        }
    }
    Some(upper)
}

/// How many of so many siblings go into each of at most [`FAN`] bundles.
fn bundle_size(count: usize) -> usize {
    let mut size = FAN;
    while size.saturating_mul(FAN) < count {
        size *= FAN;
    }
    size
}

/// Appends what matters of a vertex for what is found in its home; answers whether that is all.
fn describe(graph: &Graph, id: VertexId, children: usize, topmost: bool, out: &mut Vec<u64>) -> bool {
    let vertex = graph.vertex(id);
    let number = if topmost { 0 } else { vertex.id };
    let down = !topmost && vertex.status == Status::Down;
    out.extend([
        u64::from(vertex.type_id.0),
        vertex.size,
        number.cast_unsigned(),
        children as u64 * 2 + u64::from(down),
    ]);
    let type_name = graph.type_name(vertex.type_id);
    // Constraints and performance classes are looked at for topmost vertices alone. Which sums a cluster has
    // depends on where it is.
    let named = ["node", "storage_node"].contains(&type_name);
    (-1..MAX_ID).contains(&vertex.id)
        && vertex.out_edges.len() == children
        && type_name != "cluster"
        && (topmost || !named && graph.properties(id).is_empty())
}
