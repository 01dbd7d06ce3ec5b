//! Gangs on a graph against the same gangs in the inventory that the graph was made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use fluxion::errno::Errno;
use fluxion::graph::{EdgeId, Graph, Subsystem, VertexId, VertexSpec};
use fluxion::jobspec::Jobspec;
use fluxion::matcher::sink::{Sink, VertexEvent};
use fluxion::matcher::{Engine, Failure, Found, Operation};

use super::support::{Lines, down, engine, machine, run};
use crate::constraint::{Taint, TaintEffect, Toleration, TolerationOperator};
use crate::extension::GangReader;
use crate::inventory::{Allocation, AllocationKind, Inventory};
use crate::placement::{NodePolicy, earliest, place_now, satisfiable};
use crate::request::Placement;
use crate::request::{Request, Shape};
use crate::testing::{node, shape, sound, tcp};

/// How much is taken of each pool, by its path.
#[derive(Debug, Default)]
struct Taken(BTreeMap<String, u64>);

impl Sink for Taken {
    fn vertex(&mut self, graph: &Graph, event: &VertexEvent<'_>) {
        if event.exclusive {
            let path = graph.vertex(event.vertex).paths[0].1;
            self.0.insert(graph.path_text(path), event.needs);
        }
    }

    fn edge(&mut self, _: &Graph, _: EdgeId, _: bool) {}

    fn times(&mut self, _: i64, _: i64) {}

    fn queue(&mut self, _: &str) {}
}

/// As a job would ask: in words.
fn ask(
    engine: &mut Engine,
    operation: Operation,
    request: &Request,
    job: u64,
) -> (Result<Found, Failure>, Taken) {
    let spec = Jobspec::parse_with(&request.to_jobspec(None), &|_| false, &GangReader).unwrap();
    let mut taken = Taken::default();
    let found = engine.match_job(operation, &spec, job, 0, &mut taken);
    (found, taken)
}

/// What a placement takes of each pool.
fn pools(request: &Request, placement: &Placement) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for slot in &placement.slots {
        let shape = &request.shapes[slot.shape as usize];
        for (name, quantity) in shape.needs.iter().filter(|(_, quantity)| *quantity > 0) {
            *all.entry(format!("/cluster0/{}/{name}0", slot.node)).or_default() +=
                quantity * u64::from(slot.count);
        }
    }
    all
}

/// Holds a placement as the inspector does, one holder a node and shape.
fn hold(inventory: &mut Inventory, request: &Request, placement: &Placement, job: u64) {
    for slot in &placement.slots {
        let shape = &request.shapes[slot.shape as usize];
        let share = Allocation {
            needs: Arc::new(shape.needs.checked_mul(slot.count.into()).unwrap()),
            ports: shape.ports.clone(),
            from: 0,
            until: request.end(0),
            end_assumed: false,
            kind: AllocationKind::Bound,
            permanent: false,
            job: None,
            peer: None,
        };
        inventory.hold(format!("{job}/{}/{}", slot.node, slot.shape).into(), &slot.node, share);
    }
}

fn release(inventory: &mut Inventory, job: u64) {
    let held: Vec<Arc<str>> = inventory.holdings().map(|(holder, ..)| holder.clone()).collect();
    for holder in held.iter().filter(|holder| holder.starts_with(&format!("{job}/"))) {
        inventory.release(holder);
    }
    inventory.clear_reservation(u32::try_from(job).unwrap());
}

#[derive(Clone, Debug)]
enum Step {
    Match(bool, Request),
    Satisfiability(Request),
    Cancel(u64),
}

fn cluster() -> impl Strategy<Value = Inventory> {
    let one = (1..7_u64, 0..5_u64, 0..3_u8, any::<bool>(), prop::option::weighted(0.3, 0..5_u8));
    prop::collection::vec(one, 1..6).prop_map(|nodes| {
        let mut inventory = Inventory::new();
        inventory.set_levels(["rack".into()]);
        for (at, (cpu, memory, rack, gold, state)) in nodes.into_iter().enumerate() {
            let pool = if gold { "pool:gold" } else { "" };
            let rack = if rack == 0 { String::new() } else { format!("rack:r{rack}") };
            let mut spec = node(&format!("n{at}"), &format!("cpu={cpu} memory={memory} {rack} {pool}"));
            let taint = |key: &str, effect| Taint { key: key.into(), value: "yes".into(), effect };
            match state {
                Some(0) => spec.taints.push(taint("mine", TaintEffect::NoSchedule)),
                Some(1) => {
                    spec.taints.push(taint("node.kubernetes.io/disk-pressure", TaintEffect::NoExecute));
                }
                Some(2) => spec.unschedulable = true,
                Some(3) => spec.ready = false,
                Some(4) => spec.capacity.set("cpu", cpu * 2000),
                _ => {}
            }
            inventory.set_node(spec);
        }
        inventory
    })
}

fn request() -> impl Strategy<Value = Request> {
    let one = (1..4_u32, 0..4_u64, 0..3_u64, 0..5_u8, 0..6_u8, any::<bool>());
    let shapes = prop::collection::vec(one, 1..4).prop_map(|shapes| {
        let shapes = shapes.into_iter().map(|(count, cpu, memory, gold, port, tolerant)| {
            let mut one = shape(count, &format!("cpu={cpu} memory={memory}"));
            if gold == 0 {
                one = one.on("pool", "gold");
            }
            if tolerant {
                let all = Toleration {
                    key: None,
                    operator: TolerationOperator::Exists,
                    value: "".into(),
                    effect: None,
                };
                let mut constraint = (*one.constraint).clone();
                constraint.tolerations.push(all);
                one.constraint = Arc::new(constraint);
            }
            match port {
                0 => one.port(80),
                1 => Shape { ports: Arc::new([tcp("10.0.0.1", 80)]), ..one },
                _ => one,
            }
        });
        shapes.collect::<Vec<Shape>>()
    });
    let level = prop::option::weighted(0.3, Just(Arc::from("rack")));
    let minimum = prop::option::weighted(0.3, 1..4_u32);
    (shapes, minimum, level, prop::option::weighted(0.8, 1_i64..9)).prop_map(
        |(shapes, minimum, level, duration)| {
            let request = Request { shapes, minimum, level, domain: None, duration };
            Request { minimum: minimum.filter(|minimum| u64::from(*minimum) <= request.slots()), ..request }
        },
    )
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (any::<bool>(), request()).prop_map(|(ahead, request)| Step::Match(ahead, request)),
        1 => request().prop_map(Step::Satisfiability),
        1 => (1..12_u64).prop_map(Step::Cancel),
    ];
    prop::collection::vec(step, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn graph_and_inventory_give_the_same_nodes_and_times(
        inventory in cluster(),
        steps in steps(),
        high in any::<bool>(),
    ) {
        let mut inventory = inventory;
        let (name, policy) = if high { ("high", NodePolicy::High) } else { ("low", NodePolicy::Low) };
        let mut engine = engine(inventory.graph(None).unwrap(), name);
        let mut next = 1;
        for step in steps {
            match step {
                Step::Match(ahead, request) => {
                    let job = next;
                    next += 1;
                    let want = if ahead {
                        earliest(&inventory, &request, 0, policy).ok().map(|p| (p.start, p.placement))
                    } else {
                        place_now(&inventory, &request, 0, policy).ok().map(|placement| (0, placement))
                    };
                    let operation =
                        if ahead { Operation::AllocateOrElseReserve } else { Operation::Allocate };
                    let (found, taken) = ask(&mut engine, operation, &request, job);
                    if let Some((start, placement)) = &want {
                        prop_assert_eq!(found.map(|found| found.at), Ok(*start));
                        prop_assert_eq!(&taken.0, &pools(&request, placement));
                        if *start == 0 {
                            hold(&mut inventory, &request, placement, job);
                        } else {
                            let number = u32::try_from(job).unwrap();
                            let end = request.end(*start);
                            inventory.reserve(number, &request, placement.clone(), *start, end);
                        }
                    } else {
                        let busy = !ahead || satisfiable(&inventory, &request);
                        let errno = if busy { Errno::Ebusy } else { Errno::Enodev };
                        prop_assert_eq!(found.map_err(|failure| failure.errno), Err(errno));
                    }
                }
                Step::Satisfiability(request) => {
                    let (found, _) = ask(&mut engine, Operation::Satisfiability, &request, 0);
                    prop_assert_eq!(found.is_ok(), satisfiable(&inventory, &request));
                }
                Step::Cancel(job) => {
                    let known = inventory.reservation(u32::try_from(job).unwrap()).is_some()
                        || inventory.holdings().any(|(holder, ..)| holder.starts_with(&format!("{job}/")));
                    prop_assert_eq!(engine.cancel(job).is_ok(), known);
                    release(&mut inventory, job);
                }
            }
            prop_assert_eq!(engine.check(), [""; 0]);
            sound(&inventory);
        }
        for job in 1..next {
            let _ = engine.cancel(job);
        }
        prop_assert!(engine.is_as_new());
    }
}

const ONE_CORE: &str = "[{type: slot, count: 1, label: a, within: node, with: [{type: core, count: 1}]}]";
const MEMORY: &str = "[{type: slot, count: 1, label: a, within: node, with: [{type: memory, count: 6}]}]";
const WHOLE_NODE: &str = "[{type: slot, count: 1, label: a, with: [{type: node, count: 1}]}]";
const CORES: &str =
    "[{type: node, count: 1, with: [{type: slot, count: 4, label: a, with: [{type: core, count: 1}]}]}]";

fn errno(found: &Result<Found, Failure>) -> Option<Errno> {
    found.as_ref().err().map(|failure| failure.errno)
}

/// One node with four cores and two memories of 4.
fn one_node() -> Engine {
    engine(machine(1, 1, 4, 2), "low")
}

#[test]
fn who_holds_a_node_whole_holds_what_is_in_it() {
    let mut engine = one_node();
    run(&mut engine, Operation::Allocate, WHOLE_NODE, 10, 1).0.unwrap();
    let (found, _) = run(&mut engine, Operation::Allocate, ONE_CORE, 10, 2);
    assert_eq!(errno(&found), Some(Errno::Ebusy));
    let (found, _) = run(&mut engine, Operation::AllocateOrElseReserve, ONE_CORE, 10, 2);
    assert_eq!(found.unwrap().at, 10);
    let (found, _) = run(&mut engine, Operation::AllocateOrElseReserve, WHOLE_NODE, 1, 3);
    assert_eq!(found.unwrap().at, 20, "nobody gets a node whole while a gang has part of it");
    assert_eq!(engine.check(), [""; 0]);
}

#[test]
fn a_quantity_is_cut_out_of_several_pieces() {
    let mut engine = one_node();
    let (found, lines) = run(&mut engine, Operation::Allocate, MEMORY, 10, 1);
    assert_eq!(found, Ok(Found { at: 0, duration: 10 }));
    assert_eq!(lines.written, ["memory0[4:x]", "memory1[2:x]", "node0[1:s]", "rack0[1:s]", "cluster0[1:s]"]);
    assert_eq!((lines.edges, lines.times), (4, Some((0, 10))));
    let (found, _) = run(&mut engine, Operation::Allocate, &MEMORY.replace('6', "3"), 10, 2);
    assert_eq!(errno(&found), Some(Errno::Ebusy));
    let (_, lines) = run(&mut engine, Operation::Allocate, &MEMORY.replace('6', "2"), 10, 2);
    assert_eq!(lines.written[0], "memory1[2:x]");
    let (found, _) = run(&mut engine, Operation::Satisfiability, &MEMORY.replace('6', "9"), 10, 0);
    assert_eq!(errno(&found), Some(Errno::Enodev));
    assert_eq!(engine.check(), [""; 0]);
}

#[test]
fn pieces_must_be_free_all_the_time() {
    let mut engine = engine(machine(1, 1, 2, 0), "low");
    run(&mut engine, Operation::Allocate, ONE_CORE, 10, 1).0.unwrap();
    run(&mut engine, Operation::Allocate, ONE_CORE, 10, 2).0.unwrap();
    assert_eq!(
        run(&mut engine, Operation::AllocateOrElseReserve, ONE_CORE, 10, 3).1.written[0],
        "core0[1:x]"
    );
    engine.cancel(1).unwrap();
    // One core is held from 10 to 20, the other one until 10: there is always one, but not always the same.
    let (found, _) = run(&mut engine, Operation::Allocate, ONE_CORE, 15, 4);
    assert_eq!(errno(&found), Some(Errno::Ebusy));
    let (found, lines) = run(&mut engine, Operation::AllocateOrElseReserve, ONE_CORE, 15, 4);
    assert_eq!((found.unwrap().at, lines.written[0].as_str()), (10, "core1[1:x]"));
    let (found, _) = run(&mut engine, Operation::Allocate, ONE_CORE, 10, 5);
    assert_eq!(found.unwrap().at, 0);
    assert_eq!(engine.check(), [""; 0]);
}

#[test]
fn racks_are_levels_and_what_is_down_is_left_out() {
    let mut engine = engine(machine(2, 2, 4, 0), "low");
    let pair = "[{type: gang, count: 1, level: rack, with: [
        {type: slot, count: 2, label: a, within: node, with: [{type: core, count: 3}]}]}]";
    down(&mut engine, "/cluster0/rack0/node1");
    let nodes =
        |lines: &Lines| lines.written.iter().filter(|line| line.starts_with("node")).cloned().collect();
    let (_, lines) = run(&mut engine, Operation::Allocate, pair, 10, 1);
    let both: Vec<String> = nodes(&lines);
    assert_eq!(both, ["node2[1:s]", "node3[1:s]"]);
    let (found, _) = run(&mut engine, Operation::Allocate, pair, 10, 2);
    assert_eq!(errno(&found), Some(Errno::Ebusy));
    assert_eq!(run(&mut engine, Operation::Allocate, CORES, 10, 2).1.written.len(), 7);
    let (found, _) = run(&mut engine, Operation::AllocateOrElseReserve, &pair.replace('3', "5"), 10, 3);
    assert_eq!(errno(&found), Some(Errno::Enodev));
    for (index, resources) in
        ["[{type: slot, count: 1, label: a, within: node, with: []}]", ONE_CORE].iter().enumerate()
    {
        let resources = if index == 1 { resources.replace("core", "rack") } else { (*resources).to_owned() };
        let (found, _) = run(&mut engine, Operation::Allocate, &resources, 10, 9);
        assert_eq!(errno(&found), Some(Errno::Einval), "{resources}");
    }
    assert_eq!(engine.check(), [""; 0]);
}

/// Who holds something: node, cpu, memory, planned end, whether for ever, whether with port 80.
type Share = (usize, u64, u64, Option<i64>, bool, bool);

fn shares() -> impl Strategy<Value = Vec<Share>> {
    let until = prop::option::weighted(0.7, -3_i64..9);
    prop::collection::vec((0..6_usize, 0..4_u64, 0..3_u64, until, any::<bool>(), any::<bool>()), 0..8)
}

/// The inventory written down and read by whoever reads graphs.
fn read_back(inventory: &Inventory, now: i64) -> Engine {
    let text = inventory.jgf(now).unwrap();
    let mut graph = Graph::new();
    fluxion::formats::jgf::load(&mut graph, text.as_bytes()).unwrap();
    engine(graph, "low")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cluster_that_was_written_down_takes_the_same_jobs(
        inventory in cluster(),
        shares in shares(),
        waiting in prop::collection::vec(request(), 0..3),
        request in request(),
        now in prop::sample::select(vec![0, 1_700_000_000_i64]),
    ) {
        let mut inventory = inventory;
        let nodes: Vec<Arc<str>> = inventory.node_names().collect();
        for (at, (on, cpu, memory, until, permanent, ported)) in shares.into_iter().enumerate() {
            let ports = if ported { vec![tcp("", 80)] } else { vec![] };
            let until = until.map(|until| now + until);
            let permanent = permanent && until.is_none();
            let needs = crate::testing::pod(&format!("cpu={cpu} memory={memory}"));
            let share =
                Allocation { needs, ports: ports.into(), from: now, until, end_assumed: false, kind: AllocationKind::Foreign, permanent, job: None, peer: None };
            inventory.hold(format!("h{at}").into(), &nodes[on % nodes.len()], share);
        }
        for (job, request) in (0..).zip(&waiting) {
            if let Ok(planned) = earliest(&inventory, request, now, NodePolicy::Low)
                && planned.start > now
            {
                inventory.reserve(job, request, planned.placement, planned.start, planned.end);
            }
        }
        let mut engine = read_back(&inventory, now);
        prop_assert_eq!(engine.check(), [""; 0]);
        let placed = place_now(&inventory, &request, now, NodePolicy::Low).ok();
        let (found, taken) = ask(&mut engine, Operation::WithoutAllocating, &request, 1);
        prop_assert_eq!(found.is_ok(), placed.is_some());
        prop_assert_eq!(taken.0, placed.map(|placement| pools(&request, &placement)).unwrap_or_default());
        let planned = earliest(&inventory, &request, now, NodePolicy::Low).ok();
        let (found, taken) = ask(&mut engine, Operation::WithoutAllocatingFuture, &request, 1);
        prop_assert_eq!(found.ok().map(|found| found.at), planned.as_ref().map(|planned| planned.start - now));
        prop_assert_eq!(taken.0, planned.map(|planned| pools(&request, &planned.placement)).unwrap_or_default());
        // What never leaves and is more than there is can't be booked whole.
        if inventory.nodes().all(|node| node.deficit.is_empty()) {
            let (found, _) = ask(&mut engine, Operation::Satisfiability, &request, 1);
            prop_assert_eq!(found.is_ok(), satisfiable(&inventory, &request));
        }
    }
}

#[test]
fn a_node_belongs_to_all_that_is_above_it() {
    let text = include_str!("../../../../../examples/flex/graph.json");
    let mut graph = Graph::new();
    fluxion::formats::jgf::load(&mut graph, text.as_bytes()).unwrap();
    let mut engine = engine(graph, "low");
    let pair = |count: u32, level: &str| {
        format!(
            "[{{type: gang, count: 1, level: {level}, with: [
                {{type: slot, count: {count}, label: a, within: node, with: [{{type: core, count: 3}}]}}]}}]"
        )
    };
    let nodes = |lines: &Lines| -> Vec<String> {
        lines.written.iter().filter(|line| line.starts_with("node")).cloned().collect()
    };
    run(&mut engine, Operation::Allocate, &pair(1, "container"), 100, 1).0.unwrap();
    // Of container0 only node1 is left, and of container1 all.
    let (_, lines) = run(&mut engine, Operation::Allocate, &pair(2, "container"), 10, 2);
    assert_eq!(nodes(&lines), ["node1[1:s]", "node2[1:s]"]);
    let (found, lines) = run(&mut engine, Operation::AllocateOrElseReserve, &pair(2, "container"), 10, 3);
    assert_eq!(
        (found.unwrap().at, nodes(&lines)),
        (10, vec!["node1[1:s]".to_owned(), "node2[1:s]".to_owned()])
    );
    let (found, _) = run(&mut engine, Operation::Satisfiability, &pair(3, "container"), 10, 0);
    assert_eq!(errno(&found), Some(Errno::Enodev));
    for job in 1..4 {
        engine.cancel(job).unwrap();
    }
    assert!(engine.is_as_new());
}

#[test]
fn more_parents_than_an_index_can_hold_are_refused() {
    let mut graph = Graph::new();
    let mut put = |type_name: &'static str, name: &str, parents: &[VertexId]| {
        let spec = VertexSpec { type_name, name, ..VertexSpec::default() };
        let id = graph.add_vertex(&spec).unwrap();
        for parent in parents {
            graph.add_edge(*parent, id, Subsystem::CONTAINMENT).unwrap();
        }
        id
    };
    let root = put("cluster", "cluster0", &[]);
    let racks: Vec<VertexId> = (0..500).map(|at| put("rack", &format!("rack{at}"), &[root])).collect();
    let hub = put("switch", "switch0", &racks);
    for at in 0..500 {
        let node = put("node", &format!("node{at}"), &[hub]);
        put("core", "core0", &[node]);
    }
    graph.set_root(Subsystem::CONTAINMENT, root).unwrap();
    let mut engine = engine(graph, "low");
    let (found, _) = run(&mut engine, Operation::Allocate, ONE_CORE, 10, 1);
    let failure = found.unwrap_err();
    assert_eq!(failure.errno, Errno::Einval);
    assert!(failure.message.contains("too many vertices above"), "{failure}");
}
