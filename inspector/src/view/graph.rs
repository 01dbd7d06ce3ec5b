//! `FluxionGraph`: the resource graph as JGF (JSON Graph Format, with the members that flux tools read), and
//! as sums by level.

use std::collections::BTreeMap;
use std::sync::Arc;

use fluxion_api::graph::{FluxionGraph, GraphStatus, LevelSummary};
use fluxion_api::{API_VERSION, ObjectMeta};
use fluxion_core::inventory::{Inventory, NodeView};
use fluxion_core::resources::ResourceList;
use serde::Serialize;

use super::text::quantities;

/// Subsystem of cluster, nodes and pools.
const CONTAINMENT: &str = "containment";

/// A graph in JSON Graph Format.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Jgf {
    graph: Parts,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Parts {
    nodes: Vec<Vertex>,
    edges: Vec<Edge>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Vertex {
    id: String,
    metadata: VertexMetadata,
}

/// In the order and with the omissions of flux-sched's JGF; readers pass over `used`, which is ours.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct VertexMetadata {
    #[serde(rename = "type")]
    type_: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    basename: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    id: u64,
    uniq_id: u64,
    rank: i64,
    /// 1 for a node that takes no new work.
    #[serde(skip_serializing_if = "is_zero")]
    status: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    unit: String,
    #[serde(skip_serializing_if = "is_one")]
    size: u64,
    /// How much of `size` is allocated.
    #[serde(skip_serializing_if = "is_zero")]
    used: u64,
    paths: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Edge {
    source: String,
    target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<EdgeMetadata>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct EdgeMetadata {
    subsystem: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_one(size: &u64) -> bool {
    *size == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The graph object; `jgf` is left out when only the sums were asked for.
pub fn graph(inventory: &Inventory, with_jgf: bool) -> FluxionGraph {
    let jgf = with_jgf.then(|| serde_json::to_value(jgf(inventory)).unwrap_or_default());
    FluxionGraph {
        api_version: API_VERSION.to_owned(),
        kind: "FluxionGraph".to_owned(),
        metadata: ObjectMeta { name: super::LIVE.to_owned(), ..ObjectMeta::default() },
        status: GraphStatus { graph: jgf, summary: summary(inventory) },
    }
}

/// cluster → node → pools, and for each topology key a subsystem in which cluster → domain → node.
pub fn jgf(inventory: &Inventory) -> Jgf {
    let mut builder = Builder::default();
    let root_path = "/cluster0".to_owned();
    let mut root = vertex("cluster", 0, "cluster0");
    root.paths.insert(CONTAINMENT.to_owned(), root_path.clone());
    for level in inventory.levels() {
        root.paths.insert(level.to_string(), root_path.clone());
    }
    let root = builder.add(root);
    let mut domains = Domains::new();
    for level in inventory.levels() {
        for (index, (value, _)) in inventory.domains_of(level).into_iter().enumerate() {
            let type_ = level.rsplit_once('/').map_or(&**level, |(_, tail)| tail);
            let path = format!("{root_path}/{value}");
            let mut domain = vertex(type_, index as u64, &value);
            domain.paths.insert(level.to_string(), path.clone());
            let id = builder.add(domain);
            builder.link(&root, &id, Some(level));
            domains.insert((level.clone(), value), (id, path));
        }
    }
    for (rank, node) in inventory.nodes().enumerate() {
        add_node(&mut builder, &root, &root_path, &domains, rank as u64, &node);
    }
    Jgf { graph: builder.0 }
}

/// Id and path of each domain, by topology key and value.
type Domains = BTreeMap<(Arc<str>, Arc<str>), (String, String)>;

fn add_node(
    builder: &mut Builder,
    root: &str,
    root_path: &str,
    domains: &Domains,
    rank: u64,
    node: &NodeView,
) {
    let name = &node.spec.name;
    let rank_number = i64::try_from(rank).unwrap_or(-1);
    let path = format!("{root_path}/{name}");
    let mut host = VertexMetadata { rank: rank_number, ..vertex("node", rank, name) };
    host.status = u64::from(!node.eligible);
    host.paths.insert(CONTAINMENT.to_owned(), path.clone());
    let parents: Vec<_> = node
        .levels
        .iter()
        .filter_map(|(level, value)| Some((level, domains.get(&(level.clone(), value.clone()))?)))
        .collect();
    for (level, (_, domain)) in &parents {
        host.paths.insert(level.to_string(), format!("{domain}/{name}"));
    }
    let host = builder.add(host);
    builder.link(root, &host, None);
    for (level, (domain, _)) in parents {
        builder.link(domain, &host, Some(level));
    }
    for (resource, size) in node.spec.allocatable.iter().filter(|(_, size)| *size > 0) {
        // A resource name may hold a slash, which parts the steps of a path.
        let basename = resource.replace('/', "_");
        let pool_name = format!("{basename}0");
        let mut pool = VertexMetadata {
            rank: rank_number,
            unit: unit(resource).to_owned(),
            size,
            used: node.allocated.get(resource),
            ..vertex(resource, 0, &pool_name)
        };
        if basename != **resource {
            pool.basename = basename;
        }
        pool.name.clear();
        pool.paths.insert(CONTAINMENT.to_owned(), format!("{path}/{pool_name}"));
        let pool = builder.add(pool);
        builder.link(&host, &pool, None);
    }
}

/// A vertex whose name is left out where it follows from type and id.
fn vertex(type_: &str, id: u64, name: &str) -> VertexMetadata {
    let name = if name == format!("{type_}{id}") { String::new() } else { name.to_owned() };
    VertexMetadata { type_: type_.to_owned(), id, name, rank: -1, size: 1, ..VertexMetadata::default() }
}

fn unit(resource: &str) -> &'static str {
    match resource {
        "cpu" => "m",
        "memory" | "ephemeral-storage" => "B",
        name if name.starts_with("hugepages-") => "B",
        _ => "",
    }
}

#[derive(Default)]
struct Builder(Parts);

impl Builder {
    fn add(&mut self, mut metadata: VertexMetadata) -> String {
        metadata.uniq_id = self.0.nodes.len() as u64;
        let id = metadata.uniq_id.to_string();
        self.0.nodes.push(Vertex { id: id.clone(), metadata });
        id
    }

    fn link(&mut self, source: &str, target: &str, subsystem: Option<&Arc<str>>) {
        let metadata = subsystem.map(|subsystem| EdgeMetadata { subsystem: subsystem.to_string() });
        self.0.edges.push(Edge { source: source.to_owned(), target: target.to_owned(), metadata });
    }
}

/// Sums of one level.
#[derive(Default)]
struct Sums {
    allocatable: ResourceList,
    allocated: ResourceList,
    free: ResourceList,
}

impl Sums {
    fn add(&mut self, node: &NodeView) {
        // Sums over more than a u64 holds of anything stand still: no cluster gets there.
        let plus = |sum: &mut ResourceList, more: &ResourceList| {
            if let Ok(total) = sum.checked_add(more) {
                *sum = total;
            }
        };
        plus(&mut self.allocatable, &node.spec.allocatable);
        plus(&mut self.allocated, &node.allocated);
        plus(&mut self.free, &node.free);
    }
}

fn summary(inventory: &Inventory) -> Vec<LevelSummary> {
    let mut all = Sums::default();
    let mut by_level: BTreeMap<&Arc<str>, Sums> =
        inventory.levels().iter().map(|level| (level, Sums::default())).collect();
    let mut nodes = 0;
    for node in inventory.nodes() {
        all.add(&node);
        nodes += 1;
        for (level, sums) in &mut by_level {
            if node.levels.contains_key(*level) {
                sums.add(&node);
            }
        }
    }
    let line = |level: &str, vertices: usize, sums: &Sums| LevelSummary {
        level: level.to_owned(),
        vertices: u32::try_from(vertices).unwrap_or(u32::MAX),
        allocatable: quantities(&sums.allocatable),
        allocated: quantities(&sums.allocated),
        free: quantities(&sums.free),
    };
    let mut lines = vec![line("cluster", 1, &all)];
    lines.extend(by_level.iter().map(|(level, sums)| line(level, inventory.domains_of(level).len(), sums)));
    lines.push(line("node", nodes, &all));
    lines
}
