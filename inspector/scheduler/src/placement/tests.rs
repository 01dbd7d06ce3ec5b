use std::sync::Arc;

use super::*;
use crate::explain::{WhyNot, why_never};
use crate::inventory::{Allocation, Inventory};
use crate::request::{Placement, Request, Slot};
use crate::testing::{cluster, gang, hold, line, node, shape, shown, sound, tcp};

fn never(inventory: &Inventory, request: &Request) -> WhyNot {
    assert!(!satisfiable(inventory, request));
    why_never(inventory, request)
}

fn now(inventory: &Inventory, request: &Request) -> Option<String> {
    place_now(inventory, request, 0, NodePolicy::Low).ok().map(|placement| shown(&placement))
}

#[test]
fn a_gang_takes_the_first_nodes_that_fit_or_none() {
    let mut inventory = cluster(&[("n1", "cpu=4"), ("n2", "cpu=4"), ("n10", "cpu=4")]);
    assert_eq!(now(&inventory, &gang(3, "cpu=2")).unwrap(), "n1:0x2 n2:0x1");
    assert_eq!(now(&inventory, &gang(7, "cpu=2")), None);
    let high = place_now(&inventory, &gang(3, "cpu=2"), 0, NodePolicy::High).unwrap();
    assert_eq!(shown(&high), "n10:0x2 n2:0x1");
    inventory.hold("x".into(), "n1", hold("cpu=3", None));
    assert_eq!(now(&inventory, &gang(3, "cpu=2")).unwrap(), "n2:0x2 n10:0x1");
    assert_eq!(now(&inventory, &gang(0, "cpu=2")).unwrap(), "");
    assert_eq!(now(&inventory, &gang(1, "tpu=1")), None);
}

#[test]
fn only_what_is_asked_for_is_compared() {
    let mut inventory = cluster(&[("n", "cpu=4 gpu=8")]);
    inventory.hold("x".into(), "n", hold("gpu=8", None));
    let mut spec = node("n", "cpu=4 gpu=8");
    spec.allocatable.set("gpu", 6);
    inventory.set_node(spec);
    assert_eq!(now(&inventory, &gang(1, "cpu=4 gpu=0")).unwrap(), "n:0x1");
    assert_eq!(now(&inventory, &gang(1, "gpu=1")), None);
    assert!(satisfiable(&inventory, &gang(1, "gpu=8")), "capacity counts: the devices may come back");
}

#[test]
fn a_launcher_leaves_the_gpu_node_to_the_workers() {
    let inventory = cluster(&[("cpu-1", "cpu=1 memory=10"), ("gpu-1", "cpu=4 memory=80 gpu=4")]);
    let pi = gang(1, "cpu=500m memory=5").and(shape(2, "cpu=2 memory=40 gpu=2"));
    assert_eq!(now(&inventory, &pi).unwrap(), "cpu-1:0x1 gpu-1:1x2");
    let reversed = cluster(&[("a-gpu", "cpu=4 memory=80 gpu=4"), ("b-cpu", "cpu=1 memory=10")]);
    assert_eq!(now(&reversed, &pi).unwrap(), "a-gpu:1x2 b-cpu:0x1");
}

#[test]
fn where_first_fit_fails_alternatives_are_tried() {
    // The harder shape (more of the cpu) goes first, onto the first node, which is the only one with enough memory.
    let inventory = cluster(&[("a", "cpu=4 memory=8"), ("b", "cpu=4 memory=1")]);
    let both = gang(1, "cpu=4 memory=1").and(shape(1, "cpu=3 memory=2"));
    assert_eq!(now(&inventory, &both).unwrap(), "a:1x1 b:0x1");
    let nodes: Vec<String> = (0..40).map(|i| format!("n{i}")).collect();
    let mut many = Inventory::new();
    for (i, name) in nodes.iter().enumerate() {
        many.set_node(node(name, if i % 2 == 0 { "cpu=4 memory=8" } else { "cpu=4 memory=1" }));
    }
    let all = gang(20, "cpu=4 memory=1").and(shape(20, "cpu=3 memory=2"));
    assert!(now(&many, &all).is_some());
    let more = gang(20, "cpu=4 memory=1").and(shape(21, "cpu=3 memory=2"));
    assert_eq!(now(&many, &more), None);
}

#[test]
fn host_ports_clash_with_holders_and_within_the_gang() {
    let mut inventory = cluster(&[("n1", "cpu=8"), ("n2", "cpu=8")]);
    let with = |ip: &str, until: Option<i64>| Allocation {
        ports: Arc::new([tcp(ip, 8080)]),
        ..hold("cpu=1", until)
    };
    inventory.hold("edge-1".into(), "n1", with("10.1.1.1", None));
    inventory.hold("edge-2".into(), "n2", with("", Some(100)));
    let any = Request { shapes: vec![shape(1, "cpu=1").port(8080)], ..gang(0, "") };
    assert_eq!(now(&inventory, &any), None);
    let mut other = any.clone();
    other.shapes[0].ports = Arc::new([tcp("10.1.1.2", 8080)]);
    assert_eq!(now(&inventory, &other).unwrap(), "n1:0x1");
    let planned = earliest(&inventory, &any, 0, NodePolicy::Low).unwrap();
    assert_eq!((planned.start, shown(&planned.placement).as_str()), (100, "n2:0x1"));
    let pair = Request { shapes: vec![shape(2, "cpu=1").port(9000)], ..gang(0, "") };
    assert_eq!(now(&inventory, &pair).unwrap(), "n1:0x1 n2:0x1");
    let trio = Request { shapes: vec![shape(3, "cpu=1").port(9001)], ..gang(0, "") };
    assert_eq!(now(&inventory, &trio), None);
    let why = line(&never(&inventory, &trio));
    assert!(why.contains("host port 9001/TCP"), "{why}");
    let clashing =
        Request { shapes: vec![shape(1, "cpu=1").port(9000), shape(2, "cpu=2").port(9000)], ..gang(0, "") };
    assert_eq!(now(&inventory, &clashing), None);
    assert!(satisfiable(&inventory, &any));
}

#[test]
fn all_members_share_one_domain() {
    let mut inventory = cluster(&[
        ("a1", "cpu=4 rack:ra"),
        ("a2", "cpu=4 rack:ra"),
        ("b1", "cpu=4 rack:rb"),
        ("b2", "cpu=4 rack:rb"),
        ("b3", "cpu=4 rack:rb"),
        ("x1", "cpu=4"),
    ]);
    inventory.hold("occupant".into(), "b3", hold("cpu=2", Some(60)));
    let tight = gang(3, "cpu=3").within("rack");
    assert_eq!(now(&inventory, &tight), None);
    let planned = earliest(&inventory, &tight, 0, NodePolicy::Low).unwrap();
    assert_eq!((planned.start, shown(&planned.placement).as_str()), (60, "b1:0x1 b2:0x1 b3:0x1"));
    assert_eq!(planned.placement.domain.as_deref(), Some("rb"));
    let why = line(&never(&inventory, &gang(4, "cpu=3").within("rack")));
    assert!(
        why.contains("4 members must start together in one rack, but the best one (rb) has room for only 3"),
        "{why}"
    );
    inventory.release("occupant");
    assert_eq!(now(&inventory, &tight).unwrap(), "b1:0x1 b2:0x1 b3:0x1");
    let refill = Request { domain: Some("ra".into()), ..gang(1, "cpu=3").within("rack") };
    assert_eq!(now(&inventory, &refill).unwrap(), "a1:0x1");
    let nowhere = Request { domain: Some("rz".into()), ..refill };
    assert_eq!(now(&inventory, &nowhere), None);
    assert!(line(&never(&inventory, &nowhere)).contains("rack"));
}

#[test]
fn the_earliest_start_is_when_enough_has_been_released() {
    let mut inventory = cluster(&[("n1", "cpu=4"), ("n2", "cpu=4"), ("n3", "cpu=4")]);
    for (holder, node, until) in [("r1", "n1", 600), ("r2", "n2", 500), ("r3", "n3", 700)] {
        inventory.hold(holder.into(), node, hold("cpu=4", until));
    }
    let plan = |count, at| earliest(&inventory, &gang(count, "cpu=4").lasting(10), at, NodePolicy::Low);
    assert_eq!(plan(1, 0).unwrap().start, 500);
    assert_eq!(plan(2, 0).unwrap().start, 600);
    let three = plan(3, 0).unwrap();
    assert_eq!((three.start, three.end), (700, Some(710)));
    assert_eq!(plan(2, 550).unwrap().start, 600, "r2 overruns and is planned to end a second from now");
    assert_eq!(plan(3, 800).unwrap().start, 801, "never in the past, never now");
}

#[test]
fn who_has_no_time_limit_is_named() {
    let mut inventory = cluster(&[("n1", "cpu=8"), ("n2", "cpu=4")]);
    inventory.hold("none".into(), "n1", hold("cpu=1", None));
    inventory.hold("soon".into(), "n1", hold("cpu=1", Some(5)));
    inventory.hold("daemon".into(), "n1", Allocation { permanent: true, ..hold("cpu=0", None) });
    let failure = earliest(&inventory, &gang(1, "cpu=8"), 0, NodePolicy::Low).unwrap_err();
    assert_eq!(failure.no_end, ["none".into()]);
    assert_eq!(earliest(&inventory, &gang(1, "cpu=7"), 0, NodePolicy::Low).unwrap().start, 5);
}

#[test]
fn absurd_durations_never_wrap() {
    let mut inventory = cluster(&[("n1", "cpu=4")]);
    inventory.hold("a".into(), "n1", hold("cpu=4", Some(i64::MAX - 1)));
    let forever = gang(1, "cpu=4").lasting(i64::MAX);
    let planned = earliest(&inventory, &forever, 5, NodePolicy::Low).unwrap();
    assert_eq!((planned.start, planned.end), (i64::MAX - 1, None));
    assert_eq!(forever.end(i64::MAX), None);
    let negative = gang(1, "cpu=4").lasting(i64::MIN);
    assert_eq!(negative.end(10), Some(11));
    assert!(place_now(&inventory, &negative, i64::MAX, NodePolicy::Low).is_err());
}

#[test]
fn a_start_now_keeps_out_of_what_others_are_promised() {
    let mut inventory = cluster(&[("n1", "cpu=4"), ("n2", "cpu=4")]);
    inventory.hold("r".into(), "n2", hold("cpu=4", Some(100)));
    let wide = gang(2, "cpu=4").lasting(50);
    let planned = earliest(&inventory, &wide, 0, NodePolicy::Low).unwrap();
    inventory.reserve(7, &wide, planned.placement, planned.start, planned.end);
    sound(&inventory);
    assert_eq!(inventory.node("n1").unwrap().reserved.get("cpu"), 4000);
    assert_eq!(now(&inventory, &gang(1, "cpu=1").lasting(100)).unwrap(), "n1:0x1");
    let long = gang(1, "cpu=1").lasting(101);
    let refused = place_now(&inventory, &long, 0, NodePolicy::Low).unwrap_err();
    assert_eq!(refused.behind, [7]);
    assert_eq!(earliest(&inventory, &long, 0, NodePolicy::Low).unwrap().start, 150);
    let endless = gang(1, "cpu=1");
    assert_eq!(earliest(&inventory, &endless, 0, NodePolicy::Low).unwrap().start, 150);
    inventory.reserve(7, &gang(2, "cpu=4"), place("n1", "n2"), 100, None);
    let never = earliest(&inventory, &endless, 0, NodePolicy::Low).unwrap_err();
    assert_eq!((never.no_end_jobs, never.behind), (vec![7], vec![]));
    inventory.clear_reservations();
    assert_eq!(now(&inventory, &endless).unwrap(), "n1:0x1");
    sound(&inventory);
}

fn place(a: &str, b: &str) -> Placement {
    let slot = |node: &str| Slot { shape: 0, node: node.into(), count: 1 };
    Placement { slots: vec![slot(a), slot(b)], domain: None }
}

#[test]
fn passing_states_make_a_job_wait_and_lasting_ones_make_it_impossible() {
    let mut inventory = cluster(&[("n1", "cpu=4 pool:gold"), ("n2", "cpu=4")]);
    let gold = Request { shapes: vec![shape(1, "cpu=1").on("pool", "gold")], ..gang(0, "") };
    let mut spec = node("n1", "cpu=4 pool:gold");
    spec.unschedulable = true;
    inventory.set_node(spec);
    assert_eq!(now(&inventory, &gold), None);
    assert!(satisfiable(&inventory, &gold));
    inventory.set_node(node("n1", "cpu=4 pool:silver"));
    assert!(line(&never(&inventory, &gold)).contains("node selector pool"));
    inventory.hold("daemon".into(), "n2", Allocation { permanent: true, ..hold("cpu=2", None) });
    let big = Request { shapes: vec![shape(2, "cpu=3")], ..gang(0, "") };
    assert!(!satisfiable(&inventory, &big), "what never leaves a node is not there for anybody");
}

#[test]
fn prepared_sets_follow_the_nodes() {
    let mut inventory = cluster(&[("n1", "cpu=4 pool:gold"), ("n2", "cpu=4")]);
    let gold = Request { shapes: vec![shape(1, "cpu=1").on("pool", "gold")], ..gang(0, "") };
    inventory.prepare([&gold.shapes[0].constraint]);
    assert_eq!(now(&inventory, &gold).unwrap(), "n1:0x1");
    inventory.set_node(node("n1", "cpu=4"));
    assert_eq!(now(&inventory, &gold), None);
    inventory.set_node(node("n3", "cpu=4 pool:gold"));
    assert_eq!(now(&inventory, &gold).unwrap(), "n3:0x1");
    inventory.remove_node("n3");
    assert_eq!(now(&inventory, &gold), None);
    for _ in 0..100 {
        inventory.prepare([]);
    }
    inventory.set_node(node("n4", "cpu=4 pool:gold"));
    assert_eq!(now(&inventory, &gold).unwrap(), "n4:0x1");
}

#[test]
fn where_fewer_are_enough_the_most_that_fit_are_taken() {
    let mut inventory = cluster(&[("n1", "cpu=4"), ("n2", "cpu=4")]);
    assert_eq!(now(&inventory, &gang(9, "cpu=1").at_least(8)).unwrap(), "n1:0x4 n2:0x4");
    assert_eq!(now(&inventory, &gang(9, "cpu=1").at_least(9)), None);
    assert_eq!(now(&inventory, &gang(9, "tpu=1").at_least(1)), None);
    let high = place_now(&inventory, &gang(5, "cpu=1").at_least(1), 0, NodePolicy::High).unwrap();
    assert_eq!(shown(&high), "n2:0x4 n1:0x1");
    // The hardest first would leave room for none of the others.
    let mixed = gang(8, "cpu=1").and(shape(2, "cpu=4")).and(shape(1, "tpu=1"));
    assert_eq!(now(&inventory, &mixed.clone().at_least(2)).unwrap(), "n1:0x4 n2:0x4");
    assert_eq!(now(&inventory, &mixed.clone().at_least(9)), None);
    // Of as many the earlier shape.
    let pair = gang(2, "cpu=3").and(shape(2, "cpu=4"));
    assert_eq!(now(&inventory, &pair.clone().at_least(1)).unwrap(), "n1:0x1 n2:0x1");
    let turned = gang(2, "cpu=4").and(shape(2, "cpu=3"));
    assert_eq!(now(&inventory, &turned.at_least(1)).unwrap(), "n1:0x1 n2:0x1");
    assert!(satisfiable(&inventory, &pair.clone().at_least(2)));
    let why = line(&never(&inventory, &pair.at_least(3)));
    assert!(
        why.contains(
            "3 of 4 members must start together, but there is room for only 2, even when all nodes are empty"
        ),
        "{why}"
    );
    inventory.hold("a".into(), "n1", hold("cpu=3", 50));
    inventory.hold("b".into(), "n2", hold("cpu=2", 20));
    let planned = earliest(&inventory, &mixed.at_least(5), 0, NodePolicy::Low).unwrap();
    assert_eq!((planned.start, shown(&planned.placement).as_str()), (20, "n1:0x1 n2:0x4"));
}

#[test]
fn where_fewer_are_enough_the_domain_that_takes_most_is_taken() {
    let inventory = cluster(&[
        ("a1", "cpu=2 rack:ra"),
        ("b1", "cpu=4 rack:rb"),
        ("c1", "cpu=4 rack:rc"),
        ("d1", "cpu=4 memory=9 rack:rd"),
    ]);
    let wide = gang(5, "cpu=1").within("rack");
    assert_eq!(now(&inventory, &wide.clone().at_least(2)).unwrap(), "b1:0x4");
    let placement = place_now(&inventory, &wide.clone().at_least(2), 0, NodePolicy::Low).unwrap();
    assert_eq!(placement.domain.as_deref(), Some("rb"));
    let why = line(&never(&inventory, &wide.at_least(5)));
    assert!(
        why.contains("5 members must start together in one rack, but the best one (rb) has room for only 4"),
        "{why}"
    );
    let two = gang(1, "memory=9").and(shape(4, "cpu=1")).within("rack").at_least(4);
    assert_eq!(now(&inventory, &two).unwrap(), "d1:0x1 d1:1x4");
}

#[test]
fn of_very_many_shapes_those_that_find_no_room_do_not_count() {
    let inventory = cluster(&[("n1", "cpu=4 memory=8"), ("n2", "cpu=4 memory=1")]);
    // Two shapes that only fit one way round, among ten that never fit.
    let mut many = gang(1, "cpu=4 memory=1").and(shape(1, "cpu=3 memory=2"));
    many.shapes.extend((0..10).map(|extra| shape(1, &format!("cpu={}", 9 + extra))));
    assert_eq!(now(&inventory, &many.clone().at_least(2)).unwrap(), "n1:1x1 n2:0x1");
    // With a hundred, all of which fit somewhere, first fit has to do: it takes the small ones.
    let mut hundred = gang(1, "cpu=4");
    hundred.shapes.extend((0..99).map(|extra| shape(1, &format!("cpu={}m", 40 + extra))));
    let placement = place_now(&inventory, &hundred.at_least(80), 0, NodePolicy::Low).unwrap();
    assert!(placement.slots.len() >= 80 && placement.slots.iter().all(|slot| slot.shape > 0));
}

#[test]
fn the_shape_that_takes_more_of_what_there_is_goes_first() {
    let inventory = cluster(&[("n1", "cpu=50 gpu=1"), ("n2", "cpu=50 gpu=1")]);
    // Either order fits. Both take three tenths of all cpu, and the second half of all gpus.
    let both = gang(1, "cpu=30").and(shape(1, "cpu=30 gpu=1"));
    assert_eq!(now(&inventory, &both).unwrap(), "n1:1x1 n2:0x1");
}

#[test]
fn shapes_beyond_those_that_are_counted_may_make_up_the_minimum() {
    let mut inventory = cluster(&[("n1", "cpu=70")]);
    inventory.hold("all".into(), "n1", hold("cpu=70", Some(100)));
    let mut many = gang(1, "cpu=1").lasting(10);
    many.shapes.extend((1..70).map(|extra| shape(1, &format!("cpu={}m", 1000 - extra))));
    assert_eq!(earliest(&inventory, &many.at_least(66), 0, NodePolicy::Low).unwrap().start, 100);
}

#[test]
fn not_more_jobs_are_named_as_in_the_way_than_anybody_reads() {
    let mut inventory = cluster(&[("n1", "cpu=20")]);
    for job in 0..18 {
        let starting = Allocation {
            kind: crate::inventory::AllocationKind::Assumed,
            job: Some(job),
            peer: None,
            ..hold("cpu=1", None)
        };
        inventory.hold(format!("start/{job:02}").into(), "n1", starting);
    }
    let failure = earliest(&inventory, &gang(1, "cpu=20"), 0, NodePolicy::Low).unwrap_err();
    assert_eq!(failure.no_end_jobs, (0..16).collect::<Vec<u32>>());
}

mod naive;
mod peers;
mod peers_random;
mod random;
mod scored;
