//! Constraints between Pods, with placements that are known to be right.

use std::sync::Arc;

use super::super::*;
use super::{never, now};
use crate::explain::why_not;
use crate::inventory::{Allocation, Inventory};
use crate::request::{Request, Shape};
use crate::testing::{cluster, gang, hold, line, peer, shape, shown, sound};

/// Two zones of two nodes each.
fn zones() -> Inventory {
    cluster(&[
        ("n1", "cpu=4 zone:a host:n1"),
        ("n2", "cpu=4 zone:a host:n2"),
        ("n3", "cpu=4 zone:b host:n3"),
        ("n4", "cpu=4 zone:b host:n4"),
    ])
}

fn run(inventory: &mut Inventory, name: &str, node: &str, shape: &Shape, until: Option<i64>) {
    let hold = Allocation { peer: shape.peer.clone(), ..hold("cpu=1", until) };
    inventory.hold(name.into(), node, hold);
}

fn of(shape: Shape) -> Request {
    Request { shapes: vec![shape], ..Request::default() }
}

fn web(count: u32) -> Shape {
    shape(count, "cpu=1").labelled("app=web")
}

#[test]
fn members_that_keep_each_other_away_are_on_different_nodes() {
    let inventory = zones();
    let gang = |count| of(web(count).apart("host", "app=web"));
    assert_eq!(now(&inventory, &gang(4)).unwrap(), "n1:0x1 n2:0x1 n3:0x1 n4:0x1");
    let why = never(&inventory, &gang(5));
    assert_eq!(
        line(&why),
        "4/4 nodes are available; 5 members must start together, but there is room for only 4, even when all nodes are empty (limited by other Pods or volumes)"
    );
    assert_eq!(now(&inventory, &of(web(2).apart("zone", "app=web"))).unwrap(), "n1:0x1 n3:0x1");
    let high = place_now(&inventory, &gang(2), 0, NodePolicy::High).unwrap();
    assert_eq!(shown(&high), "n4:0x1 n3:0x1");
}

#[test]
fn a_pod_keeps_away_from_those_that_are_there_and_they_from_it() {
    let mut inventory = zones();
    run(&mut inventory, "db", "n1", &shape(1, "").labelled("app=db"), None);
    run(&mut inventory, "jealous", "n3", &shape(1, "").labelled("app=x").apart("host", "app=web"), None);
    let wants = web(1).apart("zone", "app=db");
    assert_eq!(now(&inventory, &of(wants.clone())).unwrap(), "n4:0x1");
    assert_eq!(now(&inventory, &of(web(9))).unwrap(), "n1:0x3 n2:0x4 n4:0x2");
    run(&mut inventory, "more", "n4", &shape(1, "").labelled("app=x").apart("zone", "app=web"), Some(9));
    assert_eq!(now(&inventory, &of(wants.clone())), None);
    assert_eq!(
        line(&why_not(&inventory, &of(wants.clone()), 0)),
        "0/4 nodes are available: 2 didn't match pod anti-affinity rules, 2 didn't satisfy existing pods' anti-affinity rules"
    );
    let planned = earliest(&inventory, &of(wants), 0, NodePolicy::Low).unwrap();
    assert_eq!((planned.start, shown(&planned.placement)), (9, "n4:0x1".to_owned()));
    sound(&inventory);
}

#[test]
fn affinity_needs_somebody_unless_the_pods_look_for_each_other() {
    let mut inventory = zones();
    let follower = of(web(1).near("zone", "app=db"));
    assert_eq!(now(&inventory, &follower), None);
    assert!(satisfiable(&inventory, &follower), "such a Pod may come");
    assert_eq!(
        line(&why_not(&inventory, &follower, 0)),
        "0/4 nodes are available: 4 didn't match pod affinity rules; no start time estimate: it depends on other Pods or volumes"
    );
    run(&mut inventory, "db", "n3", &shape(1, "").labelled("app=db"), None);
    assert_eq!(now(&inventory, &follower).unwrap(), "n3:0x1");
    let series = of(web(6).near("zone", "app=web"));
    assert_eq!(now(&inventory, &series).unwrap(), "n1:0x4 n2:0x2");
    run(&mut inventory, "web", "n4", &web(1), None);
    assert_eq!(now(&inventory, &series).unwrap(), "n3:0x3 n4:0x3", "there is one, so it is near that one");
    let unlabelled = of(web(1).near("rack", "app=web"));
    assert!(!satisfiable(&inventory, &unlabelled));
    assert_eq!(
        line(&why_not(&inventory, &unlabelled, 0)),
        "0/4 nodes are available: 4 didn't have topology label rack"
    );
}

#[test]
fn a_series_begins_where_all_of_it_has_room() {
    let inventory = cluster(&[
        ("n1", "cpu=2 zone:a"),
        ("n2", "cpu=2 zone:b"),
        ("n3", "cpu=2 zone:b"),
        ("n4", "cpu=3 zone:c"),
    ]);
    let series = |count| of(web(count).near("zone", "app=web"));
    assert_eq!(now(&inventory, &series(2)).unwrap(), "n1:0x2");
    assert_eq!(now(&inventory, &series(3)).unwrap(), "n2:0x2 n3:0x1");
    assert_eq!(now(&inventory, &series(5)), None);
    // The clients come after the servers they need, and both turn to the zone with room for all.
    let pair = of(shape(2, "cpu=1").labelled("app=client").near("zone", "app=server"))
        .and(shape(2, "cpu=1").labelled("app=server").near("zone", "app=server"));
    assert_eq!(now(&inventory, &pair).unwrap(), "n2:0x1 n2:1x1 n3:0x1 n3:1x1");
}

#[test]
fn members_are_spread() {
    let mut inventory = zones();
    let spread = |count| of(web(count).spread("zone", 1, "app=web"));
    assert_eq!(now(&inventory, &spread(4)).unwrap(), "n1:0x2 n3:0x2");
    run(&mut inventory, "web-0", "n1", &web(1), None);
    run(&mut inventory, "web-1", "n2", &web(1), None);
    assert_eq!(now(&inventory, &spread(4)).unwrap(), "n1:0x1 n3:0x3");
    for at in 0..4 {
        run(&mut inventory, &format!("n3-{at}"), "n3", &shape(1, ""), None);
        run(&mut inventory, &format!("n4-{at}"), "n4", &shape(1, ""), None);
    }
    let why = line(&why_not(&inventory, &spread(1), 0));
    let nodes = "0/4 nodes are available: 2 had insufficient cpu, 2 didn't match pod topology spread constraints (zone); no start time estimate: ";
    assert!(why.starts_with(nodes), "{why}");
}

#[test]
fn whoever_leaves_before_a_planned_start_does_not_count() {
    let mut inventory = zones();
    for (at, until) in [("n1", 5), ("n2", 9), ("n3", 7), ("n4", 8)] {
        run(&mut inventory, at, at, &web(1), Some(until));
    }
    let gang = |count| of(web(count).apart("host", "app=web")).lasting(10);
    let planned = |count| earliest(&inventory, &gang(count), 0, NodePolicy::Low).unwrap().start;
    assert_eq!([1, 2, 3, 4].map(planned), [5, 7, 8, 9]);
}

#[test]
fn what_is_promised_is_kept_free_of_those_it_excludes() {
    let mut inventory = zones();
    let jealous = of(shape(1, "cpu=1").labelled("app=x").apart("zone", "app=web")).lasting(10);
    let placement = place_now(&inventory, &jealous, 0, NodePolicy::Low).unwrap();
    inventory.reserve(1, &jealous, placement, 20, Some(30));
    assert_eq!(now(&inventory, &of(web(1)).lasting(20)).unwrap(), "n1:0x1", "it is gone by then");
    assert_eq!(now(&inventory, &of(web(1)).lasting(21)).unwrap(), "n3:0x1");
    let failed = place_now(&inventory, &of(web(9)).lasting(21), 0, NodePolicy::Low).unwrap_err();
    assert_eq!(failed.behind, [1]);
}

#[test]
fn as_many_as_are_allowed_start_if_there_is_a_minimum() {
    let inventory = zones();
    let gang = of(web(6).apart("host", "app=web"));
    assert_eq!(now(&inventory, &gang.clone().at_least(3)).unwrap(), "n1:0x1 n2:0x1 n3:0x1 n4:0x1");
    assert_eq!(now(&inventory, &gang.at_least(5)), None);
    let in_zone = of(web(3).apart("host", "app=web")).within("zone");
    assert_eq!(now(&inventory, &in_zone.clone().at_least(2)).unwrap(), "n1:0x1 n2:0x1");
    assert_eq!(now(&inventory, &in_zone), None);
}

#[test]
fn pods_without_constraints_are_placed_as_ever() {
    let mut inventory = zones();
    let plain = Arc::new(peer("app=web"));
    run(&mut inventory, "x", "n1", &shape(1, "").labelled("app=x").apart("host", "app=other"), None);
    let with = Shape { peer: Some(plain), ..shape(7, "cpu=1") };
    assert_eq!(now(&inventory, &of(with)), now(&inventory, &gang(7, "cpu=1")));
}

#[test]
fn a_search_that_can_not_end_says_so() {
    let names: Vec<String> = (0..40).map(|at| format!("n{at}")).collect();
    let texts: Vec<String> =
        (0..40).map(|at| format!("cpu=4 x:{} y:{} z:{}", at % 7, at % 11, at % 13)).collect();
    let nodes: Vec<(&str, &str)> =
        names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let inventory = cluster(&nodes);
    let gang = of(web(8).apart("x", "app=web").apart("y", "app=web").apart("z", "app=web"));
    let why = never(&inventory, &gang);
    assert!(why.gang.as_ref().unwrap().cut, "{why:?}");
    assert_eq!(
        line(&why),
        "40/40 nodes are available; 8 members must start together, but there is room for only 7, even when all nodes are empty (the search under inter-Pod affinity and topology spread constraints reached its limit)"
    );
}

#[test]
fn huge_gangs_are_searched_within_a_limit() {
    let inventory = cluster(&[("n1", "memory=5000000000 zone:a pods=5000000000")]);
    let huge = |count| {
        let mut shape = web(count).spread("zone", u32::MAX, "app=web").near("zone", "app=web");
        shape.needs = Arc::new([("memory".into(), 1)].into_iter().collect());
        of(shape)
    };
    assert_eq!(now(&inventory, &huge(100_000)).unwrap(), "n1:0x100000");
    assert!(!satisfiable(&inventory, &huge(u32::MAX)));
}
