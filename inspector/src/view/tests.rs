//! What one who may see a single namespace learns, on a state that the engine made.

use std::sync::Arc;

use fluxion::formats::jgf;
use fluxion::graph::Graph;
use fluxion_scheduler::event::Event;
use fluxion_scheduler::inventory::NodeSpec;
use fluxion_scheduler::model::{ContainerExit, Phase, PodEnd, PodSpec, SharedStr};
use fluxion_scheduler::resources::ResourceList;
use fluxion_scheduler::state::{Settings, State};
use serde_json::{Value, json};

use super::{Viewer, Visible, audit, explain, graph, job, node, queue, timeline};

const NOW: i64 = 1_767_225_600;

fn list(cpus: u64) -> ResourceList {
    [(SharedStr::from("cpu"), cpus * 1000), (SharedStr::from("pods"), if cpus > 3 { 1 } else { 2 })]
        .into_iter()
        .collect()
}

fn pod(namespace: &str, name: &str, node: Option<&str>) -> Event {
    Event::Pod(Box::new(PodSpec {
        scheduler_name: "fluxion".into(),
        created: NOW,
        phase: if node.is_some() { Phase::Running } else { Phase::Pending },
        node: node.map(SharedStr::from),
        needs: Ok(Arc::new(list(4))),
        active_deadline: Some(600),
        scheduled_at: node.map(|_| NOW),
        ..PodSpec::new(namespace, name, format!("{namespace}-{name}"))
    }))
}

/// One node, held by a hidden job; a hidden one and one of ours wait, in this order.
fn state() -> State {
    let mut state = State::new(Settings::default());
    let spec = NodeSpec {
        name: "n1".into(),
        ready: true,
        capacity: list(4),
        allocatable: list(4),
        ..NodeSpec::default()
    };
    state.step(NOW, vec![Event::Node(Box::new(spec)), pod("hidden", "aleph", Some("n1")), Event::Synced]);
    state.step(NOW, vec![pod("hidden", "bethe", None), pod("ours", "gamma", None)]);
    while state.unfinished() {
        state.step(NOW, vec![Event::Tick]);
    }
    state
}

#[test]
fn nothing_of_other_namespaces_is_told() {
    let state = state();
    let viewer = Viewer::namespaces([SharedStr::from("ours")]);
    let visible = Visible::new(&state, &viewer);
    let ours = state.job_named("ours", "pod.gamma").unwrap();
    let object = job::job(&visible, ours);
    assert_eq!(object.status.position, Some(1), "relative to what may be seen");
    let told = [
        serde_json::to_string(&object).unwrap(),
        serde_json::to_string(&explain::explain(&visible, ours, object)).unwrap(),
        serde_json::to_string(&node::node(&visible, &state.inventory().node("n1").unwrap())).unwrap(),
        serde_json::to_string(&queue::queue(&visible, &state.queues()[0])).unwrap(),
        serde_json::to_string(&timeline::timeline(&visible)).unwrap(),
        serde_json::to_string(&audit::audit(&visible, &[], None)).unwrap(),
    ];
    for text in told {
        for secret in ["hidden", "aleph", "bethe"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
    let counted = queue::queue(&visible, &state.queues()[0]);
    assert_eq!(counted.status.jobs.values().sum::<u32>(), 1);
    assert_eq!((counted.status.last_pass.tried, counted.status.last_pass.started), (0, 0));
}

#[test]
fn the_administrator_is_told_everything() {
    let state = state();
    let viewer = Viewer::everything();
    let visible = Visible::new(&state, &viewer);
    let ours = state.job_named("ours", "pod.gamma").unwrap();
    assert_eq!(job::job(&visible, ours).status.position, Some(2));
    let first = job::job(&visible, state.job_named("hidden", "pod.bethe").unwrap());
    assert_eq!(first.status.waits_for[0].job, "pod/aleph");
    assert_eq!(timeline::timeline(&visible).spans[0].job, "hidden/pod/aleph");
    assert_eq!(
        node::node(&visible, &state.inventory().node("n1").unwrap()).status.jobs,
        ["hidden/pod/aleph"]
    );
}

#[test]
fn an_ended_job_shows_what_it_was_and_what_it_died_of() {
    let mut state = state();
    let Event::Pod(mut alpha) = pod("hidden", "aleph", Some("n1")) else { unreachable!() };
    alpha.phase = Phase::Failed;
    let exit = ContainerExit { name: "main".into(), code: 137, reason: Some("OOMKilled".into()) };
    let end = PodEnd { at: Some(NOW + 5), container: Some(exit), message: None };
    alpha.end = Some(Arc::new(end));
    let uid = alpha.uid.clone();
    state.step(NOW + 9, vec![Event::Pod(alpha)]);
    state.step(NOW + 20, vec![Event::PodGone(uid)]);
    let viewer = Viewer::everything();
    let visible = Visible::new(&state, &viewer);
    let object = job::job(&visible, state.job_named("hidden", "pod.aleph").unwrap());
    assert_eq!(
        serde_json::to_value(&object.spec).unwrap()["shapes"],
        json!([{"count": 1, "requests": {"cpu": "4", "pods": "1"}}])
    );
    assert_eq!(object.spec.duration_seconds, Some(600));
    let status = serde_json::to_value(&object.status).unwrap();
    let shown = ["state", "request", "startedAt", "endedAt", "stateSince", "allocation", "exit"];
    let shown: serde_json::Map<_, _> =
        shown.into_iter().map(|key| (key.to_owned(), status[key].clone())).collect();
    assert_eq!(
        Value::from(shown),
        json!({"state": "Failed", "request": {"cpu": "4", "pods": "1"}, "startedAt": "2026-01-01T00:00:00Z",
            "endedAt": "2026-01-01T00:00:05Z", "stateSince": "2026-01-01T00:00:05Z",
            "allocation": {"nodes": [{"name": "n1", "pods": ["aleph"]}]},
            "exit": {"pod": "aleph", "reason": "OOMKilled", "container": "main", "exitCode": 137,
                "time": "2026-01-01T00:00:05Z"}})
    );
    assert_eq!(status["reason"]["class"], "PodFailed");
    assert_eq!((&status["members"]["bound"], &status["members"]["wanted"]), (&json!(1), &json!(1)));
}

#[test]
fn an_explanation_names_changes_that_would_help() {
    let mut state = State::new(Settings::default());
    let spec = |name: &str| {
        Event::Node(Box::new(NodeSpec {
            name: name.into(),
            ready: true,
            capacity: list(4),
            allocatable: list(4),
            ..NodeSpec::default()
        }))
    };
    let member = |index: u32| {
        let Event::Pod(mut member) = pod("ours", &format!("gang-{index}"), None) else { unreachable!() };
        member.labels.insert("fluxion.flux-framework.org/group".into(), "gang".into());
        member.labels.insert("fluxion.flux-framework.org/group-size".into(), "2".into());
        Event::Pod(member)
    };
    let mut events = vec![spec("n1"), spec("n2"), pod("ours", "held", Some("n1")), Event::Synced];
    events.extend((0..2).map(member));
    state.step(NOW, events);
    while state.unfinished() {
        state.step(NOW, vec![Event::Tick]);
    }
    let viewer = Viewer::everything();
    let visible = Visible::new(&state, &viewer);
    let gang = state.job_named("ours", "group.gang").unwrap();
    let explanation = explain::explain(&visible, gang, job::job(&visible, gang));
    assert_eq!(explanation.suggestions, ["with 1 member instead of 2, it could start now"]);
    assert_eq!(
        explanation.nearest.as_deref().map(|text| text.starts_with("1 of 2 members fit now")),
        Some(true)
    );
    assert_eq!(explanation.nodes[0].count, 1);
}

#[test]
fn the_graph_with_its_topology_is_read_back_as_jgf() {
    let settings =
        Settings { topology_keys: vec!["topology.kubernetes.io/zone".into()], ..Settings::default() };
    let mut state = State::new(settings);
    let node = |name: &str, zone: Option<&str>| {
        let labels = zone.map(|zone| ("topology.kubernetes.io/zone".into(), zone.into()));
        Event::Node(Box::new(NodeSpec {
            name: name.into(),
            ready: true,
            labels: labels.into_iter().collect(),
            capacity: list(4),
            allocatable: [("cpu".into(), 4000), ("nvidia.com/gpu".into(), 2)].into_iter().collect(),
            ..NodeSpec::default()
        }))
    };
    state.step(NOW, vec![node("n1", Some("a")), node("n2", Some("b")), node("n3", None), Event::Synced]);
    let text = graph::jgf(state.inventory(), NOW).unwrap();
    let mut read = Graph::new();
    jgf::load(&mut read, text.as_bytes()).unwrap();
    // Cluster, two zones, three nodes, three pools each; each node under the cluster, two under a zone. Of the
    // third pool only the capacity is known: there is nothing of it now.
    assert_eq!(read.vertex_count(), 1 + 2 + 3 + 9);
    assert_eq!(read.edge_count(), 2 + 3 + 2 + 9);
    assert!(text.contains(r#""topology.kubernetes.io/zone": "/cluster0/a/n1""#), "{text}");
    assert!(text.contains(r#""/cluster0/n1/nvidia.com_gpu0""#), "{text}");
    let summary = graph::graph(state.inventory(), NOW, false).status.summary;
    let levels: Vec<_> = summary.iter().map(|level| (level.level.as_str(), level.vertices)).collect();
    assert_eq!(levels, [("cluster", 1), ("topology.kubernetes.io/zone", 2), ("node", 3)]);
    assert_eq!((&*summary[1].allocatable["cpu"], &*summary[2].allocatable["cpu"]), ("8", "12"));
}

#[test]
fn a_history_that_is_not_kept_is_a_finding() {
    let state = state();
    let viewer = Viewer::namespaces([SharedStr::from("ours")]);
    let problem = "history entries were dropped: disk full".to_owned();
    let audit = audit::audit(&Visible::new(&state, &viewer), &[], Some(problem));
    assert_eq!((&*audit.findings[0].class, &*audit.findings[0].object), ("NoHistory", "history"));
    assert!(audit.findings[0].text.starts_with("history entries were dropped: disk full; after a restart"));
}
