//! The same gangs as the inspector's matcher places them and as this program does, given the cluster as JGF and
//! the gangs as jobspecs: the same nodes, quantities and times. And damaged ones, which must not hurt.

#![allow(clippy::unwrap_used, reason = "a test that can't set up its files has failed")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fluxion_scheduler::constraint::{HostPort, NodeConstraint, Protocol};
use fluxion_scheduler::inventory::{Allocation, AllocationKind, Inventory, NodeSpec};
use fluxion_scheduler::placement::{NodePolicy, earliest};
use fluxion_scheduler::request::Placement;
use fluxion_scheduler::request::{Request, Shape};
use fluxion_scheduler::resources::ResourceList;
use proptest::prelude::*;
use resource_query::{Streams, run};

/// The moment at which the cluster is written down; the program's clock begins there.
const NOW: i64 = 1_767_225_600;

/// What one job gets: from when on, and how much of each pool by node and resource.
type Answer = Option<(i64, BTreeMap<(String, String), u64>)>;

fn list(pairs: &[(&str, u64)]) -> ResourceList {
    pairs.iter().map(|(name, quantity)| (Arc::from(*name), *quantity)).collect()
}

fn cluster() -> impl Strategy<Value = Inventory> {
    let held = prop::option::of((1..5_u64, prop::option::of(1..200_i64)));
    prop::collection::vec((2..9_u64, 1..9_u64, 0..3_u8, held), 1..8).prop_map(|nodes| {
        let mut inventory = Inventory::new();
        inventory.set_levels(["zone".into()]);
        for (at, (cpu, memory, zone, held)) in nodes.into_iter().enumerate() {
            let name: Arc<str> = format!("n{at}").into();
            let allocatable = list(&[("cpu", cpu * 1000), ("memory", memory << 30), ("pods", 110)]);
            inventory.set_node(NodeSpec {
                name: name.clone(),
                labels: BTreeMap::from([("zone".into(), format!("z{zone}").into())]),
                ready: true,
                capacity: allocatable.clone(),
                allocatable,
                ..NodeSpec::default()
            });
            let Some((cpu, length)) = held else { continue };
            let hold = Allocation {
                needs: Arc::new(list(&[("cpu", cpu * 500), ("pods", 1)])),
                ports: Arc::new([]),
                from: NOW,
                until: length.map(|length| NOW + length),
                end_assumed: false,
                kind: AllocationKind::Foreign,
                permanent: false,
                job: None,
                peer: None,
            };
            inventory.hold(format!("held{at}").into(), &name, hold);
        }
        inventory
    })
}

fn request() -> impl Strategy<Value = Request> {
    let shape =
        (1..4_u32, 1..5_u64, 0..3_u64, 0..4_u8, 0..4_u8).prop_map(|(count, cpu, memory, zone, port)| {
            let selector =
                if zone == 0 { BTreeMap::from([("zone".into(), "z1".into())]) } else { BTreeMap::new() };
            let ports = if port == 0 {
                vec![HostPort { protocol: Protocol::Tcp, ip: "".into(), port: 80 }]
            } else {
                vec![]
            };
            Shape {
                count,
                needs: Arc::new(list(&[("cpu", cpu * 500), ("memory", memory << 30), ("pods", 1)])),
                constraint: Arc::new(NodeConstraint { selector, ..NodeConstraint::default() }),
                ports: ports.into(),
                peer: None,
                preferences: None,
            }
        });
    let level = prop::option::weighted(0.3, Just(Arc::from("zone")));
    let duration = prop::option::weighted(0.8, 1..100_i64);
    (prop::collection::vec(shape, 1..3), prop::option::weighted(0.3, 1..4_u64), level, duration).prop_map(
        |(shapes, minimum, level, duration)| {
            let request = Request { shapes, level, duration, ..Request::default() };
            let minimum = minimum.and_then(|minimum| u32::try_from(minimum.min(request.slots())).ok());
            Request { minimum, ..request }
        },
    )
}

/// Places the gang as the inspector would, and holds or promises it.
fn place(inventory: &mut Inventory, request: &Request, job: u32) -> Answer {
    let planned = earliest(inventory, request, NOW, NodePolicy::Low).ok()?;
    let taken = taken(request, &planned.placement);
    if planned.start > NOW {
        inventory.reserve(job, request, planned.placement, planned.start, planned.end);
        return Some((planned.start - NOW, taken));
    }
    for slot in &planned.placement.slots {
        let shape = &request.shapes[slot.shape as usize];
        let hold = Allocation {
            needs: Arc::new(shape.needs.checked_mul(slot.count.into()).unwrap()),
            ports: shape.ports.clone(),
            from: NOW,
            until: planned.end,
            end_assumed: false,
            kind: AllocationKind::Bound,
            permanent: false,
            job: Some(job),
            peer: None,
        };
        inventory.hold(format!("{job}/{}/{}", slot.node, slot.shape).into(), &slot.node, hold);
    }
    Some((0, taken))
}

fn taken(request: &Request, placement: &Placement) -> BTreeMap<(String, String), u64> {
    let mut all = BTreeMap::new();
    for slot in &placement.slots {
        let needs = request.shapes[slot.shape as usize].needs.iter();
        for (name, quantity) in needs.filter(|(_, quantity)| *quantity > 0) {
            *all.entry((slot.node.to_string(), name.to_string())).or_default() +=
                quantity * u64::from(slot.count);
        }
    }
    all
}

/// The answers of a session in format simple: pools come before their node.
fn read(text: &str) -> Vec<Answer> {
    let mut answers = Vec::new();
    let (mut pools, mut all) = (Vec::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some((name, rest)) = line.trim_start_matches([' ', '-']).split_once('[') {
            let (amount, mode) = rest.trim_end_matches(']').split_once(':').unwrap();
            if mode == "x" {
                pools.push((name.trim_end_matches('0').to_owned(), amount.parse().unwrap()));
            }
            for (pool, amount) in if name.starts_with('n') { std::mem::take(&mut pools) } else { vec![] } {
                all.insert((name.to_owned(), pool), amount);
            }
        } else if let Some(at) = line.strip_prefix("INFO: SCHEDULED AT=") {
            let at = if at == "Now" { 0 } else { at.parse().unwrap() };
            answers.push(Some((at, std::mem::take(&mut all))));
        } else if line == "INFO: No matching resources found" {
            answers.push(None);
        }
    }
    answers
}

/// Runs the program; answers its standard output, and fails where it takes too long.
fn session(graph: &Path, commands: &str) -> String {
    let arguments = ["--kubernetes", "-L", graph.to_str().unwrap(), "-f", "jgf", "-P", "low"];
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut stdin = commands.as_bytes();
    let streams = Streams { stdin: &mut stdin, stdout: &mut stdout, stderr: &mut stderr, terminal: false };
    let begun = Instant::now();
    run(arguments.iter().map(ToString::to_string).collect(), streams);
    assert!(begun.elapsed() < Duration::from_secs(2), "took {:?}", begun.elapsed());
    String::from_utf8(stdout).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_program_answers_as_the_inspector_does(
        inventory in cluster(),
        requests in prop::collection::vec(request(), 1..8),
    ) {
        let mut inventory = inventory;
        let folder = tempfile::tempdir().unwrap();
        let graph = folder.path().join("graph.json");
        std::fs::write(&graph, inventory.jgf(NOW).unwrap()).unwrap();
        let mut commands = String::new();
        let mut want = Vec::new();
        for (job, request) in (1..).zip(&requests) {
            let file = folder.path().join(format!("{job}.yaml"));
            std::fs::write(&file, request.to_jobspec(Some("batch"))).unwrap();
            writeln!(commands, "match allocate_orelse_reserve {}", file.display()).unwrap();
            want.push(place(&mut inventory, request, job));
        }
        prop_assert_eq!(read(&session(&graph, &commands)), want);
    }

    #[test]
    fn damaged_documents_end_soon(
        graph in damaged("graph.json"),
        gang in damaged("gang.yaml"),
        whole in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (graph_file, gang_file) = (folder.path().join("graph.json"), folder.path().join("gang.yaml"));
        let graph = if whole { std::fs::read(example("graph.json")).unwrap() } else { graph };
        std::fs::write(&graph_file, graph).unwrap();
        std::fs::write(&gang_file, gang).unwrap();
        let file = gang_file.display();
        let commands = format!(
            "match allocate {file}\nmatch allocate_orelse_reserve {file}\nmatch satisfiability {file}\nexplain {file}\ncancel 1\n"
        );
        session(&graph_file, &commands);
    }
}

fn example(name: &str) -> String {
    format!("../../examples/kubernetes/{name}")
}

/// A document in which pieces were put in place of others.
fn damaged(name: &'static str) -> impl Strategy<Value = Vec<u8>> {
    const PIECES: [&str; 12] = [
        "18446744073709551615",
        "-1",
        "0",
        "4294967295",
        "null",
        "{}",
        "[]",
        "\"\"",
        "node",
        "gang",
        "{\\\"from\\\":9,\\\"needs\\\":{\\\"cpu\\\":18446744073709551615}}",
        "{\\\"until\\\":-9,\\\"permanent\\\":true}",
    ];
    let edit = (any::<prop::sample::Index>(), 0..12_usize, prop::sample::select(PIECES.to_vec()));
    prop::collection::vec(edit, 1..5).prop_map(move |edits| {
        let mut document = std::fs::read(example(name)).unwrap();
        for (at, length, piece) in edits {
            // At the beginning of a word or number, which is where values are.
            let begins: Vec<usize> = (1..document.len())
                .filter(|at| {
                    document[*at].is_ascii_alphanumeric() && !document[at - 1].is_ascii_alphanumeric()
                })
                .collect();
            let Some(at) = (!begins.is_empty()).then(|| begins[at.index(begins.len())]) else { continue };
            let end = (at + length).min(document.len());
            document.splice(at..end, piece.bytes());
        }
        document
    })
}
