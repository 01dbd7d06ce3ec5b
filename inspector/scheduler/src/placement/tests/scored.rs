//! Preferences: they decide which nodes are taken, and never whether.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::*;
use super::now;
use crate::constraint::{Taint, TaintEffect, Toleration, TolerationOperator};
use crate::inventory::{Allocation, Inventory};
use crate::request::{Placement, Request, Shape};
use crate::testing::{cluster, gang, hold, node, shape, shown, sound};

/// Two zones of two nodes each.
fn zones() -> Inventory {
    cluster(&[
        ("n1", "cpu=4 zone:a host:n1"),
        ("n2", "cpu=4 zone:a host:n2 disk:ssd"),
        ("n3", "cpu=4 zone:b host:n3"),
        ("n4", "cpu=4 zone:b host:n4 disk:ssd"),
    ])
}

fn of(shape: Shape) -> Request {
    Request { shapes: vec![shape], ..Request::default() }
}

fn web(count: u32) -> Shape {
    shape(count, "cpu=1").labelled("app=web")
}

fn run(inventory: &mut Inventory, name: &str, node: &str, shape: &Shape, until: Option<i64>) {
    let hold = Allocation { peer: shape.peer.clone(), ..hold("cpu=1", until) };
    inventory.hold(name.into(), node, hold);
}

#[test]
fn preferred_nodes_come_first_and_others_if_these_are_full() {
    let inventory = zones();
    let wants = |count| of(shape(count, "cpu=1").rather_on(1, "disk", "ssd"));
    assert_eq!(now(&inventory, &wants(3)).unwrap(), "n2:0x3");
    assert_eq!(now(&inventory, &wants(10)).unwrap(), "n1:0x2 n2:0x4 n4:0x4");
    assert_eq!(now(&inventory, &wants(16)).unwrap(), "n1:0x4 n2:0x4 n3:0x4 n4:0x4");
    let high = place_now(&inventory, &wants(1), 0, NodePolicy::High).unwrap();
    assert_eq!(shown(&high), "n4:0x1", "among equal nodes the policy decides");
    let both = of(shape(1, "cpu=1").rather_on(20, "disk", "ssd").rather_on(10, "zone", "b"));
    assert_eq!(now(&inventory, &both).unwrap(), "n4:0x1");
    let either = of(shape(5, "cpu=1").rather_on(20, "host", "n3").rather_on(30, "zone", "a"));
    assert_eq!(now(&inventory, &either).unwrap(), "n1:0x4 n2:0x1", "the greater weight wins");
}

#[test]
fn a_taint_prefer_no_schedule_is_avoided_unless_tolerated() {
    let mut inventory = zones();
    let mut tainted = node("n1", "cpu=4 zone:a host:n1");
    tainted.taints =
        vec![Taint { key: "old".into(), value: "".into(), effect: TaintEffect::PreferNoSchedule }];
    inventory.set_node(tainted);
    assert_eq!(now(&inventory, &gang(1, "cpu=1")).unwrap(), "n2:0x1");
    assert_eq!(now(&inventory, &gang(13, "cpu=1")).unwrap(), "n1:0x1 n2:0x4 n3:0x4 n4:0x4");
    let mut tolerant = gang(1, "cpu=1");
    Arc::make_mut(&mut tolerant.shapes[0].constraint).tolerations.push(Toleration {
        key: Some("old".into()),
        operator: TolerationOperator::Exists,
        value: "".into(),
        effect: None,
    });
    assert_eq!(now(&inventory, &tolerant).unwrap(), "n1:0x1");
    inventory.set_node(node("n1", "cpu=4 zone:a host:n1"));
    assert_eq!(now(&inventory, &gang(1, "cpu=1")).unwrap(), "n1:0x1");
    inventory.remove_node("n1");
    assert!(!inventory.has_discouraging_taints());
}

#[test]
fn pods_are_preferred_near_to_others_or_apart_from_them() {
    let mut inventory = zones();
    run(&mut inventory, "db", "n3", &shape(1, "").labelled("app=db"), None);
    let client = of(web(1).rather_near(50, "zone", "app=db"));
    assert_eq!(now(&inventory, &client).unwrap(), "n3:0x1");
    let away = of(web(1).rather_near(50, "zone", "app=db").rather_apart(10, "host", "app=db"));
    assert_eq!(now(&inventory, &away).unwrap(), "n4:0x1", "in the zone, but not on the node");
    let missing = of(web(1).rather_near(50, "zone", "app=cache"));
    assert_eq!(now(&inventory, &missing).unwrap(), "n1:0x1", "a preference without anybody to follow");
    let four = of(web(4).rather_apart(100, "host", "app=web"));
    assert_eq!(now(&inventory, &four).unwrap(), "n1:0x1 n2:0x1 n3:0x1 n4:0x1");
    let six = of(web(6).rather_apart(100, "host", "app=web"));
    assert_eq!(now(&inventory, &six).unwrap(), "n1:0x2 n2:0x2 n3:0x1 n4:0x1", "where there are the fewest");
    run(&mut inventory, "w", "n1", &web(1), None);
    assert_eq!(now(&inventory, &four).unwrap(), "n1:0x1 n2:0x1 n3:0x1 n4:0x1");
    let one = of(web(1).rather_apart(100, "host", "app=web"));
    assert_eq!(now(&inventory, &one).unwrap(), "n2:0x1");
    sound(&inventory);
}

#[test]
fn a_soft_spread_constraint_evens_out_and_never_keeps_a_pod_waiting() {
    let mut inventory = zones();
    run(&mut inventory, "w1", "n1", &web(1), None);
    run(&mut inventory, "w2", "n2", &web(1), None);
    let spread = |count| of(web(count).rather_spread("zone", 1, "app=web"));
    assert_eq!(now(&inventory, &spread(1)).unwrap(), "n3:0x1");
    assert_eq!(now(&inventory, &spread(4)).unwrap(), "n1:0x1 n3:0x3");
    inventory.hold("x".into(), "n3", hold("cpu=2", None));
    assert_eq!(now(&inventory, &spread(12)).unwrap(), "n1:0x3 n2:0x3 n3:0x2 n4:0x4");
    let hard = of(web(12).spread("zone", 1, "app=web"));
    assert_eq!(now(&inventory, &hard), None);
    let unlabelled = of(web(2).rather_spread("rack", 1, "app=web"));
    assert_eq!(now(&inventory, &unlabelled).unwrap(), "n1:0x2");
}

#[test]
fn requirements_and_time_come_before_preferences() {
    let mut inventory = zones();
    let required = of(web(2).apart("host", "app=web").rather_on(100, "disk", "ssd"));
    assert_eq!(now(&inventory, &required).unwrap(), "n2:0x1 n4:0x1");
    let level = Request { level: Some("zone".into()), ..of(shape(5, "cpu=1").rather_on(9, "zone", "b")) };
    inventory.set_levels(["zone".into()]);
    assert_eq!(now(&inventory, &level).unwrap(), "n1:0x4 n2:0x1", "the domain is that of the policy");
    // A planned start takes the node that becomes free last before it.
    for (name, until) in [("n1", 10), ("n2", 20), ("n3", 30), ("n4", 40)] {
        inventory.hold(format!("on-{name}").into(), name, hold("cpu=4", until));
    }
    let rather = of(shape(1, "cpu=1").rather_on(9, "disk", "ssd")).lasting(5);
    let planned = earliest(&inventory, &rather, 0, NodePolicy::Low).unwrap();
    assert_eq!((planned.start, shown(&planned.placement)), (10, "n1:0x1".to_owned()));
}

#[test]
fn with_policy_spread_each_slot_takes_the_least_allocated_node() {
    let mut inventory = zones();
    inventory.hold("x".into(), "n1", hold("cpu=1", None));
    let spread = |request: &Request| shown(&place_now(&inventory, request, 0, NodePolicy::Spread).unwrap());
    assert_eq!(spread(&gang(1, "cpu=1")), "n2:0x1");
    assert_eq!(spread(&gang(5, "cpu=1")), "n1:0x1 n2:0x2 n3:0x1 n4:0x1");
    let rather = of(shape(1, "cpu=1").rather_on(100, "host", "n1"));
    assert_eq!(spread(&rather), "n2:0x1", "the policy decides first");
    let among_equals = of(shape(1, "cpu=1").rather_on(1, "zone", "b"));
    assert_eq!(spread(&among_equals), "n3:0x1");
    let mut mixed = cluster(&[("big", "cpu=8 mem=100"), ("small", "cpu=4 mem=100")]);
    mixed.hold("x".into(), "big", hold("cpu=3", None));
    let placed = place_now(&mixed, &gang(1, "cpu=1"), 0, NodePolicy::Spread).unwrap();
    assert_eq!(shown(&placed), "small:0x1", "by share, not by amount");
    mixed.hold("y".into(), "small", hold("mem=90", None));
    let placed = place_now(&mixed, &gang(1, "cpu=1 mem=1"), 0, NodePolicy::Spread).unwrap();
    assert_eq!(shown(&placed), "big:0x1", "the scarcest resource counts");
}

#[test]
fn several_shapes_have_their_own_preferences() {
    let inventory = zones();
    let request = of(shape(1, "cpu=2").rather_on(5, "host", "n4"))
        .and(web(2).rather_on(5, "zone", "b").rather_apart(5, "host", "app=web"));
    assert_eq!(now(&inventory, &request).unwrap(), "n3:1x1 n4:0x1 n4:1x1");
}

fn slots(placement: &Placement) -> u32 {
    placement.slots.iter().map(|slot| slot.count).sum()
}

/// A shape with some preferences, by the bits of `which`.
fn rather(mut shape: Shape, which: u8, weight: u32) -> Shape {
    if which & 1 > 0 {
        shape = shape.rather_on(weight, "disk", "ssd");
    }
    if which & 2 > 0 {
        shape = shape.rather_near(weight, "zone", "app=db");
    }
    if which & 4 > 0 {
        shape = shape.rather_apart(weight, "host", "app=web");
    }
    if which & 8 > 0 {
        shape = shape.rather_spread("zone", 1, "app=web");
    }
    shape
}

/// How good each node is for one Pod, written down without the search: (met, finer).
fn worth(
    inventory: &[(String, u8, &str)],
    web: &[u32],
    db: &[u32],
    at: usize,
    which: u8,
    weight: i64,
) -> (i64, i64) {
    let zone = |of: usize| inventory[of].2;
    let in_zone = |counts: &[u32]| -> i64 {
        (0..inventory.len())
            .filter(|other| zone(*other) == zone(at))
            .map(|other| i64::from(counts[other]))
            .sum()
    };
    let (mut met, mut finer) = (0, 0);
    if which & 1 > 0 && inventory[at].1 & 1 > 0 {
        met += weight;
    }
    if which & 2 > 0 {
        met += if in_zone(db) > 0 { weight } else { 0 };
        finer += weight * in_zone(db);
    }
    if which & 4 > 0 {
        met += if web[at] == 0 { weight } else { 0 };
        finer -= weight * i64::from(web[at]);
    }
    if which & 8 > 0 {
        let zones: std::collections::BTreeSet<&str> = (0..inventory.len()).map(zone).collect();
        let sum = |name: &str| -> i64 {
            (0..inventory.len()).filter(|other| zone(*other) == name).map(|other| i64::from(web[other])).sum()
        };
        let least = zones.iter().map(|name| sum(name)).min().unwrap_or(0);
        met += if sum(zone(at)) < least + 1 { 100 } else { 0 };
        finer -= 100 * sum(zone(at));
    }
    (met, finer)
}

proptest! {
    #[test]
    fn one_pod_takes_the_best_node_with_room(
        nodes in prop::collection::vec((0_u8..4, 0_usize..3, 0_u32..3, 0_u32..2, 0_u64..5), 1..8),
        which in 0_u8..16,
        weight in 1_u32..=100,
    ) {
        let named: Vec<(String, u8, &str)> = nodes
            .iter()
            .enumerate()
            .map(|(at, (bits, zone, ..))| (format!("n{at}"), *bits, ["a", "b", "c"][*zone]))
            .collect();
        let mut inventory = Inventory::new();
        for (name, bits, zone) in &named {
            let disk = if bits & 1 > 0 { " disk:ssd" } else { "" };
            inventory.set_node(node(name, &format!("cpu=8 zone:{zone} host:{name}{disk}")));
        }
        for (at, (.., web, db, held)) in nodes.iter().enumerate() {
            let name = &named[at].0;
            for number in 0..*web {
                run(&mut inventory, &format!("web-{at}-{number}"), name, &self::web(1), None);
            }
            for number in 0..*db {
                run(&mut inventory, &format!("db-{at}-{number}"), name, &shape(1, "").labelled("app=db"), None);
            }
            inventory.hold(format!("held-{at}").into(), name, hold(&format!("cpu={held}"), None));
        }
        let (web, db): (Vec<u32>, Vec<u32>) = nodes.iter().map(|(.., web, db, _)| (*web, *db)).unzip();
        let free = |at: usize| 8 - u64::from(web[at]) - u64::from(db[at]) - nodes[at].4;
        let request = of(rather(self::web(1), which, weight));
        let placed = now(&inventory, &request);
        let room = (0..nodes.len()).filter(|at| free(*at) >= 1);
        let best = room.max_by_key(|at| {
            let worth = worth(&named, &web, &db, *at, which, i64::from(weight));
            (worth, std::cmp::Reverse(*at))
        });
        prop_assert_eq!(placed, best.map(|at| format!("n{at}:0x1")));
    }

    #[test]
    fn preferences_never_keep_a_gang_from_starting(
        nodes in prop::collection::vec((1_u64..6, 0_usize..3, any::<bool>()), 1..6),
        wishes in prop::collection::vec((1_u32..4, 1_u64..4, 0_u8..16, any::<bool>()), 1..4),
        minimum in prop::option::of(1_u32..6),
        spread in any::<bool>(),
    ) {
        let mut inventory = Inventory::new();
        for (at, (cpu, zone, ssd)) in nodes.iter().enumerate() {
            let disk = if *ssd { " disk:ssd" } else { "" };
            inventory.set_node(node(&format!("n{at}"), &format!("cpu={cpu} zone:{zone} host:n{at}{disk}")));
        }
        let request = |with: bool| {
            let shapes = wishes.iter().map(|(count, cpu, which, apart)| {
                let plain = shape(*count, &format!("cpu={cpu}")).labelled("app=web");
                let plain = if *apart { plain.apart("host", "app=web") } else { plain };
                if with { rather(plain, *which, 7) } else { plain }
            });
            let request = Request { shapes: shapes.collect(), ..Request::default() };
            match minimum {
                Some(minimum) => request.at_least(minimum),
                None => request,
            }
        };
        let policy = if spread { NodePolicy::Spread } else { NodePolicy::Low };
        let plain = place_now(&inventory, &request(false), 0, NodePolicy::Low).ok();
        let scored = place_now(&inventory, &request(true), 0, policy).ok();
        prop_assert_eq!(plain.as_ref().map(slots), scored.as_ref().map(slots));
        if let Some(placement) = scored {
            // What was placed really fits: it can be held.
            let request = request(true);
            for (at, slot) in placement.slots.iter().enumerate() {
                for number in 0..slot.count {
                    let needs = request.shapes[slot.shape as usize].needs.clone();
                    let hold = Allocation { needs, ..hold("", None) };
                    inventory.hold(format!("{at}/{number}").into(), &slot.node, hold);
                }
            }
            for view in inventory.nodes() {
                prop_assert!(view.deficit.is_empty(), "{}", view.spec.name);
            }
            sound(&inventory);
        }
    }
}
