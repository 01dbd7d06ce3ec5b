//! What the matcher is to do fast: single matches and how they grow with the graph, many slots, reservations
//! behind a full graph, a mixed queue, cancel, and loading.
//!
//! Sizes are such that all of it takes a few minutes. The figures of record are made with the program, on
//! larger graphs; these are to see a change of them coming.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use fluxion::formats::{jgf, rv1};
use fluxion::graph::{EdgeId, Graph};
use fluxion::jobspec::{Jobspec, yaml};
use fluxion::matcher::sink::{Sink, VertexEvent};
use fluxion::matcher::{Engine, JobId, Operation, Options, Policy, Quirks};

/// Nothing is written down.
struct Nowhere;

impl Sink for Nowhere {
    fn vertex(&mut self, _: &Graph, _: &VertexEvent<'_>) {}
    fn edge(&mut self, _: &Graph, _: EdgeId, _: bool) {}
    fn times(&mut self, _: i64, _: i64) {}
    fn queue(&mut self, _: &str) {}
}

/// An R of so many nodes with 64 cores and 8 GPUs each.
fn ranks(nodes: usize) -> String {
    let last = nodes - 1;
    format!(
        r#"{{"version": 1, "execution": {{"R_lite": [{{"rank": "0-{last}",
        "children": {{"core": "0-63", "gpu": "0-7"}}}}], "starttime": 0.0, "expiration": 0.0,
        "nodelist": ["node[0-{last}]"]}}}}"#
    )
}

fn graph(nodes: usize) -> Graph {
    let mut graph = Graph::new();
    rv1::load(&mut graph, &rv1::parse(ranks(nodes).as_bytes(), 64_000_000).unwrap()).unwrap();
    graph
}

/// A JGF document of racks of 20 nodes with 64 cores, 8 GPUs and 16 pools of memory each.
fn document(nodes: usize) -> String {
    let mut vertices = Vec::new();
    let mut edges = Vec::new();
    let mut add = |kind: &str, id: usize, rank: i64, size: u64, above: Option<(usize, &str)>| {
        let own = vertices.len();
        let path = format!("{}/{kind}{id}", above.map_or("", |(_, path)| path));
        vertices.push(format!(
            r#"{{"id": "{own}", "metadata": {{"type": "{kind}", "basename": "{kind}", "name": "{kind}{id}",
            "id": {id}, "uniq_id": {own}, "rank": {rank}, "exclusive": false, "unit": "", "size": {size},
            "paths": {{"containment": "{path}"}}}}}}"#
        ));
        if let Some((source, _)) = above {
            edges.push(format!(
                r#"{{"source": "{source}", "target": "{own}", "metadata": {{"subsystem": "containment"}}}}"#
            ));
        }
        (own, path)
    };
    let (root, top) = add("cluster", 0, -1, 1, None);
    let mut rack = (root, top.clone());
    for node in 0..nodes {
        if node % 20 == 0 {
            rack = add("rack", node / 20, -1, 1, Some((root, &top)));
        }
        let rank = i64::try_from(node).unwrap();
        let (own, path) = add("node", node, rank, 1, Some((rack.0, &rack.1)));
        for (kind, count, size) in [("core", 64, 1), ("gpu", 8, 1), ("memory", 16, 32)] {
            for id in 0..count {
                add(kind, id, rank, size, Some((own, &path)));
            }
        }
    }
    format!(r#"{{"graph": {{"nodes": [{}], "edges": [{}]}}}}"#, vertices.join(",\n"), edges.join(",\n"))
}

fn engine(graph: &Graph, policy: &str, gnu_ties: bool) -> Engine {
    let options = Options {
        policy: Policy::parse(policy).unwrap(),
        subsystems: vec!["containment".to_owned()],
        flexible: false,
        filters: "ALL:core".to_owned(),
        quirks: Quirks { introsort_ties: gnu_ties, ..Quirks::flux_sched() },
    };
    Engine::new(graph.clone(), &options).unwrap()
}

fn spec(resources: &str, duration: u64) -> Jobspec {
    let mut text = String::new();
    writeln!(text, "version: 9999\nresources: {resources}\ntasks: []").unwrap();
    writeln!(text, "attributes: {{system: {{duration: {duration}}}}}").unwrap();
    Jobspec::parse(&text, &|_| true).unwrap()
}

fn slots(count: u64, with: &str) -> String {
    format!("[{{type: slot, count: {count}, label: default, with: [{with}]}}]")
}

fn nodes(count: u64, cores: u64) -> String {
    let slot = slots(1, &format!("{{type: core, count: {cores}}}"));
    format!("[{{type: node, count: {count}, with: {slot}}}]")
}

/// Matches and cancels again, so that every match meets the same graph.
fn match_and_cancel(engine: &mut Engine, spec: &Jobspec, job: &mut JobId) {
    *job += 1;
    engine.match_job(Operation::Allocate, spec, *job, 0, &mut Nowhere).unwrap();
    engine.cancel(*job).unwrap();
}

fn growth(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("growth");
    for count in [1_000, 10_000] {
        let graph = graph(count);
        for policy in ["first", "low", "lonode"] {
            let mut engine = engine(&graph, policy, false);
            let mut job = 0;
            for (name, resources) in [
                ("one node", nodes(1, 64)),
                ("16 nodes", nodes(16, 4)),
                ("one core", slots(1, "{type: core, count: 1}")),
                ("64 cores", slots(64, "{type: core, count: 1}")),
            ] {
                let spec = spec(&resources, 3600);
                group.bench_function(BenchmarkId::new(format!("{policy}, {name}"), count), |bencher| {
                    bencher.iter(|| match_and_cancel(&mut engine, &spec, &mut job));
                });
            }
        }
    }
    group.finish();
}

fn ties(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("equals in the order of GNU's sort");
    let graph = graph(1_000);
    for policy in ["low", "high"] {
        let mut engine = engine(&graph, policy, true);
        let mut job = 0;
        for count in [1, 64] {
            let spec = spec(&slots(count, "{type: core, count: 1}"), 3600);
            group.bench_function(BenchmarkId::new(policy, count), |bencher| {
                bencher.iter(|| match_and_cancel(&mut engine, &spec, &mut job));
            });
        }
    }
    group.finish();
}

fn reservations(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("100 reservations behind a full graph");
    let graph = graph(200);
    let spec = spec(&nodes(1, 64), 3600);
    for policy in ["first", "firstnodex", "low", "lonode"] {
        let mut full = engine(&graph, policy, true);
        for job in 1..=200 {
            full.match_job(Operation::Allocate, &spec, job, 0, &mut Nowhere).unwrap();
        }
        group.bench_function(policy, |bencher| {
            let reserve = |engine: &mut Engine| {
                for job in 201..=300 {
                    engine.match_job(Operation::AllocateOrElseReserve, &spec, job, 0, &mut Nowhere).unwrap();
                }
            };
            bencher.iter_batched_ref(|| full.clone(), reserve, BatchSize::LargeInput);
        });
    }
    group.finish();
}

/// Jobs of 1 to 64 nodes and a minute to a day, neither of them evenly.
fn queue(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("mixed queue of 200 jobs");
    let graph = graph(1_000);
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let jobs: Vec<Jobspec> = (0..200)
        .map(|_| {
            let count = 1 << random(7);
            spec(&nodes(count, 64), 60 << random(11))
        })
        .collect();
    for policy in ["first", "low"] {
        let empty = engine(&graph, policy, true);
        group.bench_function(policy, |bencher| {
            let submit = |engine: &mut Engine| {
                for (job, spec) in (1..).zip(&jobs) {
                    engine.match_job(Operation::AllocateOrElseReserve, spec, job, 0, &mut Nowhere).unwrap();
                }
            };
            bencher.iter_batched_ref(|| empty.clone(), submit, BatchSize::LargeInput);
        });
    }
    group.finish();
}

fn cancel(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cancel 100 jobs");
    let graph = graph(1_000);
    for (name, resources) in [("one core", slots(1, "{type: core, count: 1}")), ("one node", nodes(1, 64))] {
        let spec = spec(&resources, 3600);
        let mut engine = engine(&graph, "low", true);
        for job in 1..=100 {
            engine.match_job(Operation::Allocate, &spec, job, 0, &mut Nowhere).unwrap();
        }
        group.bench_function(name, |bencher| {
            let all = |engine: &mut Engine| (1..=100).for_each(|job| engine.cancel(job).unwrap());
            bencher.iter_batched_ref(|| engine.clone(), all, BatchSize::LargeInput);
        });
    }
    group.finish();
}

fn load(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("load");
    let text = document(200);
    group.bench_function("JGF of 17,811 vertices", |bencher| {
        bencher.iter(|| {
            let mut graph = Graph::new();
            jgf::load(&mut graph, text.as_bytes()).unwrap();
            graph
        });
    });
    group.bench_function("RV1 of 73,001 vertices", |bencher| bencher.iter(|| graph(1_000)));
    group.bench_function("engine over 73,001 vertices", |bencher| {
        let graph = graph(1_000);
        bencher.iter(|| engine(&graph, "low", true));
    });
    group.finish();
}

/// What reading a jobspec without the parser of all YAML is worth.
fn jobspec(criterion: &mut Criterion) {
    let text = "version: 9999\nresources:\n  - type: node\n    count: 2\n    with:\n      - type: slot\n        count: 1\n        \
                label: task\n        with:\n          - type: core\n            count: 4\n          - type: gpu\n            \
                count: 1\nattributes:\n  system:\n    duration: 3600\ntasks:\n  - command: [app]\n    slot: task\n    \
                count:\n      per_slot: 1\n";
    let mut group = criterion.benchmark_group("jobspec");
    group.bench_function("plain", |bencher| bencher.iter(|| yaml::parse(black_box(text)).unwrap()));
    group.bench_function("all YAML", |bencher| bencher.iter(|| yaml::parse_fully(black_box(text)).unwrap()));
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = growth, ties, reservations, queue, cancel, load, jobspec
}
criterion_main!(benches);
