//! Converts the cluster to a resource graph, and vertices of any resource graph to nodes.
//!
//! cluster → node → pools, and for each level a subsystem in which the nodes have further parents. Everything that
//! determines eligibility (labels, taints, cordon, readiness) is a property of the node's vertex, so the graph can be
//! written, read by any JGF reader, and matched against like the cluster itself. Optionally includes what is not free,
//! and until when.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use fluxion::formats::writer;
use fluxion::graph::{Graph, GraphError, Status, Subsystem, VertexId, VertexSpec};

use super::Inventory;
use super::id::NodeId;
use super::share::SHARE;
use super::spec::NodeSpec;
use crate::constraint::{NodeFacts, Taint, TaintEffect, exclusions};
use crate::resources::ResourceList;

/// `taint:KEY:EFFECT`, with the taint's value; labels have no colon in their keys.
const TAINT: &str = "taint:";
const NOT_READY: &str = "state:not-ready";
const CORDONED: &str = "state:cordoned";
const DELETING: &str = "state:deleting";
/// The amount of a pool when healthy, if different from its size.
const CAPACITY: &str = "capacity";

const EFFECTS: [TaintEffect; 3] =
    [TaintEffect::NoSchedule, TaintEffect::PreferNoSchedule, TaintEffect::NoExecute];

/// Subsystem, vertex and path of each domain, by level and value.
type Domains = BTreeMap<(Arc<str>, Arc<str>), (Subsystem, VertexId, String)>;

/// The position of a vertex: its parent and path.
struct Place<'a> {
    parent: VertexId,
    subsystem: Subsystem,
    path: &'a str,
}

impl Inventory {
    /// The existing nodes as a graph: in natural order of their names, each with its pools, below the cluster and
    /// below its domain of each level. With a time (epoch seconds), including the allocations and reservations at that
    /// time. Fails if there are more than 254 levels or too many vertices.
    pub fn graph(&self, now: Option<i64>) -> Result<Graph, GraphError> {
        let mut graph = Graph::new();
        let top = "/cluster0";
        let root = graph.add_vertex(&VertexSpec {
            type_name: "cluster",
            basename: "cluster",
            name: "cluster0",
            id: 0,
            paths: &[(Subsystem::CONTAINMENT, top)],
            ..VertexSpec::default()
        })?;
        graph.set_root(Subsystem::CONTAINMENT, root)?;
        let mut domains = Domains::new();
        for level in self.levels() {
            let subsystem = graph.intern_subsystem(level)?;
            let path = graph.intern_path(top);
            graph.set_path(root, subsystem, path);
            graph.set_root(subsystem, root)?;
            let type_name = level.rsplit_once('/').map_or(&**level, |(_, tail)| tail);
            for ((value, _), id) in self.domains_of(level).into_iter().zip(0..) {
                let mut path = format!("{top}/{value}");
                if !graph.at_path_text(&path).is_empty() {
                    // Readers treat vertices with equal paths as the same.
                    path = format!("{top}/{}={value}", level.replace('/', "_"));
                }
                let domain =
                    VertexSpec { type_name, basename: type_name, name: &value, id, ..VertexSpec::default() };
                let place = Place { parent: root, subsystem, path: &path };
                let vertex = put(&mut graph, &domain, &place)?;
                domains.insert((level.clone(), value), (subsystem, vertex, path));
            }
        }
        for (name, rank) in self.node_names().zip(0..) {
            let Some((id, spec)) = self.id(&name).zip(self.node_spec(&name)) else { continue };
            let path = format!("{top}/{name}");
            let mut properties = properties(&spec);
            properties.extend(now.into_iter().flat_map(|now| self.shares(id, now)));
            let properties: Vec<(&str, &str)> =
                properties.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            let eligible = self.facts_of(id).is_none_or(|facts| exclusions(&[], facts).is_empty());
            let node = VertexSpec {
                type_name: "node",
                basename: "node",
                name: &name,
                id: i64::from(rank),
                rank,
                status: if eligible { Status::Up } else { Status::Down },
                properties: &properties,
                ..VertexSpec::default()
            };
            let place = Place { parent: root, subsystem: Subsystem::CONTAINMENT, path: &path };
            let vertex = put(&mut graph, &node, &place)?;
            for level in self.levels() {
                let domain =
                    spec.labels.get(level).and_then(|value| domains.get(&(level.clone(), value.clone())));
                if let Some((subsystem, domain, above)) = domain {
                    let path = graph.intern_path(&format!("{above}/{name}"));
                    graph.set_path(vertex, *subsystem, path);
                    graph.add_edge(*domain, vertex, *subsystem)?;
                }
            }
            add_pools(&mut graph, vertex, &path, rank, &spec)?;
        }
        Ok(graph)
    }

    /// The graph as JGF, with allocations and reservations at `now` (epoch seconds), and the allocated amount of each
    /// pool in `used`. Fails like [`Self::graph`].
    pub fn jgf(&self, now: i64) -> Result<String, GraphError> {
        let graph = self.graph(Some(now))?;
        let allocated: BTreeMap<i32, ResourceList> =
            (0..).zip(self.nodes()).map(|(rank, node)| (rank, node.allocated)).collect();
        let used = |id| {
            let vertex = graph.vertex(id);
            allocated.get(&vertex.rank).map_or(0, |list| list.get(graph.type_name(vertex.type_id)))
        };
        Ok(writer::graph(&graph, &used))
    }

    fn facts_of(&self, id: NodeId) -> Option<&NodeFacts> {
        self.book(id).map(|book| &*book.facts)
    }
}

fn put(graph: &mut Graph, spec: &VertexSpec<'_>, place: &Place<'_>) -> Result<VertexId, GraphError> {
    let vertex = graph.add_vertex(&VertexSpec { paths: &[(place.subsystem, place.path)], ..spec.clone() })?;
    graph.add_edge(place.parent, vertex, place.subsystem)?;
    Ok(vertex)
}

fn add_pools(
    graph: &mut Graph,
    node: VertexId,
    path: &str,
    rank: i32,
    spec: &NodeSpec,
) -> Result<(), GraphError> {
    for resource in spec.allocatable.iter().chain(spec.capacity.iter()).map(|(name, _)| name) {
        let (size, capacity) = (spec.allocatable.get(resource), spec.capacity.get(resource));
        // Resources that only exist in the capacity are listed once, by the second half of the chain.
        if size == 0 && capacity == 0 {
            continue;
        }
        // A resource name may contain a slash, which separates the parts of a path.
        let basename = resource.replace('/', "_");
        let name = format!("{basename}0");
        let path = format!("{path}/{name}");
        if !graph.at_path_text(&path).is_empty() {
            continue;
        }
        let capacity = (capacity != size).then(|| capacity.to_string());
        let properties: Vec<(&str, &str)> = capacity.iter().map(|text| (CAPACITY, text.as_str())).collect();
        let pool = VertexSpec {
            type_name: resource,
            basename: &basename,
            name: &name,
            id: 0,
            rank,
            size,
            unit: unit(resource),
            properties: &properties,
            ..VertexSpec::default()
        };
        let place = Place { parent: node, subsystem: Subsystem::CONTAINMENT, path: &path };
        put(graph, &pool, &place)?;
    }
    Ok(())
}

fn unit(resource: &str) -> &'static str {
    match resource {
        "cpu" => "m",
        "memory" | "ephemeral-storage" => "B",
        name if name.starts_with("hugepages-") => "B",
        _ => "",
    }
}

/// The properties of a node's vertex.
fn properties(spec: &NodeSpec) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> =
        spec.labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    for taint in &spec.taints {
        let mut key = String::from(TAINT);
        write!(key, "{}:{}", taint.key, taint.effect).expect("writing to a string does not fail");
        all.push((key, taint.value.to_string()));
    }
    let states = [(NOT_READY, !spec.ready), (CORDONED, spec.unschedulable), (DELETING, spec.deleting)];
    all.extend(states.iter().filter(|(_, on)| *on).map(|(key, _)| ((*key).to_owned(), String::new())));
    all
}

/// The node described by a vertex, without its resources. `down` means that it, or anything above it, is down: such a
/// vertex has the states in its properties, and is not ready if these contain neither a state nor a taint. A vertex
/// that is up has none of these states, regardless of its properties; taints always apply.
pub(crate) fn described(graph: &Graph, id: VertexId, name: Arc<str>, down: bool) -> NodeSpec {
    let mut node = NodeSpec { name, ready: true, ..NodeSpec::default() };
    for (key, value) in graph.properties(id) {
        let taint = key.strip_prefix(TAINT).and_then(|rest| rest.rsplit_once(':'));
        let effect =
            taint.and_then(|(_, name)| EFFECTS.into_iter().find(|effect| effect.to_string() == name));
        if let (Some((key, _)), Some(effect)) = (taint, effect) {
            node.taints.push(Taint { key: Arc::from(key), value: Arc::from(value), effect });
            continue;
        }
        match key {
            NOT_READY => node.ready = !down,
            CORDONED => node.unschedulable = down,
            DELETING => node.deleting = down,
            share if share.starts_with(SHARE) => {}
            label => {
                node.labels.insert(Arc::from(label), Arc::from(value));
            }
        }
    }
    let repels = |taint: &Taint| taint.effect != TaintEffect::PreferNoSchedule;
    if down && !node.unschedulable && !node.deleting && !node.taints.iter().any(repels) {
        node.ready = false;
    }
    node
}

/// The amount of a pool's vertex when healthy.
pub(crate) fn capacity(graph: &Graph, id: VertexId) -> u64 {
    let told =
        graph.find_text(CAPACITY).and_then(|key| graph.property(id, key)).and_then(|text| text.parse().ok());
    told.unwrap_or(graph.vertex(id).size)
}
