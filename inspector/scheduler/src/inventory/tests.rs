use std::sync::Arc;

use super::*;
use crate::constraint::Exclusion;
use crate::testing::{cluster, hold, list, node, pod, sound, tcp};

#[test]
fn every_pod_counts_whoever_bound_it_and_frees_its_share() {
    let mut inventory = cluster(&[("n1", "cpu=4 memory=8000 pods=10")]);
    let foreign = |text: &str| Allocation { kind: AllocationKind::Foreign, ..hold(text, None) };
    inventory.hold("cni".into(), "n1", foreign("cpu=250m memory=200"));
    inventory.hold("web".into(), "n1", foreign("cpu=3250m memory=1000"));
    sound(&inventory);
    let view = inventory.node("n1").unwrap();
    assert_eq!(view.allocated, list("cpu=3500m memory=1200 pods=2"));
    assert_eq!(view.foreign, view.allocated);
    assert_eq!(view.free, list("cpu=500m memory=6800 pods=8"));
    let before = inventory.freed_generation();
    inventory.hold("mine".into(), "n1", hold("cpu=100m", None));
    assert_eq!(inventory.freed_generation(), before, "taking frees nothing");
    assert!(inventory.release("web"));
    assert!(!inventory.release("web"), "once only");
    assert!(inventory.freed_generation() > before);
    assert_eq!(inventory.node("n1").unwrap().free, list("cpu=3650m memory=7800 pods=8"));
    assert!(inventory.release("cni") && inventory.release("mine"));
    let fresh = cluster(&[("n1", "cpu=4 memory=8000 pods=10")]);
    assert_eq!(inventory.node("n1"), fresh.node("n1"));
    sound(&inventory);
}

#[test]
fn a_lost_device_is_a_deficit_and_never_frees() {
    let mut inventory = cluster(&[("gpu-1", "cpu=32 gpu=8 pods=50")]);
    inventory.hold("eight".into(), "gpu-1", hold("cpu=8 gpu=8", None));
    let mut spec = node("gpu-1", "cpu=32 gpu=8 pods=50");
    spec.allocatable.set("gpu", 6);
    inventory.set_node(spec.clone());
    spec.labels.insert("touched".into(), "yes".into());
    inventory.set_node(spec);
    sound(&inventory);
    let view = inventory.node("gpu-1").unwrap();
    assert_eq!(view.deficit, list("gpu=2"));
    assert_eq!(view.free, list("cpu=24 gpu=0 pods=49"));
    assert_eq!(view.allocated, list("cpu=8 gpu=8 pods=1"));
}

#[test]
fn holding_is_idempotent_and_moves() {
    let mut inventory = cluster(&[("a", "cpu=4"), ("b", "cpu=4")]);
    inventory.hold("p".into(), "a", hold("cpu=1", None));
    let freed = inventory.freed_generation();
    inventory.hold("p".into(), "a", hold("cpu=1", None));
    assert_eq!(inventory.freed_generation(), freed);
    inventory.hold("p".into(), "b", hold("cpu=2", Some(50)));
    sound(&inventory);
    assert_eq!(inventory.node("a").unwrap().holders.len(), 0);
    assert_eq!(inventory.node("b").unwrap().allocated, list("cpu=2 pods=1"));
    assert!(inventory.freed_generation() > freed);
    assert!(inventory.retime("p", Some(70)));
    assert_eq!(inventory.holding("p").unwrap().1.until, Some(70));
    assert!(!inventory.retime("q", None));
    sound(&inventory);
}

#[test]
fn taking_frees_nothing_and_all_else_may() {
    let mut inventory = cluster(&[("a", "cpu=4"), ("b", "cpu=4")]);
    let freed = inventory.freed_generation();
    let assumed = Allocation { kind: AllocationKind::Assumed, ..hold("cpu=1", Some(9)) };
    inventory.hold("p".into(), "a", assumed.clone());
    let bound = Allocation { kind: AllocationKind::Bound, from: 3, ..assumed };
    inventory.hold("p".into(), "a", bound.clone());
    inventory.hold("q".into(), "a", hold("cpu=1", None));
    assert!(!inventory.release("r"));
    inventory.remove_node("c");
    inventory.set_node(node("a", "cpu=4"));
    assert_eq!(inventory.freed_generation(), freed);
    let smaller = Allocation { needs: hold("cpu=0", None).needs, ..bound.clone() };
    let ports = Allocation { ports: Arc::new([tcp("", 80)]), ..bound.clone() };
    let changes: [(&str, Allocation); 6] = [
        ("a", smaller),
        ("a", bound.clone()),
        ("a", ports),
        ("a", Allocation { until: Some(8), ..bound.clone() }),
        ("a", Allocation { permanent: true, until: Some(8), ..bound.clone() }),
        ("b", Allocation { permanent: true, until: Some(8), ..bound }),
    ];
    for (on, share) in changes {
        let before = (inventory.freed_generation(), inventory.graph_generation());
        inventory.hold("p".into(), on, share.clone());
        let after = (inventory.freed_generation(), inventory.graph_generation());
        assert_eq!(after, (before.0 + 1, before.1), "{share:?}");
    }
    let before = inventory.freed_generation();
    assert!(inventory.retime("p", Some(8)));
    assert_eq!(inventory.freed_generation(), before, "it had that end");
    assert!(inventory.retime("p", None) && inventory.release("p"));
    assert_eq!(inventory.freed_generation(), before + 2);
    let graph = inventory.graph_generation();
    inventory.set_node(node("c", "cpu=1"));
    inventory.set_node(node("c", "cpu=2"));
    inventory.join(&"rack".into(), &"r1".into(), "c");
    inventory.remove_node("c");
    assert_eq!((inventory.freed_generation(), inventory.graph_generation()), (before + 6, graph + 4));
}

#[test]
fn books_outlive_nodes_and_come_before_them() {
    let mut inventory = Inventory::new();
    inventory.hold("early".into(), "n1", hold("cpu=1", Some(10)));
    assert!(inventory.node("n1").is_none());
    assert_eq!(inventory.node_count(), 0);
    inventory.set_node(node("n1", "cpu=4"));
    assert_eq!(inventory.node("n1").unwrap().free.get("cpu"), 3000);
    inventory.remove_node("n1");
    inventory.remove_node("n1");
    assert!(inventory.node("n1").is_none());
    assert_eq!(inventory.holding("early").unwrap().0.as_ref(), "n1");
    let mut again = node("n1", "cpu=8");
    again.uid = "second".into();
    inventory.set_node(again);
    assert_eq!(inventory.node("n1").unwrap().free.get("cpu"), 7000);
    sound(&inventory);
    inventory.remove_node("n1");
    inventory.release("early");
    assert_eq!(inventory.holdings().count(), 0);
    inventory.set_node(node("n2", "cpu=1"));
    sound(&inventory);
}

#[test]
fn nodes_come_in_natural_order() {
    let inventory = cluster(&[("n10", "cpu=1"), ("n2", "cpu=1"), ("n1", "cpu=1")]);
    let names: Vec<_> = inventory.node_names().map(|name| name.to_string()).collect();
    assert_eq!(names, ["n1", "n2", "n10"]);
}

#[test]
fn sums_beyond_any_quantity_are_a_deficit_not_a_panic() {
    let mut inventory = cluster(&[("n", "memory=10")]);
    for holder in ["a", "b", "c"] {
        let mut huge = hold("cpu=1", None);
        let mut needs = pod("cpu=1").as_ref().clone();
        needs.set("memory", u64::MAX);
        huge.needs = Arc::new(needs);
        inventory.hold(holder.into(), "n", huge);
    }
    let view = inventory.node("n").unwrap();
    assert_eq!(view.deficit.get("memory"), u64::MAX);
    for holder in ["a", "b", "c"] {
        inventory.release(holder);
    }
    assert_eq!(inventory.node("n"), cluster(&[("n", "memory=10")]).node("n"));
}

#[test]
fn a_changed_label_moves_the_node() {
    let mut inventory = cluster(&[("a", "cpu=1 rack:x"), ("b", "cpu=1 rack:x"), ("c", "cpu=1")]);
    inventory.set_levels(["rack".into()]);
    assert_eq!(inventory.domains_of("rack"), [("x".into(), vec!["a".into(), "b".into()])]);
    inventory.prepare_level(&"rack".into());
    inventory.set_node(node("b", "cpu=1 rack:y"));
    assert_eq!(
        inventory.domains_of("rack"),
        [("x".into(), vec!["a".into()]), ("y".into(), vec!["b".into()])]
    );
    assert_eq!(inventory.node("b").unwrap().levels, [("rack".into(), "y".into())].into());
}

#[test]
fn a_node_says_why_it_takes_nothing() {
    let mut spec = node("n", "cpu=1");
    spec.unschedulable = true;
    spec.ready = false;
    let mut inventory = Inventory::new();
    inventory.set_node(spec);
    let view = inventory.node("n").unwrap();
    assert!(!view.eligible);
    assert_eq!(view.reasons, [Exclusion::NotReady, Exclusion::Cordoned]);
}

#[test]
fn nominated_shares_are_kept_free_but_not_allocated() {
    let mut inventory = cluster(&[("n", "cpu=4")]);
    inventory.hold("n1".into(), "n", Allocation { kind: AllocationKind::Nominated, ..hold("cpu=3", None) });
    let view = inventory.node("n").unwrap();
    assert_eq!(view.allocated.get("cpu"), 0);
    assert_eq!(view.nominated.get("cpu"), 3000);
    assert_eq!(view.free.get("cpu"), 1000);
    sound(&inventory);
}

#[test]
fn a_clone_stands_still() {
    let mut inventory = cluster(&[("n", "cpu=4")]);
    let snapshot = inventory.clone();
    let mut ported = hold("cpu=1", Some(5));
    ported.ports = Arc::new([tcp("", 80)]);
    inventory.hold("p".into(), "n", ported);
    inventory.set_node(node("m", "cpu=9"));
    assert_eq!(snapshot.node("n").unwrap().free.get("cpu"), 4000);
    assert!(snapshot.node("m").is_none());
    sound(&snapshot);
    sound(&inventory);
}

mod random;

#[test]
fn the_first_assumed_end_is_the_one_that_is_waited_for() {
    let mut inventory = cluster(&[("n1", "cpu=4"), ("n2", "cpu=4")]);
    assert_eq!(inventory.next_assumed_end(), None);
    let assumed = |until| Allocation { end_assumed: true, ..hold("cpu=1", Some(until)) };
    inventory.hold("later".into(), "n1", assumed(90));
    inventory.hold("first".into(), "n2", assumed(60));
    inventory.hold("limited".into(), "n2", hold("cpu=1", Some(30)));
    assert_eq!(inventory.next_assumed_end(), Some(60));
    assert!(inventory.prolong(60));
    assert_eq!(inventory.next_assumed_end(), Some(90));
}

#[test]
fn numbers_that_are_not_those_of_the_book_are_found() {
    let mut inventory = cluster(&[("n1", "cpu=4")]);
    let (id, cpu) = (inventory.id("n1").unwrap(), inventory.columns().kind("cpu").unwrap());
    let numbers = inventory.book(id).unwrap().numbers(cpu);
    inventory.columns.set(id, cpu, columns::Numbers { free: numbers.free - 1, ..numbers });
    assert!(!crate::check::check(&inventory).is_empty());
}
