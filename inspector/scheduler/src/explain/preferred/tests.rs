//! What is counted for all members at once, against the definition for each of them.

use proptest::prelude::*;

use super::*;
use crate::inventory::Allocation;
use crate::request::Shape;
use crate::testing::{cluster, hold, shape};

/// Nodes with their zones.
const NODES: [(&str, Option<&str>); 4] =
    [("n1", Some("a")), ("n2", Some("a")), ("n3", Some("b")), ("n4", None)];

#[derive(Clone, Copy, Debug)]
struct Pod {
    node: usize,
    /// Whether it has the label that is selected.
    selected: bool,
    /// Of another job, a member on its node, or a member that is only planned.
    what: Option<bool>,
}

fn pod() -> impl Strategy<Value = Pod> {
    (0..NODES.len(), any::<bool>(), any::<Option<bool>>()).prop_map(|(node, selected, what)| Pod {
        node,
        selected,
        what,
    })
}

fn wants(selected: bool) -> Shape {
    shape(1, "cpu=1")
        .labelled(if selected { "app=web" } else { "app=db" })
        .rather_near(5, "zone", "app=web")
        .rather_apart(7, "host", "app=web")
        .rather_spread("zone", 1, "app=web")
}

fn inventory(pods: &[Pod]) -> Inventory {
    let nodes = NODES.map(|(name, zone)| {
        let zone = zone.map(|zone| format!("zone:{zone}")).unwrap_or_default();
        (name, format!("cpu=100 host:{name} {zone}"))
    });
    let mut inventory = cluster(&nodes.each_ref().map(|(name, text)| (*name, text.as_str())));
    for (at, pod) in pods.iter().enumerate().filter(|(_, pod)| pod.what != Some(false)) {
        let held = Allocation { peer: wants(pod.selected).peer, ..hold("cpu=1", None) };
        inventory.hold(format!("p{at}").into(), NODES[pod.node].0, held);
    }
    inventory
}

/// How many members have their preferences met: affinity, anti-affinity, and spread.
fn found(pods: &[Pod]) -> [u32; 3] {
    let inventory = inventory(pods);
    let shapes: Vec<(String, Shape)> =
        pods.iter().enumerate().map(|(at, pod)| (format!("p{at}"), wants(pod.selected))).collect();
    let members = pods.iter().zip(&shapes).filter_map(|(pod, (name, shape))| {
        Some(Placed {
            holder: pod.what?.then_some(name.as_str()),
            node: NODES[pod.node].0,
            constraint: &shape.constraint,
            preferences: shape.preferences.as_deref(),
            peer: shape.peer.as_deref().cloned().unwrap(),
        })
    });
    let list = preferences(&inventory, &members.collect::<Vec<_>>());
    ["pod affinity", "pod anti-affinity", "spread"]
        .map(|text| list.iter().find(|one| one.text.starts_with(text)).map_or(0, |one| one.met))
}

/// The same, for one member after the other.
fn expected(pods: &[Pod]) -> [u32; 3] {
    let mut met = [0; 3];
    for (at, member) in pods.iter().enumerate().filter(|(_, pod)| pod.what.is_some()) {
        let others = || pods.iter().enumerate().filter(|(other, pod)| *other != at && pod.selected);
        let zone = |pod: &Pod| NODES[pod.node].1;
        let near = zone(member).is_some() && others().any(|(_, pod)| zone(pod) == zone(member));
        let apart = !others().any(|(_, pod)| pod.node == member.node);
        let all = others().map(|(_, pod)| pod).chain(member.selected.then_some(member));
        let zones: Vec<_> = all.filter_map(zone).collect();
        let count = |zone: &str| zones.iter().filter(|one| **one == zone).count();
        let even = zone(member).is_some_and(|zone| count(zone) <= count("a").min(count("b")) + 1);
        for (met, now) in met.iter_mut().zip([near, apart, even]) {
            *met += u32::from(now);
        }
    }
    met
}

proptest! {
    #[test]
    fn each_member_is_told_of_all_but_itself(pods in prop::collection::vec(pod(), 0..12)) {
        prop_assert_eq!(found(&pods), expected(&pods));
    }
}
