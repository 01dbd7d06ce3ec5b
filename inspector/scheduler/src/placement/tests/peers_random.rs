//! Random tiny clusters against kube-scheduler's filters, as written down in `naive`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use super::super::*;
use super::naive::{Cluster, Machine, Running};
use crate::constraint::{
    Expression, Labels, NodeConstraint, Operator, Peer, PodSelector, PodTerm, PodTerms, Taint, TaintEffect,
    Toleration, TolerationOperator, TopologySpread,
};
use crate::inventory::{Allocation, Inventory};
use crate::request::{Request, Shape};
use crate::testing::{hold, node, pod, sound};

/// Numbers of slots by shape and node.
type Slots = BTreeMap<(usize, usize), u32>;

#[derive(Clone, Debug)]
struct Scene {
    cluster: Cluster,
    shapes: Vec<Shape>,
    minimum: Option<u32>,
}

fn labels(pairs: &[(&str, String)]) -> Labels {
    let kept = pairs.iter().filter(|(_, value)| !value.is_empty());
    kept.map(|(key, value)| ((*key).into(), value.as_str().into())).collect()
}

fn expression() -> impl Strategy<Value = Expression> {
    let operators =
        vec![Operator::In, Operator::In, Operator::NotIn, Operator::Exists, Operator::DoesNotExist];
    (
        prop::sample::select(vec!["app", "tier"]),
        prop::sample::select(operators),
        prop::sample::subsequence(vec!["x", "y"], 1..=2),
    )
        .prop_map(|(key, operator, values)| {
            let valued = matches!(operator, Operator::In | Operator::NotIn);
            let values = if valued { values.into_iter().map(Into::into).collect() } else { Vec::new() };
            Expression { key: key.into(), operator, values }
        })
}

fn selected() -> impl Strategy<Value = Option<Vec<Expression>>> {
    prop::option::weighted(0.95, prop::collection::vec(expression(), 0..3))
}

fn selector() -> impl Strategy<Value = PodSelector> {
    let team = Expression { key: "team".into(), operator: Operator::In, values: vec!["red".into()] };
    let by_labels = prop::option::weighted(0.3, prop::sample::select(vec![vec![], vec![team]]));
    (prop::sample::subsequence(vec!["a", "b"], 0..=2), by_labels, selected()).prop_map(
        |(names, namespace_selector, labels)| PodSelector {
            namespaces: names.into_iter().map(Into::into).collect(),
            namespace_selector,
            labels,
        },
    )
}

fn key() -> impl Strategy<Value = Arc<str>> {
    prop::sample::select(vec!["zone", "zone", "host", "rack"]).prop_map(Arc::from)
}

fn term() -> impl Strategy<Value = PodTerm> {
    (selector(), key()).prop_map(|(selector, topology)| PodTerm { selector, topology })
}

fn spread() -> impl Strategy<Value = TopologySpread> {
    (selected(), key(), 1..3_u32, 1..4_u32, any::<(bool, bool)>()).prop_map(
        |(labels, topology, max_skew, min_domains, (honor_affinity, honor_taints))| TopologySpread {
            selector: PodSelector { labels, ..PodSelector::default() },
            topology,
            max_skew,
            min_domains,
            honor_affinity,
            honor_taints,
        },
    )
}

fn peer() -> impl Strategy<Value = Peer> {
    let terms = (
        prop::collection::vec(term(), 0..2),
        prop::collection::vec(term().prop_map(Arc::new), 0..2),
        prop::collection::vec(spread(), 0..2),
    )
        .prop_map(|(affinity, anti_affinity, spread)| PodTerms { affinity, anti_affinity, spread });
    let value = || prop::sample::select(vec!["x", "x", "y", ""]);
    (prop::sample::select(vec!["a", "b"]), value(), value(), prop::option::of(terms)).prop_map(
        |(namespace, app, tier, terms)| {
            let mut terms = terms.filter(|terms| !terms.is_empty());
            // A spread constraint counts Pods of its own namespace.
            for spread in terms.iter_mut().flat_map(|terms| &mut terms.spread) {
                spread.selector.namespaces = [namespace.into()].into();
            }
            Peer {
                mounts: None,
                preferences: None,
                volumes: None,
                namespace: namespace.into(),
                labels: Arc::new(labels(&[("app", app.to_owned()), ("tier", tier.to_owned())])),
                terms: terms.map(Arc::new),
                deleting: false,
            }
        },
    )
}

fn taint() -> Taint {
    Taint { key: "dedicated".into(), value: "".into(), effect: TaintEffect::NoSchedule }
}

fn shape() -> impl Strategy<Value = Shape> {
    (1..3_u32, 0..3_u64, peer(), prop::option::weighted(0.2, "[pq]"), any::<bool>()).prop_map(
        |(count, cpu, peer, zone, tolerant)| {
            let toleration = Toleration {
                key: None,
                operator: TolerationOperator::Exists,
                value: "".into(),
                effect: None,
            };
            let constraint = NodeConstraint {
                selector: labels(&[("zone", zone.unwrap_or_default())]),
                tolerations: tolerant.then_some(toleration).into_iter().collect(),
                ..NodeConstraint::default()
            };
            Shape {
                count,
                needs: pod(&format!("cpu={cpu}")),
                constraint: Arc::new(constraint),
                ports: Arc::default(),
                peer: Some(Arc::new(peer)),
                preferences: None,
            }
        },
    )
}

fn scene(shapes: impl Strategy<Value = Vec<Shape>>) -> impl Strategy<Value = Scene> {
    let machine = ("[pqr]?", "[st]?", 0..4_u64, prop::bool::weighted(0.2));
    let running = (0..4_usize, peer(), prop::bool::weighted(0.15));
    let minimum = prop::option::weighted(0.2, 1..3_u32);
    (prop::collection::vec(machine, 1..5), prop::collection::vec(running, 0..5), shapes, minimum).prop_map(
        |(machines, running, shapes, minimum)| {
            let machines: Vec<Machine> = (0..)
                .zip(machines)
                .map(|(at, (zone, rack, cpu, tainted))| Machine {
                    labels: labels(&[("zone", zone), ("rack", rack), ("host", format!("n{at}"))]),
                    taints: tainted.then(taint).into_iter().collect(),
                    cpu,
                })
                .collect();
            let nodes = machines.len();
            let running = running
                .into_iter()
                .map(|(node, pod, deleting)| Running { node: node % nodes, pod: Peer { deleting, ..pod } });
            let teams = [("a", "red"), ("b", "blue")];
            let teams = teams.map(|(name, team)| (name.into(), labels(&[("team", team.to_owned())])));
            let cluster =
                Cluster { running: running.collect(), machines, namespaces: teams.into_iter().collect() };
            let minimum = minimum.filter(|minimum| *minimum < shapes.iter().map(|shape| shape.count).sum());
            Scene { cluster, shapes, minimum }
        },
    )
}

impl Scene {
    fn inventory(&self) -> Inventory {
        let mut inventory = Inventory::new();
        for (name, labels) in &self.cluster.namespaces {
            inventory.set_namespace(name, Some(labels.clone()));
        }
        for (at, machine) in self.cluster.machines.iter().enumerate() {
            let mut spec = node(&format!("n{at}"), &format!("cpu={}", machine.cpu));
            spec.labels = machine.labels.clone();
            spec.taints = machine.taints.clone();
            inventory.set_node(spec);
        }
        for (at, running) in self.cluster.running.iter().enumerate() {
            let hold = Allocation { peer: Some(Arc::new(running.pod.clone())), ..hold("cpu=0", None) };
            inventory.hold(format!("h{at}").into(), &format!("n{}", running.node), hold);
        }
        inventory
    }

    fn request(&self) -> Request {
        Request { shapes: self.shapes.clone(), minimum: self.minimum, ..Request::default() }
    }

    fn accepted(&self, shape: &Shape) -> Vec<bool> {
        let wanted = &shape.constraint.selector;
        let has =
            |machine: &Machine| wanted.iter().all(|(key, value)| machine.labels.get(key) == Some(value));
        self.cluster.machines.iter().map(has).collect()
    }

    fn tolerated(&self, shape: &Shape) -> Vec<bool> {
        let tolerant = !shape.constraint.tolerations.is_empty();
        self.cluster.machines.iter().map(|machine| tolerant || machine.taints.is_empty()).collect()
    }

    /// Whether the filters allow one more Pod of the shape on the node, regardless of resources and node affinity.
    fn allows(&self, cluster: &Cluster, shape: &Shape, node: usize) -> bool {
        let peer = shape.peer.as_ref().unwrap();
        cluster.allows(peer, node, &self.accepted(shape), &self.tolerated(shape))
    }

    /// Every set of slots by shape and node that can be added one after the other.
    fn reachable(&self) -> BTreeSet<Slots> {
        let mut all = BTreeSet::from([Slots::new()]);
        let mut open: Vec<(Slots, Cluster)> = vec![(Slots::new(), self.cluster.clone())];
        while let Some((slots, cluster)) = open.pop() {
            for (at, shape) in self.shapes.iter().enumerate() {
                let (accepted, tolerated) = (self.accepted(shape), self.tolerated(shape));
                let placed: u32 = slots.iter().filter(|((of, _), _)| *of == at).map(|(_, count)| count).sum();
                for node in 0..cluster.machines.len() {
                    let used: u64 = slots
                        .iter()
                        .filter(|((_, on), _)| *on == node)
                        .map(|((of, _), count)| self.shapes[*of].needs.get("cpu") * u64::from(*count))
                        .sum();
                    if placed == shape.count
                        || !accepted[node]
                        || !tolerated[node]
                        || used + shape.needs.get("cpu") > cluster.machines[node].cpu * 1000
                        || !self.allows(&cluster, shape, node)
                    {
                        continue;
                    }
                    let mut slots = slots.clone();
                    *slots.entry((at, node)).or_default() += 1;
                    if all.insert(slots.clone()) {
                        let mut cluster = cluster.clone();
                        cluster.running.push(Running { node, pod: (**shape.peer.as_ref().unwrap()).clone() });
                        open.push((slots, cluster));
                    }
                }
            }
        }
        all
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn single_pods_get_the_verdict_of_the_filters_on_each_node(
        scene in scene(prop::collection::vec(shape(), 1..=1))
    ) {
        let mut inventory = scene.inventory();
        let request = scene.request();
        for prepared in [false, true] {
            if prepared {
                inventory.prepare_peers(std::iter::once(&request));
            }
            let plan = Plan::new(&inventory, &request, NodePolicy::Low);
            let rules = Rules::new(&plan, &Availability::window(&inventory, 0, 0, i64::MAX));
            for (at, machine) in scene.cluster.machines.iter().enumerate() {
                let id = inventory.id(&format!("n{at}")).unwrap();
                let denied = rules.as_ref().and_then(|rules| rules.check(0, id).err());
                let allowed = scene.allows(&scene.cluster, &scene.shapes[0], at);
                prop_assert_eq!(denied.is_none(), allowed, "{:?}: {:?}", machine, denied);
            }
            sound(&inventory);
        }
    }

    #[test]
    fn a_gang_is_placed_exactly_if_its_pods_can_be_placed_one_after_the_other(
        scene in scene(prop::collection::vec(shape(), 1..4))
    ) {
        let mut inventory = scene.inventory();
        let request = scene.request();
        inventory.prepare_peers(std::iter::once(&request));
        let reachable = scene.reachable();
        let count = |slots: &Slots| slots.values().copied().map(u64::from).sum::<u64>();
        let possible = reachable.iter().any(|slots| count(slots) >= request.needed());
        for policy in [NodePolicy::Low, NodePolicy::High] {
            let found = place_now(&inventory, &request, 0, policy);
            prop_assert_eq!(found.is_ok(), possible, "{:?}", found);
            if let Ok(placement) = found {
                let mut slots = BTreeMap::new();
                for slot in &placement.slots {
                    let node: usize = slot.node[1..].parse().unwrap();
                    *slots.entry((slot.shape as usize, node)).or_default() += slot.count;
                }
                prop_assert!(reachable.contains(&slots), "{placement:?}");
                prop_assert!(satisfiable(&inventory, &request));
            }
        }
    }

    #[test]
    fn holders_that_come_and_go_leave_the_index_as_a_new_one_would_be(
        scene in scene(prop::collection::vec(shape(), 1..3)),
        moves in prop::collection::vec((0..5_usize, 0..4_usize, any::<bool>()), 0..12)
    ) {
        let mut inventory = scene.inventory();
        let request = scene.request();
        inventory.prepare_peers(std::iter::once(&request));
        for (holder, at, goes) in moves {
            let holder = format!("h{holder}");
            let running = scene.cluster.running.get(at);
            match running {
                Some(running) if !goes => {
                    let peer = Some(Arc::new(running.pod.clone()));
                    let hold = Allocation { peer, ..hold("cpu=0", Some(9)) };
                    inventory.hold(holder.into(), &format!("n{at}"), hold);
                }
                _ => drop(inventory.release(&holder)),
            }
            sound(&inventory);
        }
    }
}
