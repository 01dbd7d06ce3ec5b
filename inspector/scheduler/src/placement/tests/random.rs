//! Random tiny clusters against searches that try everything.

use crate::inventory::Inventory;
use crate::request::Placement;
use crate::request::Request;
use crate::request::Slot;
use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::super::*;
use crate::constraint::HostPort;
use crate::explain::why_not;
use crate::inventory::Allocation;
use crate::request::Shape;
use crate::testing::{gang, hold, line, node, shape, sound, tcp};

#[derive(Clone, Debug)]
struct Scene {
    inventory: Inventory,
    request: Request,
}

/// Node, cpu, memory, planned end, whether it has port 80.
type Share = (usize, u64, u64, Option<i64>, bool);
/// Count, cpu, memory, pool (0: gold only), port (0: on every address, 1: on one).
type Slots = (u32, u64, u64, u8, u8);

fn holds() -> impl Strategy<Value = Vec<Share>> {
    let one = (0..4_usize, 0..4_u64, 0..3_u64, prop::option::weighted(0.8, -3_i64..15), any::<bool>());
    prop::collection::vec(one, 0..7)
}

fn shapes() -> impl Strategy<Value = Vec<Slots>> {
    prop::collection::vec((1..4_u32, 0..5_u64, 0..4_u64, 0..4_u8, 0..4_u8), 1..4)
}

fn scene() -> impl Strategy<Value = Scene> {
    let nodes = prop::collection::vec((1..7_u64, 0..5_u64, 0..3_u8, any::<bool>()), 1..5);
    let reservations =
        prop::collection::vec((0..4_usize, 1..4_u64, 0_i64..12, prop::option::weighted(0.8, 1_i64..8)), 0..3);
    (
        nodes,
        holds(),
        reservations,
        (shapes(), prop::option::weighted(0.4, 1..8_u32)),
        prop::option::of(1_i64..9),
        prop::option::weighted(0.3, Just(())),
    )
        .prop_map(|(nodes, holds, reservations, (shapes, minimum), duration, level)| {
            let mut inventory = Inventory::new();
            for (at, (cpu, memory, rack, gold)) in nodes.iter().enumerate() {
                let pool = if *gold { "pool:gold" } else { "" };
                let rack = if *rack == 0 { String::new() } else { format!("rack:r{rack}") };
                inventory
                    .set_node(node(&format!("n{at}"), &format!("cpu={cpu} memory={memory} {rack} {pool}")));
                if *cpu % 3 == 0 {
                    inventory.join(&"rack".into(), &"r9".into(), &format!("n{at}"));
                }
            }
            for (at, (on, cpu, memory, until, ported)) in holds.iter().enumerate() {
                let ports = if *ported { vec![tcp("", 80)] } else { vec![] };
                let share =
                    Allocation { ports: ports.into(), ..hold(&format!("cpu={cpu} memory={memory}"), *until) };
                inventory.hold(format!("h{at}").into(), &format!("n{}", on % nodes.len()), share);
            }
            for (at, (on, cpu, start, length)) in reservations.iter().enumerate() {
                let slot = Slot { shape: 0, node: format!("n{}", on % nodes.len()).into(), count: 1 };
                let placement = Placement { slots: vec![slot], domain: None };
                let end = length.map(|length| start + length);
                let request = gang(1, &format!("cpu={cpu}"));
                inventory.reserve(u32::try_from(at).unwrap(), &request, placement, *start, end);
            }
            let shapes = shapes.iter().map(|(count, cpu, memory, gold, port)| {
                let mut one = shape(*count, &format!("cpu={cpu} memory={memory}"));
                if *gold == 0 {
                    one = one.on("pool", "gold");
                }
                match port {
                    0 => one.port(80),
                    1 => Shape { ports: Arc::new([tcp("10.0.0.1", 80)]), ..one },
                    _ => one,
                }
            });
            let level = level.map(|()| "rack".into());
            let request = Request { shapes: shapes.collect(), minimum, level, domain: None, duration };
            Scene { inventory, request }
        })
}

/// Whether slots of these shapes together fit on the node over the window, asked of the timeline alone.
fn node_takes(scene: &Scene, id: u32, now: i64, start: i64, counts: &[u32]) -> bool {
    let (inventory, request) = (&scene.inventory, &scene.request);
    let end = request.end(start).unwrap_or(i64::MAX);
    let mut ports: Vec<&HostPort> = Vec::new();
    for (shape, count) in request.shapes.iter().zip(counts).filter(|(_, count)| **count > 0) {
        let clash = shape.ports.iter().any(|a| ports.iter().any(|b| a.clashes(b)));
        if !inventory.eligibility(&shape.constraint).now(id)
            || clash
            || (*count > 1 && !shape.ports.is_empty())
            || inventory.ports_taken(id, now, (start, end), &shape.ports)
        {
            return false;
        }
        ports.extend(shape.ports.iter());
    }
    ["cpu", "memory", "pods"].into_iter().all(|resource| {
        let sum: u64 =
            request.shapes.iter().zip(counts).map(|(s, n)| s.needs.get(resource) * u64::from(*n)).sum();
        let mut out = Vec::new();
        if let Some(kind) = inventory.columns().kind(resource) {
            inventory.least(id, now, (start, end), &[kind], &mut out);
        }
        sum == 0 || out.first().is_some_and(|have| sum <= *have)
    })
}

/// Every choice of slots that these nodes take together.
fn reachable(scene: &Scene, nodes: &[u32], now: i64, start: i64) -> BTreeSet<Vec<u32>> {
    let none: Vec<u32> = vec![0; scene.request.shapes.len()];
    let most: Vec<u32> = scene.request.shapes.iter().map(|shape| shape.count).collect();
    nodes.iter().fold(BTreeSet::from([none]), |before, id| {
        let takes: Vec<_> =
            up_to(&most).into_iter().filter(|counts| node_takes(scene, *id, now, start, counts)).collect();
        let sum = |a: &[u32], b: &[u32]| -> Vec<u32> { a.iter().zip(b).map(|(a, b)| a + b).collect() };
        let sums = before.iter().flat_map(|counts| takes.iter().map(move |more| sum(counts, more)));
        sums.filter(|counts| counts.iter().zip(&most).all(|(count, most)| count <= most)).collect()
    })
}

/// Every choice of at most so many slots of each shape.
fn up_to(most: &[u32]) -> Vec<Vec<u32>> {
    most.iter().fold(vec![vec![]], |all: Vec<Vec<u32>>, most| {
        let longer = |counts: Vec<u32>| (0..=*most).map(move |n| [counts.as_slice(), &[n]].concat());
        all.into_iter().flat_map(longer).collect()
    })
}

/// The best choice of slots that fits: the most slots, and of as many those of earlier shapes.
fn possible(scene: &Scene, now: i64, start: i64) -> Option<Vec<u32>> {
    let lists: Vec<Vec<u32>> = match &scene.request.level {
        Some(level) => {
            scene.inventory.domains(level).members.iter().map(|(_, nodes)| nodes.clone()).collect()
        }
        None => vec![scene.inventory.order().to_vec()],
    };
    let all = scene.request.slots();
    let needed = scene.request.needed().min(all);
    let slots = |counts: &[u32]| counts.iter().copied().map(u64::from).sum::<u64>();
    let choices = lists.iter().flat_map(|nodes| reachable(scene, nodes, now, start));
    choices.filter(|counts| slots(counts) >= needed).max_by_key(|counts| (slots(counts), counts.clone()))
}

/// The placement has the best choice of slots, each once, in one domain, and fits node by node.
fn right(scene: &Scene, placement: &Placement, now: i64, start: i64) -> bool {
    let shapes = &scene.request.shapes;
    let mut by_node: std::collections::BTreeMap<u32, Vec<u32>> = std::collections::BTreeMap::new();
    let mut placed = vec![0; shapes.len()];
    for slot in &placement.slots {
        let id = scene.inventory.id(&slot.node).unwrap();
        by_node.entry(id).or_insert_with(|| vec![0; shapes.len()])[slot.shape as usize] += slot.count;
        placed[slot.shape as usize] += slot.count;
    }
    let domains = scene.inventory.domains("rack");
    let within = |id: &u32| {
        domains
            .members
            .iter()
            .any(|(value, nodes)| Some(value) == placement.domain.as_ref() && nodes.contains(id))
    };
    Some(placed) == possible(scene, now, start)
        && by_node.iter().all(|(id, counts)| node_takes(scene, *id, now, start, counts))
        && (scene.request.level.is_none() || by_node.keys().all(within))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_placement_is_found_exactly_when_there_is_one(scene in scene()) {
        for policy in [NodePolicy::Low, NodePolicy::High] {
            let found = place_now(&scene.inventory, &scene.request, 0, policy);
            let none = || possible(&scene, 0, 0).is_none();
            let sound = found.as_ref().map_or_else(|_| none(), |placement| right(&scene, placement, 0, 0));
            prop_assert!(sound, "{found:?}");
        }
        sound(&scene.inventory);
    }

    #[test]
    fn the_planned_start_is_the_first_possible_one(scene in scene()) {
        let first = (0..40).find(|start| possible(&scene, 0, *start).is_some());
        let planned = earliest(&scene.inventory, &scene.request, 0, NodePolicy::Low);
        prop_assert_eq!(planned.as_ref().ok().map(|planned| planned.start), first);
        if let Ok(planned) = planned {
            prop_assert!(right(&scene, &planned.placement, 0, planned.start));
        }
    }

    #[test]
    fn answers_agree_with_each_other(scene in scene()) {
        let now = place_now(&scene.inventory, &scene.request, 0, NodePolicy::Low);
        let ever = satisfiable(&scene.inventory, &scene.request);
        let why = why_not(&scene.inventory, &scene.request, 0);
        let line = line(&why);
        prop_assert!(!line.is_empty());
        prop_assert_eq!(why.never, !ever);
        prop_assert_eq!(why.gang.is_some(), why.gang.as_ref().is_some_and(|gang| gang.room < gang.wanted));
        if now.is_ok() {
            prop_assert!(ever);
        }
        for shape in &why.shapes {
            let counted: usize = shape.counts.iter().map(|count| count.nodes).sum();
            prop_assert_eq!(counted + shape.fitting, why.nodes);
        }
    }
}
