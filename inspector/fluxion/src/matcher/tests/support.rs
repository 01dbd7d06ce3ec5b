//! A builder for test graphs, and a sink that writes short lines.

use crate::graph::{EdgeId, Graph, Status, Subsystem, VertexId, VertexSpec};
use crate::jobspec::Jobspec;
use crate::matcher::sink::{Sink, VertexEvent};
use crate::matcher::{Engine, Failure, Found, JobId, Operation, Options, Policy, Quirks};

/// Children of one vertex: type, how many, size of each, and what is below.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    pub kind: &'static str,
    pub count: usize,
    pub size: u64,
    pub below: Vec<Level>,
}

pub(crate) fn level(kind: &'static str, count: usize, size: u64, below: Vec<Level>) -> Level {
    Level { kind, count, size, below }
}

/// A graph under one cluster. Nodes and what is below get the rank of the node.
pub(crate) fn build(levels: &[Level]) -> Graph {
    let mut graph = Graph::new();
    let containment = Subsystem::CONTAINMENT;
    let paths = [(containment, "/cluster0")];
    let spec = VertexSpec {
        type_name: "cluster",
        basename: "cluster",
        name: "cluster0",
        id: 0,
        paths: &paths,
        ..VertexSpec::default()
    };
    let root = graph.add_vertex(&spec).unwrap();
    graph.set_root(containment, root).unwrap();
    let mut nodes = 0;
    add(&mut graph, root, "/cluster0", -1, levels, &mut nodes);
    graph
}

fn add(graph: &mut Graph, parent: VertexId, path: &str, rank: i32, levels: &[Level], nodes: &mut i32) {
    for level in levels {
        for at in 0..level.count {
            let node = level.kind == "node";
            let rank = if node { *nodes } else { rank };
            let id = if node { i64::from(rank) } else { i64::try_from(at).unwrap() };
            *nodes += i32::from(node);
            let name = format!("{}{id}", level.kind);
            let path = format!("{path}/{name}");
            let paths = [(Subsystem::CONTAINMENT, path.as_str())];
            let spec = VertexSpec {
                type_name: level.kind,
                basename: level.kind,
                name: &name,
                id,
                rank,
                size: level.size,
                paths: &paths,
                ..VertexSpec::default()
            };
            let child = graph.add_vertex(&spec).unwrap();
            graph.add_edge(parent, child, Subsystem::CONTAINMENT).unwrap();
            add(graph, child, &path, rank, &level.below, nodes);
        }
    }
}

/// Racks with nodes with cores, gpus and memory pools of 4.
pub(crate) fn machine(racks: usize, nodes: usize, cores: usize, gpus: usize, memory: usize) -> Graph {
    let node = vec![
        level("core", cores, 1, vec![]),
        level("gpu", gpus, 1, vec![]),
        level("memory", memory, 4, vec![]),
    ];
    build(&[level("rack", racks, 1, vec![level("node", nodes, 1, node)])])
}

/// The same with solid-state disks in the racks, and some nodes that are unlike the others.
pub(crate) fn mixed(
    racks: usize,
    nodes: usize,
    cores: usize,
    gpus: usize,
    memory: usize,
    odd: usize,
) -> Graph {
    let node = |more: usize, pool: u64| {
        vec![
            level("core", cores + more, 1, vec![]),
            level("gpu", gpus, 1, vec![]),
            level("memory", memory, pool, vec![]),
        ]
    };
    let below = vec![
        level("ssd", odd, 1, vec![]),
        level("node", nodes, 1, node(0, 4)),
        level("node", odd, 1, node(1, 2)),
        level("ssd", odd / 2, 1, vec![]),
    ];
    build(&[level("rack", racks, 1, below), level("node", odd, 1, node(2, 8))])
}

pub(crate) fn engine(graph: Graph, policy: &str, quirks: Quirks) -> Engine {
    let options = Options {
        policy: Policy::parse(policy).unwrap(),
        subsystems: vec!["containment".to_owned()],
        flexible: false,
        filters: String::new(),
        quirks,
    };
    Engine::new(graph, &options).unwrap()
}

/// Writes `name[needs:x]` per vertex.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub written: Vec<String>,
    pub edges: usize,
    pub times: Option<(i64, i64)>,
}

impl Sink for Lines {
    fn vertex(&mut self, graph: &Graph, event: &VertexEvent<'_>) {
        let name = graph.text(graph.vertex(event.vertex).name);
        let how = if event.exclusive { "x" } else { "s" };
        let label = event.label.map_or(String::new(), |label| format!(" {label}"));
        self.written.push(format!("{name}[{}:{how}]{label}", event.needs));
    }

    fn edge(&mut self, _: &Graph, _: EdgeId, _: bool) {
        self.edges += 1;
    }

    fn times(&mut self, start: i64, end: i64) {
        self.times = Some((start, end));
    }

    fn queue(&mut self, _: &str) {}
}

/// A jobspec of resources in flow style.
pub(crate) fn spec(resources: &str, duration: u32) -> Jobspec {
    let text = format!(
        "version: 9999\nresources: {resources}\ntasks: []\nattributes: {{system: {{duration: {duration}}}}}\n"
    );
    Jobspec::parse(&text, &|_| true).unwrap()
}

pub(crate) fn run(
    engine: &mut Engine,
    operation: Operation,
    resources: &str,
    duration: u32,
    job: JobId,
) -> (Result<Found, Failure>, Lines) {
    let mut lines = Lines::default();
    let found = engine.match_job(operation, &spec(resources, duration), job, 0, &mut lines);
    (found, lines)
}

/// Marks a path as down.
pub(crate) fn down(engine: &mut Engine, path: &str) {
    assert_eq!(engine.set_status(path, Status::Down), 1, "{path}");
}
