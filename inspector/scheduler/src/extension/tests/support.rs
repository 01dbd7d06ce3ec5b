//! Small machines, engines that match gangs on them, and a sink that writes short lines.

use fluxion::graph::{EdgeId, Graph, Status, Subsystem, VertexId, VertexSpec};
use fluxion::jobspec::Jobspec;
use fluxion::matcher::sink::{Sink, VertexEvent};
use fluxion::matcher::{Engine, Failure, Found, JobId, Operation, Options, Policy, Quirks};

use crate::extension::{GangReader, Shares, plug_in};

fn add(
    graph: &mut Graph,
    parent: Option<(VertexId, &str)>,
    kind: &str,
    id: i64,
    (rank, size): (i32, u64),
) -> (VertexId, String) {
    let name = format!("{kind}{id}");
    let path = format!("{}/{name}", parent.map_or("", |(_, path)| path));
    let paths = [(Subsystem::CONTAINMENT, path.as_str())];
    let spec = VertexSpec {
        type_name: kind,
        basename: kind,
        name: &name,
        id,
        rank,
        size,
        paths: &paths,
        ..VertexSpec::default()
    };
    let vertex = graph.add_vertex(&spec).unwrap();
    match parent {
        Some((parent, _)) => graph.add_edge(parent, vertex, Subsystem::CONTAINMENT).map(|_| ()).unwrap(),
        None => graph.set_root(Subsystem::CONTAINMENT, vertex).unwrap(),
    }
    (vertex, path)
}

/// Racks with nodes, each with cores and with memory pools of 4.
pub(super) fn machine(racks: i64, nodes: i64, cores: i64, memory: i64) -> Graph {
    let mut graph = Graph::new();
    let (root, top) = add(&mut graph, None, "cluster", 0, (-1, 1));
    for rack in 0..racks {
        let (rack_id, rack_path) = add(&mut graph, Some((root, &top)), "rack", rack, (-1, 1));
        for node in rack * nodes..(rack + 1) * nodes {
            let rank = i32::try_from(node).unwrap();
            let (node, path) = add(&mut graph, Some((rack_id, &rack_path)), "node", node, (rank, 1));
            for (kind, count, size) in [("core", cores, 1), ("memory", memory, 4)] {
                for id in 0..count {
                    add(&mut graph, Some((node, &path)), kind, id, (rank, size));
                }
            }
        }
    }
    graph
}

/// An engine that matches gangs.
pub(super) fn engine(mut graph: Graph, policy: &str) -> Engine {
    let shares = Shares::take(&mut graph);
    let options = Options {
        policy: Policy::parse(policy).unwrap(),
        subsystems: vec!["containment".to_owned()],
        flexible: false,
        filters: String::new(),
        quirks: Quirks::default(),
    };
    let mut engine = Engine::new(graph, &options).unwrap();
    plug_in(&mut engine, shares).unwrap();
    engine
}

/// Writes `name[needs:x]` per vertex.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub written: Vec<String>,
    pub edges: usize,
    pub times: Option<(i64, i64)>,
}

impl Sink for Lines {
    fn vertex(&mut self, graph: &Graph, event: &VertexEvent<'_>) {
        let name = graph.text(graph.vertex(event.vertex).name);
        let how = if event.exclusive { "x" } else { "s" };
        self.written.push(format!("{name}[{}:{how}]", event.needs));
    }

    fn edge(&mut self, _: &Graph, _: EdgeId, _: bool) {
        self.edges += 1;
    }

    fn times(&mut self, start: i64, end: i64) {
        self.times = Some((start, end));
    }

    fn queue(&mut self, _: &str) {}
}

/// Matches resources in flow style.
pub(super) fn run(
    engine: &mut Engine,
    operation: Operation,
    resources: &str,
    duration: u32,
    job: JobId,
) -> (Result<Found, Failure>, Lines) {
    let text = format!(
        "version: 9999\nresources: {resources}\ntasks: []\nattributes: {{system: {{duration: {duration}}}}}\n"
    );
    let spec = Jobspec::parse_with(&text, &|_| true, &GangReader).unwrap();
    let mut lines = Lines::default();
    let found = engine.match_job(operation, &spec, job, 0, &mut lines);
    (found, lines)
}

/// Marks a path as down.
pub(super) fn down(engine: &mut Engine, path: &str) {
    assert_eq!(engine.set_status(path, Status::Down), 1, "{path}");
}
