//! The nodes of a graph as read by the search for gangs: an index over graph and allocations.
//!
//! It has no state of its own: all data about holders is derived from the [`Allocations`], and is reread for nodes
//! whose allocations have changed. A vertex above a node, or between it and its pools, counts if a job holds it
//! exclusively. Host ports have no vertices; they are stored beside the allocations, and count while their job is on
//! the node.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fluxion::graph::{EdgeId, Graph, Status, Subsystem, Sym, TypeId, VertexId};
use fluxion::matcher::allocations::Allocations;
use fluxion::matcher::extension::View;
use fluxion::matcher::{JobId, LIFETIME};

use crate::constraint::{HostPort, NodeConstraint};
use crate::inventory::graph::{capacity, described};
use crate::inventory::{Allocation, AllocationKind, Inventory, NodeSpec};
use crate::request::{Placement, Request, Shape, Slot};
use crate::resources::ResourceList;
use fluxion_text::natural_order;

/// The time of a job on a vertex.
type Stay = (JobId, i64, i64);

/// A vertex of which amounts are allocated.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub vertex: VertexId,
    pub type_name: Arc<str>,
    /// The vertices between it and its node, the node first.
    between: Arc<[VertexId]>,
    pub size: u64,
    /// Whether it is up.
    pub up: bool,
}

/// A node with its pools.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub vertex: VertexId,
    /// Its name in the inventory: its own, or its path if the name is not unique.
    pub key: Arc<str>,
    pub pools: Vec<Pool>,
    above: Arc<[VertexId]>,
    reservations: Vec<u32>,
}

/// A vertex above pools: a node, or what is above or below one.
#[derive(Clone, Debug, Default)]
struct Around {
    /// The nodes affected by it.
    nodes: Vec<usize>,
    /// Its exclusive holders. Every booking below it changes its allocations, but few change this.
    held: Vec<Stay>,
}

/// What the inventory knows about a node.
struct Told {
    spec: NodeSpec,
    /// Its levels and domains in addition to those from its labels.
    further: Vec<(Arc<str>, Arc<str>)>,
}

/// Maximum number of relations between nodes and vertices above them, relative to the size of the graph: far more than
/// is reasonable.
const MOST_ABOVE: usize = 16;

/// The index.
#[derive(Clone, Debug)]
pub(super) struct Nodes {
    pub inventory: Inventory,
    nodes: Vec<Node>,
    by_key: BTreeMap<Arc<str>, usize>,
    /// The node of each pool.
    homes: Vec<Option<u32>>,
    /// Vertices that are not pools but affect them.
    around: BTreeMap<VertexId, Around>,
    /// Number of vertices per name, by type; for types above nodes.
    names: BTreeMap<TypeId, BTreeMap<Sym, u32>>,
    /// Names of vertices above nodes.
    domain_names: BTreeMap<VertexId, Arc<str>>,
    /// The edge that leads to each vertex from the root.
    ways: Vec<Option<EdgeId>>,
    next_reservation: u32,
}

/// Data that can't be stored in allocations.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    /// Host ports by node and job.
    pub ports: BTreeMap<(VertexId, JobId), Vec<HostPort>>,
    /// Jobs without an end.
    pub permanent: BTreeSet<JobId>,
}

impl Nodes {
    /// The index of a graph with its allocations. None for a graph whose nodes have so many vertices above them that
    /// the index would be far larger than the graph.
    pub(super) fn new(view: View<'_>, beside: &Beside) -> Option<Self> {
        let View { graph, allocations, dominant, node_type, .. } = view;
        let mut nodes = Self {
            inventory: Inventory::new(),
            nodes: Vec::new(),
            by_key: BTreeMap::new(),
            homes: vec![None; graph.vertex_count()],
            around: BTreeMap::new(),
            domain_names: BTreeMap::new(),
            names: BTreeMap::new(),
            ways: vec![None; graph.vertex_count()],
            next_reservation: 0,
        };
        let mut budget = (graph.vertex_count() + graph.edge_count()).saturating_mul(MOST_ABOVE);
        let mut told = Vec::new();
        let mut seen = vec![false; graph.vertex_count()];
        let mut open: Vec<(Option<EdgeId>, VertexId, bool)> =
            graph.root(dominant).map(|root| (None, root, false)).into_iter().collect();
        while let Some((way, id, down)) = open.pop() {
            if std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            nodes.ways[id.index()] = way;
            let down = down || graph.vertex(id).status == Status::Down;
            if graph.vertex(id).type_id == node_type {
                let above = ancestors(graph, id, &mut budget)?;
                told.push(nodes.enter(graph, id, (down, above), dominant, &mut seen));
                continue;
            }
            let from = open.len();
            open.extend(graph.children(id, dominant).map(|(edge, child)| (Some(edge), child, down)));
            open[from..].reverse();
        }
        // In order, because each is inserted among the previous ones.
        told.sort_by(|a, b| natural_order(&a.spec.name, &b.spec.name));
        for told in told {
            let name = told.spec.name.clone();
            nodes.inventory.set_node(told.spec);
            for (level, value) in told.further {
                nodes.inventory.join(&level, &value, &name);
            }
        }
        for (id, around) in &mut nodes.around {
            around.held = stays(*id, allocations).map(|(stay, _)| stay).collect();
        }
        for at in 0..nodes.nodes.len() {
            nodes.reread(at, allocations, beside);
        }
        Some(nodes)
    }

    /// Updates everything derived from the allocations of these vertices.
    pub(super) fn follow(&mut self, changed: Vec<VertexId>, allocations: &Allocations, beside: &Beside) {
        let changed: BTreeSet<VertexId> = changed.into_iter().collect();
        let mut stale: BTreeSet<usize> = BTreeSet::new();
        for id in changed {
            stale.extend(self.homes.get(id.index()).copied().flatten().map(|at| at as usize));
            if let Some(around) = self.around.get_mut(&id) {
                let held: Vec<Stay> = stays(id, allocations).map(|(stay, _)| stay).collect();
                if around.held != held {
                    around.held = held;
                    stale.extend(&around.nodes);
                }
            }
        }
        for at in stale {
            self.reread(at, allocations, beside);
        }
    }

    pub(super) fn by_key(&self, key: &str) -> Option<&Node> {
        self.by_key.get(key).map(|at| &self.nodes[*at])
    }

    /// The node of a vertex, if it is one.
    pub(super) fn by_vertex(&self, id: VertexId) -> Option<&Node> {
        let at = self.around.get(&id)?.nodes.iter().find(|at| self.nodes[**at].vertex == id)?;
        Some(&self.nodes[*at])
    }

    /// The edge that leads to a vertex from the root.
    pub(super) fn way_to(&self, id: VertexId) -> Option<EdgeId> {
        self.ways.get(id.index()).copied().flatten()
    }

    fn enter(
        &mut self,
        graph: &Graph,
        id: VertexId,
        (down, above): (bool, Arc<[VertexId]>),
        dominant: Subsystem,
        seen: &mut [bool],
    ) -> Told {
        let at = self.nodes.len();
        let name = graph.text(graph.vertex(id).name);
        let mut key: Arc<str> = name.into();
        if self.by_key.contains_key(&key) {
            let path = graph.vertex(id).path(dominant).map(|path| graph.path_text(path));
            key = path.unwrap_or_default().into();
            if self.by_key.contains_key(&key) {
                key = format!("{key}#{}", id.0).into();
            }
        }
        let mut spec = described(graph, id, key.clone(), down);
        let mut further = Vec::new();
        let labelled: BTreeSet<Arc<str>> = spec.labels.keys().cloned().collect();
        for ancestor in above.iter() {
            let level: Arc<str> = graph.type_name(graph.vertex(*ancestor).type_id).into();
            if labelled.contains(&level) {
                continue;
            }
            let value = self.domain_name(graph, *ancestor, dominant);
            match spec.labels.entry(level) {
                Entry::Vacant(first) => {
                    first.insert(value);
                }
                Entry::Occupied(first) => further.push((first.key().clone(), value)),
            }
        }
        let pools = pools(graph, id, dominant, seen, &mut self.ways);
        for pool in &pools {
            if pool.up {
                spec.allocatable.add(&pool.type_name, pool.size);
            }
            spec.capacity.add(&pool.type_name, capacity(graph, pool.vertex));
            self.homes[pool.vertex.index()] = u32::try_from(at).ok();
        }
        let between = pools.iter().flat_map(|pool| pool.between.iter());
        for vertex in between.chain(above.iter()).chain([&id]) {
            let nodes = &mut self.around.entry(*vertex).or_default().nodes;
            if nodes.last() != Some(&at) {
                nodes.push(at);
            }
        }
        self.by_key.insert(key.clone(), at);
        self.nodes.push(Node { vertex: id, key, pools, above, reservations: Vec::new() });
        Told { spec, further }
    }

    /// The domain name of a vertex above nodes: its name, or its path if the name is not unique among its type.
    fn domain_name(&mut self, graph: &Graph, id: VertexId, dominant: Subsystem) -> Arc<str> {
        if let Some(known) = self.domain_names.get(&id) {
            return known.clone();
        }
        let vertex = graph.vertex(id);
        let names = self.names.entry(vertex.type_id).or_insert_with(|| {
            let mut names = BTreeMap::new();
            for other in graph.of_type(vertex.type_id) {
                *names.entry(graph.vertex(*other).name).or_default() += 1;
            }
            names
        });
        let alone = names.get(&vertex.name) == Some(&1);
        let path = vertex.path(dominant).or(vertex.paths.first().map(|(_, path)| *path)).filter(|_| !alone);
        let name: Arc<str> = match path {
            Some(path) => graph.path_text(path).into(),
            None => graph.text(vertex.name).into(),
        };
        self.domain_names.insert(id, name.clone());
        name
    }

    /// Updates the holders of a node.
    fn reread(&mut self, at: usize, allocations: &Allocations, beside: &Beside) {
        let node = &mut self.nodes[at];
        for reservation in node.reservations.drain(..) {
            self.inventory.clear_reservation(reservation);
        }
        if let Some(view) = self.inventory.node(&node.key) {
            for (holder, _) in view.holders {
                self.inventory.release(&holder);
            }
        }
        let mut held: BTreeMap<Stay, ResourceList> = BTreeMap::new();
        for pool in &node.pools {
            for (stay, quantity) in taken(pool, &node.above, allocations) {
                held.entry(stay).or_default().add(&pool.type_name, quantity);
            }
        }
        for ((job, start, end), needs) in held {
            let ports = beside.ports.get(&(node.vertex, job)).cloned().unwrap_or_default();
            let needs = Arc::new(needs);
            let until = Some(end).filter(|end| *end < LIFETIME);
            if start == 0 {
                let hold = Allocation {
                    needs,
                    ports: ports.into(),
                    from: start,
                    until,
                    end_assumed: false,
                    kind: AllocationKind::Bound,
                    permanent: beside.permanent.contains(&job),
                    job: None,
                    peer: None,
                };
                self.inventory.hold(format!("{job}@{}", node.key).into(), &node.key, hold);
                continue;
            }
            let shape = Shape {
                count: 1,
                needs,
                constraint: Arc::new(NodeConstraint::default()),
                ports: ports.into(),
                peer: None,
                preferences: None,
            };
            let request = Request { shapes: vec![shape], ..Request::default() };
            let slots = vec![Slot { shape: 0, node: node.key.clone(), count: 1 }];
            let number = self.next_reservation;
            self.next_reservation = number.wrapping_add(1);
            self.inventory.reserve(number, &request, Placement { slots, domain: None }, start, until);
            node.reservations.push(number);
        }
    }
}

/// Everything above a vertex, in any subsystem, nearest first; none if that exceeds the budget.
fn ancestors(graph: &Graph, id: VertexId, budget: &mut usize) -> Option<Arc<[VertexId]>> {
    let mut seen = BTreeSet::from([id]);
    let mut all = vec![id];
    let mut at = 0;
    while at < all.len() {
        for edge in &graph.vertex(all[at]).in_edges {
            let parent = graph.edge(*edge).source;
            if seen.insert(parent) {
                *budget = budget.checked_sub(1)?;
                all.push(parent);
            }
        }
        at += 1;
    }
    all.remove(0);
    Some(all.into())
}

/// The leaves below a node, in depth-first order.
fn pools(
    graph: &Graph,
    node: VertexId,
    dominant: Subsystem,
    seen: &mut [bool],
    ways: &mut [Option<EdgeId>],
) -> Vec<Pool> {
    let mut pools = Vec::new();
    let mut types: BTreeMap<TypeId, Arc<str>> = BTreeMap::new();
    let path: Arc<[VertexId]> = Arc::new([node]);
    let mut open = vec![(node, path, true)];
    while let Some((id, path, up)) = open.pop() {
        let from = open.len();
        let below: Vec<(EdgeId, VertexId)> = graph.children(id, dominant).collect();
        if below.is_empty() {
            if id != node {
                let type_id = graph.vertex(id).type_id;
                let name = types.entry(type_id).or_insert_with(|| graph.type_name(type_id).into());
                let size = graph.vertex(id).size;
                pools.push(Pool { vertex: id, type_name: name.clone(), between: path, size, up });
            }
            continue;
        }
        let path = if id == node { path } else { path.iter().copied().chain([id]).collect() };
        for (edge, child) in below {
            if !std::mem::replace(&mut seen[child.index()], true) {
                ways[child.index()] = Some(edge);
                let up = up && graph.vertex(child).status == Status::Up;
                open.push((child, path.clone(), up));
            }
        }
        open[from..].reverse();
    }
    pools
}

/// The holders of a vertex with times and amounts.
fn stays(id: VertexId, allocations: &Allocations) -> impl Iterator<Item = (Stay, u64)> + '_ {
    allocations.get(id).into_iter().flat_map(|account| {
        account.entries().iter().filter_map(|entry| {
            let span = account.plan.span(entry.plan?.1)?;
            Some(((entry.job, span.start, span.end), span.amount))
        })
    })
}

/// Jobs' amounts of a pool and when: all of it if they exclusively hold anything that contains it.
fn taken(pool: &Pool, above: &[VertexId], allocations: &Allocations) -> BTreeMap<Stay, u64> {
    let mut all: BTreeMap<Stay, u64> = BTreeMap::new();
    if !pool.up {
        return all;
    }
    for id in above.iter().chain(pool.between.iter()) {
        all.extend(stays(*id, allocations).map(|(stay, _)| (stay, pool.size)));
    }
    for (stay, quantity) in stays(pool.vertex, allocations) {
        all.entry(stay).or_insert(quantity);
    }
    all
}
