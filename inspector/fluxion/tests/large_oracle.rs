//! The walk that skips what it knows against the one that visits everything, on graphs as large as one likes: the same
//! answers, letter for letter, the same counts of visits, the same books in the end.
//!
//! A test run takes nodes by the dozen; `FLUXION_NODES=100000 cargo test --release -p fluxion --test
//! large_oracle` takes so many (the exact walk needs minutes then).

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use fluxion::formats::rv1;
use fluxion::formats::writer::{Format, Writer};
use fluxion::graph::Graph;
use fluxion::jobspec::Jobspec;
use fluxion::matcher::sink::Emit;
use fluxion::matcher::{Engine, JobId, Operation, Options, Policy, Quirks};

const POLICIES: [&str; 8] = ["first", "firstnodex", "low", "high", "lonode", "hinode", "lonodex", "hinodex"];

/// One core; a node's 64; one core of each of 16 nodes; 64 cores anywhere; 4 cores with a gpu.
const REQUESTS: [&str; 5] = [
    "[{type: slot, count: 1, label: s, with: [{type: core, count: 1}]}]",
    "[{type: node, count: 1, with: [{type: slot, count: 1, label: s, with: [{type: core, count: 64}]}]}]",
    "[{type: node, count: 16, with: [{type: slot, count: 1, label: s, with: [{type: core, count: 1}]}]}]",
    "[{type: slot, count: 64, label: s, with: [{type: core, count: 1}]}]",
    "[{type: slot, count: 1, label: s, with: [{type: core, count: 4}, {type: gpu, count: 1}]}]",
];

fn nodes() -> usize {
    std::env::var("FLUXION_NODES").ok().and_then(|text| text.parse().ok()).unwrap_or(48)
}

/// Nodes of 64 cores and 8 gpus.
fn graph(nodes: usize) -> Graph {
    let last = nodes - 1;
    let text = format!(
        r#"{{"version": 1, "execution": {{"R_lite": [{{"rank": "0-{last}", "children": {{"core": "0-63", "gpu": "0-7"}}}}], "starttime": 0, "expiration": 0, "nodelist": ["node[0-{last}]"]}}}}"#
    );
    let mut graph = Graph::new();
    rv1::load(&mut graph, &rv1::parse(text.as_bytes(), nodes * 80).unwrap()).unwrap();
    graph
}

fn spec(engine: &Engine, resources: &str) -> Jobspec {
    let text = format!(
        "{{version: 9999, resources: {resources}, attributes: {{system: {{duration: 3600}}}}, tasks: [{{command: [a], slot: s, count: {{per_slot: 1}}}}]}}"
    );
    Jobspec::parse(&text, &|name| engine.graph().find_type(name).is_some()).unwrap()
}

/// What a match says, and what it visited.
fn asked(engine: &mut Engine, operation: Operation, resources: &str, job: JobId) -> (String, (u64, u64)) {
    let spec = spec(engine, resources);
    let mut writer = Writer::new(Format::Rv1Nosched, engine.quirks());
    let found = engine.match_job(operation, &spec, job, 0, &mut writer);
    let mut text = format!("{found:?} ");
    let _ = writer.emit(engine.graph(), &mut text);
    (text, engine.visits())
}

#[test]
fn answers_are_those_of_the_exact_walk() {
    let rounds = 3;
    let graph = graph(nodes());
    for policy in POLICIES {
        for introsort_ties in [true, false] {
            let options = Options {
                policy: Policy::parse(policy).unwrap(),
                filters: "ALL:core".to_owned(),
                quirks: Quirks { introsort_ties, ..Quirks::flux_sched() },
                subsystems: vec!["containment".to_owned()],
                flexible: false,
            };
            let mut quick = Engine::new(graph.clone(), &options).unwrap();
            let mut exact = Engine::new(graph.clone(), &options).unwrap();
            exact.set_exact(true);
            let mut job = 0;
            for round in 0..rounds {
                for resources in REQUESTS {
                    for operation in [Operation::Allocate, Operation::AllocateOrElseReserve] {
                        job += 1;
                        let answer = asked(&mut quick, operation, resources, job);
                        let wanted = asked(&mut exact, operation, resources, job);
                        assert_eq!(answer, wanted, "{policy} {resources} round {round}");
                    }
                }
                // Every third job goes.
                for gone in (1..=job).rev().filter(|job| job % 3 == round % 3).take(4) {
                    assert_eq!(quick.cancel(gone).is_ok(), exact.cancel(gone).is_ok());
                }
            }
            assert_eq!(quick.check(), exact.check());
        }
    }
}
