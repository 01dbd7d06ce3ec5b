//! Random Pods in random clusters: kube-scheduler's own filters and the engine give the same verdict on each node.
//!
//! `FLUXION_VERDICTS` is the number of Pods (600 by default), `FLUXION_SEED` selects others.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod nodes;
mod pods;
mod volumes;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use fluxion_inspector::kube::translate::{namespace, node, pod, storage};
use fluxion_scheduler::constraint::volumes::StorageObject;
use fluxion_scheduler::event::Event;
use fluxion_scheduler::state::{JobState, Settings, State};
use fluxion_tests::random::{Dice, number};
use fluxion_tests::tools::{self, Tool};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use volumes::Volumes;

/// Pods that are asked about in each cluster, one by one.
const PODS: usize = 4;

/// A cluster, and Pods that wait.
struct Case {
    nodes: Vec<String>,
    objects: Vec<Value>,
    pods: Vec<Value>,
}

impl Case {
    fn new(seed: u64, number: usize) -> Self {
        let mut dice = Dice::new(seed, number);
        let prefix = format!("c{number}");
        let nodes: Vec<String> = (0..2 + dice.roll(5)).map(|at| format!("{prefix}-n{at}")).collect();
        let mut objects: Vec<Value> = pods::NAMESPACES
            .map(|(name, team)| {
                let labels = if team.is_empty() { json!({}) } else { json!({"team": team}) };
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
            })
            .into();
        objects.extend(nodes.iter().map(|name| nodes::node(&mut dice, name)));
        let mut volumes = Volumes::new(&mut dice, &prefix, &nodes);
        for at in 0..dice.roll(10) {
            let node = nodes[dice.roll(nodes.len())].clone();
            let mut pod = pods::running(&mut dice, &format!("{prefix}-r{at}"), &node);
            if dice.rarely(3) {
                volumes.mount(&mut dice, &mut pod, true);
            }
            objects.push(pod);
        }
        let waiting = (0..PODS).map(|at| {
            let mut pod = pods::waiting(&mut dice, &format!("{prefix}-w{at}"), &nodes);
            if dice.rarely(2) {
                volumes.mount(&mut dice, &mut pod, false);
            }
            pod
        });
        let pods = waiting.collect();
        objects.extend(volumes.objects);
        Self { nodes, objects, pods }
    }

    /// Why the engine does not start each Pod on each node; none if it does.
    fn engine(&self) -> Vec<BTreeMap<String, Option<String>>> {
        let mut state = State::new(Settings::default());
        let mut events: Vec<Event> = self.objects.iter().map(event).collect();
        events.push(Event::Synced);
        state.step(NOW, events);
        let ask = |pod: &Value, node: &String| {
            let mut pod = pod.clone();
            pod["spec"]["schedulerName"] = json!("fluxion");
            // Any constraint for the node would change what topology spread constraints count.
            let only = json!({"name": "only", "image": "x",
                "resources": {"requests": {nodes::only(node): "1"}}});
            pod["spec"]["containers"].as_array_mut().unwrap().push(only);
            let mut state = state.clone();
            state.step(NOW, vec![event(&pod)]);
            // Also if its claims have to be prepared first.
            let job = state.jobs().next().unwrap();
            let why = if job.state == JobState::Binding {
                None
            } else {
                Some(format!("{:?} {:?}", job.state, job.reason))
            };
            (node.clone(), why)
        };
        self.pods.iter().map(|pod| self.nodes.iter().map(|node| ask(pod, node)).collect()).collect()
    }
}

const NOW: i64 = 1_800_000_000;

fn typed<T: DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{error}: {object}"))
}

/// What the inspector makes of an object that it watches.
fn event(object: &Value) -> Event {
    let stored = |object: Result<StorageObject, _>| object.map(|object| Event::Storage(Box::new(object)));
    let event = match object["kind"].as_str().unwrap() {
        "Namespace" => namespace::translate(&typed::<k8s_openapi::api::core::v1::Namespace>(object).metadata),
        "Node" => node::translate(&typed(object)).map(|node| Event::Node(Box::new(node))),
        "Pod" => pod::in_cluster(&typed(object)).map(|pod| Event::Pod(Box::new(pod))),
        "PersistentVolume" => stored(storage::volume(&typed(object))),
        "PersistentVolumeClaim" => stored(storage::claim(&typed(object))),
        "StorageClass" => stored(storage::storage_class(&typed(object))),
        "CSIDriver" => stored(storage::driver(&typed(object))),
        "CSINode" => stored(storage::node(&typed(object))),
        "CSIStorageCapacity" => stored(storage::capacity(&typed(object))),
        "VolumeAttachment" => stored(storage::attachment(&typed(object))),
        kind => panic!("{kind}"),
    };
    event.unwrap()
}

#[test]
fn pods_get_the_verdict_of_kube_scheduler_on_each_node() {
    let total: usize = number("FLUXION_VERDICTS", 600);
    let seed = number("FLUXION_SEED", 7);
    let mut filters = Command::new(tools::ensure(Tool::Verdicts).unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut questions = filters.stdin.take().unwrap();
    let asking = std::thread::spawn(move || {
        for number in 0..total.div_ceil(PODS) {
            let case = Case::new(seed, number);
            writeln!(questions, "{}", json!({"objects": case.objects, "pods": case.pods})).unwrap();
        }
    });
    let (mut feasible, mut nodes) = (0, 0);
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    // By reason, without the names of this cluster: how many, and the first.
    let mut differing: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for (number, line) in BufReader::new(filters.stdout.take().unwrap()).lines().enumerate() {
        let expected: Vec<BTreeMap<String, String>> = serde_json::from_str(&line.unwrap()).unwrap();
        let case = Case::new(seed, number);
        for ((pod, expected), found) in case.pods.iter().zip(expected).zip(case.engine()) {
            for (node, reason) in expected {
                nodes += 1;
                feasible += usize::from(reason.is_empty());
                *reasons.entry(reason.split(':').next().unwrap().to_owned()).or_default() += 1;
                if reason.is_empty() != found[&node].is_none() {
                    let kind = reason.replace(&format!("c{number}-"), "");
                    let first =
                        || (0, format!("on {node}, {:?}: {pod} {}", found[&node], json!(case.objects)));
                    differing.entry(kind).or_insert_with(first).0 += 1;
                }
            }
        }
    }
    asking.join().unwrap();
    assert!(filters.wait().unwrap().success());
    let different: usize = differing.values().map(|(count, _)| count).sum();
    println!("{total} Pods: {feasible} of {nodes} nodes are feasible, {different} verdicts differ");
    println!("kube-scheduler's reasons: {reasons:?}");
    assert!(differing.is_empty(), "by kube-scheduler's reason: {differing:#?}");
    assert!(feasible * 20 > nodes && feasible * 2 < nodes, "{feasible} of {nodes} nodes are feasible");
}
