//! Small graphs and documents in lines, and matchers over them.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fluxion::document::Document;
use fluxion::formats::{jgf, rv1};
use fluxion::graph::{EdgeId, Graph};
use fluxion::jobspec::Jobspec;
use fluxion::matcher::sink::{Sink, VertexEvent};
use fluxion::matcher::{Engine, Failure, Found, Operation, Options, Policy, Quirks};

/// JGF of lines of a path and marks: `rank=N`, `size=N`, `down`, `x` for exclusive. A path begins at its
/// root; `power:` before it names another subsystem, where it is the second path of the vertex named last.
pub(crate) fn document(lines: &str) -> String {
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    let mut keys: BTreeMap<String, usize> = BTreeMap::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let path = words.next().unwrap();
        let name = path.rsplit('/').next().unwrap();
        let kind = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let id: i64 = name[kind.len()..].parse().unwrap();
        let mut more = String::new();
        for mark in words {
            match mark.split_once('=') {
                Some((key, value)) => write!(more, ", \"{key}\": {value}").unwrap(),
                None if mark == "x" => more.push_str(", \"exclusive\": true"),
                None => more.push_str(", \"status\": 1"),
            }
        }
        let (subsystem, path) = path.split_once(':').unwrap_or(("containment", path));
        let key = nodes.len();
        nodes.push(format!(
            "{{\"id\": \"{key}\", \"metadata\": {{\"type\": \"{kind}\", \"id\": {id}, \"paths\": {{\"{subsystem}\": \"{path}\"}}{more}}}}}"
        ));
        let (parent, _) = path.rsplit_once('/').unwrap();
        if let Some(parent) = keys.get(&format!("{subsystem}:{parent}")) {
            edges.push(format!(
                "{{\"source\": \"{parent}\", \"target\": \"{key}\", \"metadata\": {{\"subsystem\": \"{subsystem}\"}}}}"
            ));
        }
        keys.insert(format!("{subsystem}:{path}"), key);
    }
    format!("{{\"graph\": {{\"nodes\": [{}], \"edges\": [{}]}}}}", nodes.join(", "), edges.join(", "))
}

pub(crate) fn graph(lines: &str) -> Graph {
    let mut graph = Graph::new();
    jgf::load(&mut graph, document(lines).as_bytes()).unwrap();
    graph
}

/// Part of a graph, for update and partial cancel.
pub(crate) fn listed(lines: &str) -> Document {
    Document::Graph(jgf::parse(document(lines).as_bytes(), false).unwrap())
}

/// A rank, for partial cancel.
pub(crate) fn rank(rank: u32) -> Document {
    let text = format!(
        "{{\"version\": 1, \"execution\": {{\"R_lite\": [{{\"rank\": \"{rank}\", \"children\": {{\"core\": \"0\"}}}}], \"nodelist\": [\"node{rank}\"]}}}}"
    );
    Document::Ranks(rv1::parse(text.as_bytes(), 100).unwrap())
}

pub(crate) fn engine_of(lines: &str, subsystems: &[&str], quirks: Quirks) -> Engine {
    engine_by("low", lines, subsystems, quirks)
}

pub(crate) fn engine_by(policy: &str, lines: &str, subsystems: &[&str], quirks: Quirks) -> Engine {
    let options = Options {
        policy: Policy::parse(policy).unwrap(),
        subsystems: subsystems.iter().map(ToString::to_string).collect(),
        flexible: false,
        filters: String::new(),
        quirks,
    };
    Engine::new(graph(lines), &options).unwrap()
}

pub(crate) fn engine(lines: &str, quirks: Quirks) -> Engine {
    engine_of(lines, &["containment"], quirks)
}

/// Names of what is written, and the labels among them.
#[derive(Debug, Default)]
pub(crate) struct Names(pub(crate) Vec<String>);

impl Sink for Names {
    fn vertex(&mut self, graph: &Graph, event: &VertexEvent<'_>) {
        let name = graph.text(graph.vertex(event.vertex).name);
        let label = event.label.map_or(String::new(), |label| format!(" ({label})"));
        self.0.push(format!("{name}{label}"));
    }

    fn edge(&mut self, _: &Graph, _: EdgeId, _: bool) {}

    fn times(&mut self, _: i64, _: i64) {}

    fn queue(&mut self, _: &str) {}
}

/// Matches resources in flow style for 100 s; answers what was written, too.
pub(crate) fn ask(
    engine: &mut Engine,
    operation: Operation,
    resources: &str,
    job: u64,
) -> (Result<Found, Failure>, Vec<String>) {
    ask_for(engine, operation, resources, 100, job)
}

/// A jobspec of resources in flow style for some seconds.
pub(crate) fn jobspec(resources: &str, duration: u64) -> Jobspec {
    let text = format!(
        "version: 9999\nresources: {resources}\ntasks: []\nattributes: {{system: {{duration: {duration}}}}}\n"
    );
    Jobspec::parse(&text, &|_| true).unwrap()
}

/// The same for some seconds.
pub(crate) fn ask_for(
    engine: &mut Engine,
    operation: Operation,
    resources: &str,
    duration: u64,
    job: u64,
) -> (Result<Found, Failure>, Vec<String>) {
    let spec = jobspec(resources, duration);
    let mut names = Names::default();
    let found = engine.match_job(operation, &spec, job, 0, &mut names);
    (found, names.0)
}

pub(crate) fn allocate(engine: &mut Engine, resources: &str, job: u64) -> Result<(), Failure> {
    ask(engine, Operation::Allocate, resources, job).0.map(|_| ())
}

/// Nothing in the books contradicts anything else.
pub(crate) fn sound(engine: &Engine) {
    assert_eq!(engine.check(), Vec::<String>::new());
}
