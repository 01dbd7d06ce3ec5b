use std::sync::Arc;

use super::*;
use crate::constraint::{NodeConstraint, Taint, TaintEffect, Term};
use crate::inventory::Allocation;
use crate::testing::{cluster, gang, hold, line, node, render, shape, tcp};

fn why(inventory: &Inventory, request: &Request) -> String {
    line(&why_not(inventory, request, 0))
}

#[test]
fn nodes_are_counted_by_reason() {
    let mut inventory = Inventory::new();
    for i in 0..4 {
        inventory.set_node(node(&format!("full{i}"), "cpu=8 nvidia.com/gpu=1"));
        inventory.hold(format!("p{i}").into(), &format!("full{i}"), hold("cpu=8", Some(100 + i)));
    }
    for i in 0..3 {
        inventory.set_node(node(&format!("plain{i}"), "cpu=8"));
    }
    for i in 0..2 {
        let mut tainted = node(&format!("taint{i}"), "cpu=8 nvidia.com/gpu=1");
        let taint = Taint { key: "dedicated".into(), value: "ai".into(), effect: TaintEffect::NoSchedule };
        tainted.taints.push(taint);
        inventory.set_node(tainted);
    }
    let mut cordoned = node("cordoned", "cpu=8 nvidia.com/gpu=1");
    cordoned.unschedulable = true;
    inventory.set_node(cordoned);
    let mut down = node("down", "cpu=8 nvidia.com/gpu=1");
    down.ready = false;
    inventory.set_node(down);
    let (text, details) = render(&why_not(&inventory, &gang(3, "cpu=4 nvidia.com/gpu=1"), 0), &Nameless);
    assert_eq!(
        text,
        "0/11 nodes are available: 4 had insufficient cpu, 3 had no nvidia.com/gpu, 2 had untolerated taint {dedicated=ai:NoSchedule}, \
         1 was not ready, 1 was cordoned; 3 members must start together, but there is no room for any of them"
    );
    assert_eq!(
        details,
        [
            "4 had insufficient cpu (4 requested, at most 0 available), the earliest until 1970-01-01T00:01:40Z",
            "3 had no nvidia.com/gpu",
            "2 had untolerated taint {dedicated=ai:NoSchedule}",
            "1 was not ready",
            "1 was cordoned",
            "closest node: full0 (0 cpu available, 4 requested)",
        ]
    );
}

#[test]
fn busy_and_impossible_are_told_apart() {
    let mut inventory = cluster(&[("n1", "cpu=8"), ("n2", "cpu=8")]);
    inventory.hold("full-1".into(), "n1", hold("cpu=8", None));
    inventory.hold("full-2".into(), "n2", hold("cpu=8", None));
    assert_eq!(
        why(&inventory, &gang(10, "cpu=20")),
        "0/2 nodes are available: 2 had too little cpu (20 requested, at most 8 per node); \
         10 members must start together, but there is no room for any of them, even when all nodes are empty"
    );
    assert_eq!(
        why(&inventory, &gang(3, "cpu=8")),
        "2/2 nodes are available; 3 members must start together, but there is room for only 2, even when all nodes are empty (insufficient cpu)"
    );
    assert_eq!(
        why(&inventory, &gang(2, "cpu=8")),
        "0/2 nodes are available: 2 had insufficient cpu; 2 members must start together, but there is no room for any of them; \
         no start time estimate: running Pods have no time limit"
    );
    assert_eq!(
        why(&inventory, &gang(1, "example.com/tpu=1")),
        "0/2 nodes are available: 2 had no example.com/tpu"
    );
    let gold = Request { shapes: vec![shape(1, "cpu=1").on("pool", "gold")], ..gang(0, "") };
    assert_eq!(why(&inventory, &gold), "0/2 nodes are available: 2 didn't match node selector pool=gold");
    let affinity = NodeConstraint { affinity: Some(vec![Term::default()]), ..NodeConstraint::default() };
    let mut nowhere = gang(1, "cpu=1");
    nowhere.shapes[0].constraint = Arc::new(affinity);
    assert_eq!(
        why(&inventory, &nowhere),
        "0/2 nodes are available: 2 didn't match node affinity (an empty term, which matches no node)"
    );
    assert_eq!(why(&Inventory::new(), &gang(1, "cpu=1")), "the cluster has no nodes");
}

#[test]
fn gangs_say_how_many_find_room_together() {
    let mut inventory = cluster(&[("g1", "cpu=64 nvidia.com/gpu=8"), ("g2", "cpu=64 nvidia.com/gpu=8")]);
    inventory.hold("a-0".into(), "g1", hold("nvidia.com/gpu=8", Some(50)));
    inventory.hold("a-2".into(), "g2", hold("nvidia.com/gpu=4", Some(50)));
    assert_eq!(
        why(&inventory, &gang(3, "nvidia.com/gpu=4")),
        "1/2 nodes are available: 1 had insufficient nvidia.com/gpu; 3 members must start together, but there is room for only 1 (insufficient nvidia.com/gpu)"
    );
    let mixed = gang(2, "cpu=100m").and(shape(1, "nvidia.com/gpu=8"));
    assert_eq!(
        why(&inventory, &mixed),
        "for 1 member requesting nvidia.com/gpu 8: 0/2 nodes are available: 2 had insufficient nvidia.com/gpu; 3 members must start together, but there is room for only 2"
    );
}

#[test]
fn levels_and_ports_are_named() {
    let mut inventory =
        cluster(&[("a1", "cpu=4 rack:ra"), ("a2", "cpu=4 rack:ra"), ("b1", "cpu=4 rack:rb"), ("x", "cpu=4")]);
    inventory.hold("o".into(), "a2", hold("cpu=2", Some(9)));
    assert_eq!(
        why(&inventory, &gang(2, "cpu=3").within("rack")),
        "3/4 nodes are available: 1 had insufficient cpu; 2 members must start together in one rack, but the best one (ra) has room for only 1 (insufficient cpu)"
    );
    assert_eq!(
        why(&inventory, &gang(3, "cpu=3").within("rack")),
        "4/4 nodes are available; 3 members must start together in one rack, but the best one (ra) has room for only 2, even when all nodes are empty (insufficient cpu)"
    );
    assert!(why(&inventory, &gang(1, "cpu=3").within("row")).contains("one row, but no node has that label"));
    let port = Allocation { ports: Arc::new([tcp("", 8080)]), ..hold("cpu=0", Some(9)) };
    for (holder, node) in [("e1", "a1"), ("e2", "a2"), ("e3", "b1"), ("e4", "x")] {
        inventory.hold(holder.into(), node, port.clone());
    }
    let any = Request { shapes: vec![shape(1, "cpu=1").port(8080)], ..gang(0, "") };
    assert_eq!(why(&inventory, &any), "0/4 nodes are available: 4 had host port 8080/TCP in use");
}

#[test]
fn a_shape_that_finds_room_is_short_of_nothing() {
    let inventory = cluster(&[("n1", "cpu=4"), ("n2", "cpu=4")]);
    let launcher = Request { shapes: vec![shape(1, "cpu=1").port(2222)], ..gang(0, "") };
    let workers = |count, text: &str| Request {
        shapes: [launcher.shapes.clone(), vec![shape(count, text)]].concat(),
        ..gang(0, "")
    };
    assert!(
        why(&inventory, &workers(3, "cpu=3"))
            .ends_with("room for only 3, even when all nodes are empty (insufficient cpu)")
    );
    assert!(why(&inventory, &workers(3, "gpu=1")).ends_with(
        "4 members must start together, but there is no room for any of them, even when all nodes are empty"
    ));
    let many = Request { shapes: vec![shape(3, "cpu=1").port(2222)], ..gang(0, "") };
    assert!(why(&inventory, &many).ends_with("(host port 2222/TCP limits each node to one member)"));
}

struct Known;

impl Names for Known {
    fn job(&self, id: u32) -> Option<String> {
        (id == 7).then(|| "group/wide".to_owned())
    }

    fn holder(&self, key: &str) -> Option<String> {
        (key == "uid-1").then(|| "pod/p-none".to_owned())
    }
}

#[test]
fn reservations_and_missing_limits_are_named_as_far_as_the_reader_may_know() {
    let mut inventory = cluster(&[("n1", "cpu=4"), ("n2", "cpu=4")]);
    inventory.hold("r".into(), "n2", hold("cpu=4", Some(100)));
    let wide = gang(2, "cpu=4").lasting(50);
    let planned = crate::placement::earliest(&inventory, &wide, 0, NodePolicy::Low).unwrap();
    inventory.reserve(7, &wide, planned.placement.clone(), planned.start, planned.end);
    let long = why_not(&inventory, &gang(1, "cpu=4").lasting(6000), 0);
    assert_eq!(
        render(&long, &Known).0,
        "0/2 nodes are available: 1 had insufficient cpu, 1 was reserved for group/wide; the remaining resources are reserved for group/wide"
    );
    inventory.clear_reservations();
    inventory.reserve(8, &wide, planned.placement, planned.start, planned.end);
    let long = why_not(&inventory, &gang(1, "cpu=4").lasting(6000), 0);
    assert!(render(&long, &Known).0.ends_with("the remaining resources are reserved for other jobs"));
    inventory.clear_reservations();
    inventory.hold("uid-1".into(), "n1", hold("cpu=1", None));
    inventory.hold("uid-2".into(), "n2", hold("cpu=1", None));
    let behind = why_not(&inventory, &gang(1, "cpu=4"), 0);
    assert_eq!(
        render(&behind, &Known).0,
        "0/2 nodes are available: 2 had insufficient cpu; no start time estimate: pod/p-none and others have no time limit"
    );
}

#[test]
fn a_gang_that_is_met_on_several_nodes_is_named_once() {
    struct OneGang;
    impl Names for OneGang {
        fn job(&self, _: u32) -> Option<String> {
            None
        }

        fn holder(&self, _: &str) -> Option<String> {
            Some("group/wide".to_owned())
        }
    }
    let mut inventory = cluster(&[("n1", "cpu=4"), ("n2", "cpu=4")]);
    inventory.hold("uid-1".into(), "n1", hold("cpu=1", None));
    inventory.hold("uid-2".into(), "n2", hold("cpu=1", None));
    let text = render(&why_not(&inventory, &gang(2, "cpu=4"), 0), &OneGang).0;
    assert!(text.ends_with("; no start time estimate: group/wide has no time limit"), "{text}");
}

#[test]
fn times_are_written_in_utc() {
    for (seconds, want) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_827_696, "2000-02-29T12:34:56Z"),
        (1_700_000_000, "2023-11-14T22:13:20Z"),
        (4_102_444_799, "2099-12-31T23:59:59Z"),
        (-1, "1969-12-31T23:59:59Z"),
    ] {
        assert_eq!(utc(seconds), want);
    }
    assert!(utc(i64::MAX).ends_with('Z') && utc(i64::MIN).ends_with('Z'));
}
