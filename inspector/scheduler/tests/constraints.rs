//! Constraints between Pods: which nodes a Pod gets, with what it and others require of each other's places.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use fluxion_scheduler::constraint::{
    Expression, Namespaces, NodeConstraint, Operator, PodSelector, PodTerm, PodTerms, Preferences,
    PreferredPods, Term, TopologySpread,
};
use fluxion_scheduler::event::{Effect, Event};
use fluxion_scheduler::model::{Phase, PodSpec, SharedStr};
use fluxion_scheduler::queue::{QueueConfig, QueuePolicy};
use fluxion_scheduler::state::{JobState, Settings};
use proptest::prelude::*;
use world::{World, in_group};

/// Pods with `app=APP` in the test's namespace.
fn app(app: &str) -> PodSelector {
    let expression = Expression { key: "app".into(), operator: Operator::In, values: vec![app.into()] };
    PodSelector {
        namespaces: ["default".into()].into(),
        namespace_selector: None,
        labels: Some(vec![expression]),
    }
}

fn term(topology: &str, selector: PodSelector) -> PodTerm {
    PodTerm { selector, topology: topology.into() }
}

fn apart(topology: &str, of: &str) -> PodTerms {
    PodTerms { anti_affinity: vec![Arc::new(term(topology, app(of)))], ..PodTerms::default() }
}

fn near(topology: &str, of: &str) -> PodTerms {
    PodTerms { affinity: vec![term(topology, app(of))], ..PodTerms::default() }
}

fn spread(topology: &str, of: &str) -> PodTerms {
    let spread = TopologySpread {
        selector: app(of),
        topology: topology.into(),
        max_skew: 1,
        min_domains: 1,
        honor_affinity: true,
        honor_taints: false,
    };
    PodTerms { spread: vec![spread], ..PodTerms::default() }
}

fn labelled(app: &str, terms: Option<PodTerms>) -> impl FnOnce(&mut PodSpec) {
    move |pod| {
        pod.labels.insert("app".into(), app.into());
        pod.labels.insert("pod".into(), pod.name.clone());
        pod.terms = terms.map(Arc::new);
    }
}

fn world(nodes: usize) -> World {
    world_under(QueueConfig::default(), nodes)
}

/// Nodes with their names as hosts, in two zones by turns.
fn world_under(queue: QueueConfig, nodes: usize) -> World {
    let mut world = World::new(Settings { queues: vec![queue], ..Settings::default() });
    for at in 1..=nodes {
        let name = format!("n{at}");
        world.node_with(&name, "cpu=4000", |node| {
            node.labels.insert("host".into(), name.as_str().into());
            node.labels.insert("zone".into(), if at % 2 == 1 { "a" } else { "b" }.into());
        });
    }
    world
}

fn foreign(world: &mut World, name: &str, node: &str, of: &str, terms: Option<PodTerms>) {
    world.pod_with(name, "cpu=0", |pod| {
        labelled(of, terms)(pod);
        pod.scheduler_name = "default-scheduler".into();
        pod.node = Some(node.into());
        pod.phase = Phase::Running;
    });
}

#[test]
fn a_pod_is_not_bound_beside_one_that_forbids_it() {
    let mut world = world(3);
    foreign(&mut world, "jealous", "n1", "x", Some(apart("zone", "web")));
    world.pod_with("web", "cpu=1000", labelled("web", None));
    assert_eq!(world.node_of("web"), Some("n2"), "n1 and n3 are in its zone");
    world.pod_with("other", "cpu=1000", labelled("other", None));
    assert_eq!(world.node_of("other"), Some("n1"));
    foreign(&mut world, "more", "n2", "x", Some(apart("zone", "web")));
    world.pod_with("late", "cpu=1000", labelled("web", None));
    assert_eq!(world.state_of("pod.late"), JobState::Reserved);
    let told = world.told("pod.late");
    assert!(
        told.contains("0/3 nodes are available: 3 didn't satisfy existing pods' anti-affinity"),
        "{told}"
    );
    world.delete_pod("jealous");
    assert_eq!(world.node_of("late"), Some("n1"));
}

#[test]
fn jobs_of_one_pass_keep_to_each_others_constraints() {
    let mut world = world(2);
    let events: Vec<Event> = ["web", "db", "web-2"]
        .iter()
        .map(|name| {
            let of = name.trim_end_matches("-2");
            let terms = (of == "db").then(|| apart("zone", "web"));
            Event::Pod(Box::new(world.make_pod(name, "cpu=1000", labelled(of, terms))))
        })
        .collect();
    world.step(events);
    let nodes = ["web", "db", "web-2"].map(|pod| world.node_of(pod).unwrap().to_owned());
    assert_ne!(nodes[0], nodes[1]);
    assert_ne!(nodes[1], nodes[2]);
}

#[test]
fn what_pods_on_nodes_prefer_about_a_pod_counts_too() {
    let mut world = world(3);
    let prefers = |apart: bool, weight: u32| {
        let term = term("host", app("web"));
        move |pod: &mut PodSpec| {
            labelled("x", None)(pod);
            pod.scheduler_name = "default-scheduler".into();
            pod.phase = Phase::Running;
            let pods = vec![PreferredPods { weight, apart, term }];
            pod.preferences = Some(Arc::new(Preferences { pods, ..Preferences::default() }));
        }
    };
    let place = |world: &mut World, name: &str, node: &str, prefer: &dyn Fn(&mut PodSpec)| {
        world.pod_with(name, "cpu=0", |pod| {
            prefer(pod);
            pod.node = Some(node.into());
        });
    };
    place(&mut world, "shy", "n1", &|pod| prefers(true, 5)(pod));
    world.pod_with("web", "cpu=1000", labelled("web", None));
    assert_eq!(world.node_of("web"), Some("n2"));
    place(&mut world, "fond", "n3", &|pod| prefers(false, 10)(pod));
    for web in ["web-1", "web-2", "web-3", "web-4"] {
        world.pod_with(web, "cpu=1000", labelled("web", None));
        assert_eq!(world.node_of(web), Some("n3"));
    }
    // They keep nobody from starting, and concern no other Pods.
    world.pod_with("other", "cpu=1000", labelled("other", None));
    assert_eq!(world.node_of("other"), Some("n1"));
    for (web, node) in [("web-5", "n2"), ("web-6", "n1")] {
        world.pod_with(web, "cpu=3000", labelled("web", None));
        assert_eq!(world.node_of(web), Some(node));
    }
}

#[test]
fn labels_of_a_namespace_count_as_soon_as_they_change() {
    let mut world = world(2);
    let namespace = |team: &str| Event::Namespace {
        name: "elsewhere".into(),
        labels: [("team".into(), team.into())].into(),
    };
    let red = PodSelector {
        namespaces: [].into(),
        namespace_selector: Some(vec![Expression {
            key: "team".into(),
            operator: Operator::In,
            values: vec!["red".into()],
        }]),
        labels: Some(Vec::new()),
    };
    world.step(vec![namespace("blue")]);
    let mut other = world.make_pod("other", "cpu=0", labelled("other", None));
    other.namespace = "elsewhere".into();
    other.scheduler_name = "default-scheduler".into();
    other.node = Some("n2".into());
    other.phase = Phase::Running;
    world.pods.insert(other.uid.clone(), other.clone());
    world.step(vec![Event::Pod(Box::new(other))]);
    // Nobody else changes: only the namespace does.
    let near_red = PodTerms { affinity: vec![term("host", red.clone())], ..PodTerms::default() };
    world.pod_with("near", "cpu=1000", labelled("x", Some(near_red)));
    assert_eq!(world.state_of("pod.near"), JobState::Pending);
    world.step(vec![namespace("red")]);
    assert_eq!(world.node_of("near"), Some("n2"), "{}", world.told("pod.near"));
    // The same for what keeps Pods away, and when the namespace is deleted.
    let apart_from_red = PodTerms { anti_affinity: vec![Arc::new(term("host", red))], ..PodTerms::default() };
    world.pod_with("apart", "cpu=4000", |pod| {
        labelled("y", Some(apart_from_red))(pod);
        let only_n2 = Expression { key: "host".into(), operator: Operator::In, values: vec!["n2".into()] };
        let affinity = Some(vec![Term { labels: vec![only_n2], fields: Vec::new() }]);
        pod.constraint = Arc::new(NodeConstraint { affinity, ..NodeConstraint::default() });
    });
    world.delete_pod("near");
    assert_eq!(world.node_of("apart"), None);
    world.step(vec![Event::NamespaceGone("elsewhere".into())]);
    assert_eq!(world.node_of("apart"), Some("n2"), "{}", world.told("pod.apart"));
}

#[test]
fn labels_of_a_namespace_count_for_the_constraints_of_others() {
    let mut world = world(1);
    let namespace = |team: &str| Event::Namespace {
        name: "default".into(),
        labels: [("team".into(), team.into())].into(),
    };
    world.step(vec![namespace("red")]);
    let red = Expression { key: "team".into(), operator: Operator::In, values: vec!["red".into()] };
    let selector =
        PodSelector { namespaces: [].into(), namespace_selector: Some(vec![red]), labels: Some(Vec::new()) };
    let terms = PodTerms { anti_affinity: vec![Arc::new(term("host", selector))], ..PodTerms::default() };
    foreign(&mut world, "jealous", "n1", "x", Some(terms));
    world.pod_with("p", "cpu=1000", labelled("y", None));
    assert_eq!(world.node_of("p"), None);
    world.step(vec![namespace("blue")]);
    assert_eq!(world.node_of("p"), Some("n1"), "{}", world.told("pod.p"));
}

#[test]
fn whoever_waits_for_a_pod_starts_with_it() {
    let mut world = world(2);
    world.pod_with("client", "cpu=1000", labelled("client", Some(near("host", "server"))));
    assert_eq!(world.state_of("pod.client"), JobState::Pending);
    let told = world.told("pod.client");
    assert!(told.contains("2 didn't match pod affinity rules"), "{told}");
    foreign(&mut world, "server", "n2", "server", None);
    assert_eq!(world.node_of("client"), Some("n2"));
    // Ours too, in whatever order they are queued.
    world.pod_with("second", "cpu=1000", labelled("second", Some(near("host", "third"))));
    world.pod_with("third", "cpu=1000", labelled("third", None));
    assert_eq!(world.node_of("second"), world.node_of("third"));
    assert!(world.node_of("second").is_some());
}

#[test]
fn spread_starts_where_others_have_left_or_come() {
    let mut world = world(2);
    for at in 0..2 {
        world.pod_with(&format!("web-{at}"), "cpu=1000", labelled("web", Some(spread("zone", "web"))));
    }
    assert_eq!((world.node_of("web-0"), world.node_of("web-1")), (Some("n1"), Some("n2")));
    world.node_with("n2", "cpu=1000", |node| {
        node.labels.insert("zone".into(), "b".into());
    });
    world.pod_with("web-2", "cpu=1000", labelled("web", Some(spread("zone", "web"))));
    world.pod_with("web-3", "cpu=1000", labelled("web", Some(spread("zone", "web"))));
    assert_eq!((world.node_of("web-2"), world.node_of("web-3")), (Some("n1"), None));
    let told = world.told("pod.web-3");
    assert!(told.contains("1 didn't match pod topology spread constraints (zone)"), "{told}");
    // A terminating Pod no longer counts.
    world.change_pod("web-0", |pod| pod.deleting = true);
    assert_eq!(world.node_of("web-3"), Some("n1"));
}

#[test]
fn a_gang_and_its_replacements_keep_apart() {
    let mut world = world(4);
    let controller = world.job_object("mpi", 3, 3, true);
    for at in 0..3 {
        world.pod_with(&format!("mpi-{at}"), "cpu=1000", |pod| {
            labelled("mpi", Some(apart("host", "mpi")))(pod);
            pod.controller = Some(controller.clone());
        });
    }
    let on = |world: &World, at: &str| world.node_of(at).map(str::to_owned);
    let nodes = ["mpi-0", "mpi-1", "mpi-2"].map(|pod| on(&world, pod).unwrap());
    assert_eq!(nodes, ["n1", "n2", "n3"]);
    world.delete_pod("mpi-1");
    foreign(&mut world, "squatter", "n2", "mpi", None);
    world.pod_with("mpi-3", "cpu=1000", |pod| {
        labelled("mpi", Some(apart("host", "mpi")))(pod);
        pod.controller = Some(controller.clone());
    });
    assert_eq!(on(&world, "mpi-3").as_deref(), Some("n4"), "n2 is no longer allowed");
}

#[test]
fn namespaces_are_selected_by_their_labels() {
    let mut world = world(1);
    let red = Expression { key: "team".into(), operator: Operator::In, values: vec!["red".into()] };
    let selector =
        PodSelector { namespaces: [].into(), namespace_selector: Some(vec![red]), labels: Some(Vec::new()) };
    let terms = PodTerms { anti_affinity: vec![Arc::new(term("zone", selector))], ..PodTerms::default() };
    foreign(&mut world, "jealous", "n1", "x", Some(terms));
    let label = |team: &str| Event::Namespace {
        name: "default".into(),
        labels: [("team".into(), team.into())].into(),
    };
    world.step(vec![label("red")]);
    world.pod_with("web", "cpu=1000", labelled("web", None));
    assert_eq!(world.node_of("web"), None);
    world.step(vec![label("blue")]);
    assert_eq!(world.node_of("web"), Some("n1"));
    world.step(vec![Event::NamespaceGone("default".into())]);
    world.pod_with("late", "cpu=1000", labelled("web", None));
    assert_eq!(world.node_of("late"), Some("n1"));
}

#[test]
fn requests_are_equal_where_nobody_looks_at_labels() {
    let mut world = world(1);
    world.pod_with("fill", "cpu=4000", labelled("fill", None));
    for name in ["a", "b"] {
        world.pod_with(name, "cpu=1000", labelled(name, None));
    }
    let request = |world: &World, name: &str| world.job(&format!("pod.{name}")).request.clone().unwrap();
    assert_eq!(request(&world, "a"), request(&world, "b"));
    foreign(&mut world, "jealous", "n1", "x", Some(apart("host", "a")));
    assert_ne!(request(&world, "a"), request(&world, "b"));
    assert_eq!(request(&world, "b").shapes[0].peer, None);
    let labels: Vec<String> = request(&world, "a").shapes[0]
        .peer
        .as_ref()
        .unwrap()
        .labels
        .keys()
        .map(ToString::to_string)
        .collect();
    assert_eq!(labels, ["app"], "and not its name");
    world.delete_pod("jealous");
    assert_eq!(request(&world, "a"), request(&world, "b"));
}

/// Of these Pods, those whose anti-affinity forbids each other's place.
fn conflicts(world: &World, bound: &[SharedStr]) -> Vec<String> {
    let live: Vec<&PodSpec> =
        world.pods.values().filter(|pod| pod.node.is_some() && !pod.phase.ended()).collect();
    let namespaces = Namespaces::default();
    let value = |pod: &PodSpec, key: &str| {
        let node = world.nodes.get(pod.node.as_ref()?)?;
        node.labels.get(key).cloned()
    };
    let forbids = |one: &PodSpec, other: &PodSpec| {
        one.terms.iter().flat_map(|terms| &terms.anti_affinity).any(|term| {
            let there = value(one, &term.topology);
            there.is_some()
                && there == value(other, &term.topology)
                && term.selector.selects(&other.namespace, other.labels.shared(), &namespaces)
        })
    };
    let mut wrong = Vec::new();
    for pod in bound.iter().filter_map(|uid| world.pods.get(uid)).filter(|pod| !pod.phase.ended()) {
        for other in live.iter().filter(|other| other.uid != pod.uid) {
            if forbids(pod, other) || forbids(other, pod) {
                wrong.push(format!("{} on {:?} beside {}", pod.name, pod.node, other.name));
            }
        }
    }
    wrong
}

#[derive(Clone, Debug)]
enum Act {
    Gang { size: u8, cpu: u8, of: u8, terms: u8 },
    Foreign { node: u8, of: u8, terms: u8 },
    Relabel { pick: u8, of: u8 },
    End(u8),
    Delete(u8),
    Terminate(u8),
    Wait(u8),
    Restart,
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (1..4_u8, 0..4_u8, 0..3_u8, 0..8_u8).prop_map(|(size, cpu, of, terms)| Act::Gang { size, cpu, of, terms }),
        3 => (1..5_u8, 0..3_u8, 0..8_u8).prop_map(|(node, of, terms)| Act::Foreign { node, of, terms }),
        1 => (any::<u8>(), 0..3_u8).prop_map(|(pick, of)| Act::Relabel { pick, of }),
        3 => any::<u8>().prop_map(Act::End),
        3 => any::<u8>().prop_map(Act::Delete),
        1 => any::<u8>().prop_map(Act::Terminate),
        1 => (1..100_u8).prop_map(Act::Wait),
        1 => Just(Act::Restart),
    ]
}

const APPS: [&str; 3] = ["a", "b", "c"];

fn some_terms(number: u8, of: &str) -> Option<PodTerms> {
    match number {
        0 => Some(apart("host", of)),
        1 => Some(apart("zone", "a")),
        2 => Some(near("zone", of)),
        3 => Some(near("host", "b")),
        4 => Some(spread("zone", of)),
        _ => None,
    }
}

fn any_pod(world: &World, pick: u8) -> Option<String> {
    let live: Vec<_> = world.pods.values().filter(|pod| !pod.phase.ended()).collect();
    (!live.is_empty()).then(|| live[usize::from(pick) % live.len()].name.to_string())
}

fn play(world: &mut World, number: usize, act: Act) {
    match act {
        Act::Gang { size, cpu, of, terms } => {
            let of = APPS[usize::from(of)];
            for index in 0..size {
                world.pod_with(
                    &format!("g{number}-{index}"),
                    &format!("cpu={}", u32::from(cpu) * 1000),
                    |pod| {
                        labelled(of, some_terms(terms, of))(pod);
                        in_group(&format!("g{number}"), &size.to_string())(pod);
                    },
                );
            }
        }
        Act::Foreign { node, of, terms } => {
            let of = APPS[usize::from(of)];
            foreign(world, &format!("f{number}"), &format!("n{node}"), of, some_terms(terms, of));
        }
        Act::Relabel { pick, of } => {
            if let Some(name) = any_pod(world, pick) {
                world.change_pod(&name, |pod| {
                    pod.labels.insert("app".into(), APPS[usize::from(of)].into());
                });
            }
        }
        Act::End(pick) => {
            if let Some(name) = any_pod(world, pick) {
                world.end_pod(&name, Phase::Succeeded);
            }
        }
        Act::Delete(pick) => {
            if let Some(name) = any_pod(world, pick) {
                world.delete_pod(&name);
            }
        }
        Act::Terminate(pick) => {
            if let Some(name) = any_pod(world, pick) {
                world.change_pod(&name, |pod| pod.deleting = true);
            }
        }
        Act::Wait(seconds) => world.pass(i64::from(seconds)),
        Act::Restart => world.restart(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_nothing_is_bound_where_it_is_forbidden(
        acts in prop::collection::vec(acts(), 1..60),
        conservative in any::<bool>(),
    ) {
        let policy = if conservative { QueuePolicy::Conservative } else { QueuePolicy::Easy };
        let mut world = world_under(QueueConfig { policy, ..QueueConfig::default() }, 4);
        let mut seen = 0;
        for (number, act) in acts.into_iter().enumerate() {
            play(&mut world, number, act);
            let bound: Vec<SharedStr> = world.effects[seen..]
                .iter()
                .filter_map(|effect| match effect {
                    Effect::Bind { pod, .. } => Some(pod.uid.clone()),
                    _ => None,
                })
                .collect();
            seen = world.effects.len();
            prop_assert_eq!(conflicts(&world, &bound), Vec::<String>::new());
        }
        // Told the same cluster, a new engine asks for the same.
        let requests = |world: &World| -> BTreeMap<String, _> {
            let waiting = world.state.jobs().filter(|job| job.state.waiting());
            waiting.map(|job| (job.key.display(), job.request.clone())).collect()
        };
        let before = requests(&world);
        world.restart();
        // It may start some of them at once.
        for (job, request) in requests(&world) {
            if let Some(before) = before.get(&job) {
                prop_assert_eq!(before, &request, "{}", job);
            }
        }
    }
}
