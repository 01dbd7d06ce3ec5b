//! A small cluster in the middle of its day: three nodes, jobs in most states.

use fluxion_api::Quantities;
use fluxion_api::graph::{Finding, FluxionAudit, LevelSummary};
use fluxion_api::job::{AllocatedNode, Allocation, Group, HistoryEntry, Members, Reservation, WaitsFor};
use fluxion_api::reason::{Fact, Together};
use fluxion_api::{FluxionGraph, FluxionJob, FluxionNode, FluxionQueue, List, ListMeta, Reason, ReasonClass};

/// The time of the sample.
pub(crate) const NOW: &str = "2026-03-01T12:00:00Z";

pub(crate) fn quantities(of: &[(&str, &str)]) -> Quantities {
    of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn job(kind: &str, name: &str, state: &str) -> FluxionJob {
    let mut job = FluxionJob {
        api_version: fluxion_api::API_VERSION.into(),
        kind: "FluxionJob".into(),
        ..Default::default()
    };
    job.metadata.name = format!("{}.{name}", kind.to_lowercase());
    job.metadata.namespace = Some("default".into());
    job.metadata.uid = format!("uid-{name}");
    job.metadata.resource_version = "41".into();
    job.metadata.creation_timestamp = Some("2026-03-01T11:30:00Z".into());
    job.spec.queue = "default".into();
    job.spec.group = Group { kind: kind.into(), name: name.into(), size: Some(4), ..Group::default() };
    job.status.state = state.into();
    job.status.state_since = "2026-03-01T11:45:00Z".into();
    job.status.members = Members { wanted: Some(4), seen: 4, ..Members::default() };
    job.status.request = quantities(&[("cpu", "8"), ("memory", "17179869184"), ("pods", "4")]);
    job
}

pub(crate) fn running() -> FluxionJob {
    let mut job = job("Job", "lammps", "Running");
    job.spec.duration_seconds = Some(3600);
    job.status.members.bound = 4;
    job.status.started_at = Some("2026-03-01T11:45:00Z".into());
    job.status.planned_end = Some("2026-03-01T12:45:00Z".into());
    job.status.allocation = Some(Allocation {
        nodes: vec![
            AllocatedNode { name: "n1".into(), pods: vec!["lammps-0".into(), "lammps-1".into()] },
            AllocatedNode { name: "n2".into(), pods: vec!["lammps-2".into(), "lammps-3".into()] },
        ],
    });
    job
}

pub(crate) fn reserved() -> FluxionJob {
    let mut job = job("PodGroup", "train", "Reserved");
    job.spec.priority = 100;
    job.spec.duration_seconds = Some(7200);
    job.status.position = Some(1);
    job.status.request =
        quantities(&[("cpu", "32"), ("memory", "68719476736"), ("nvidia.com/gpu", "4"), ("pods", "4")]);
    job.status.planned_start = Some("2026-03-01T12:45:00Z".into());
    job.status.planned_end = Some("2026-03-01T14:45:00Z".into());
    job.status.reservation = Some(Reservation {
        start_assumed: false,
        end_assumed: false,
        start: "2026-03-01T12:45:00Z".into(),
        end: Some("2026-03-01T14:45:00Z".into()),
        nodes: vec!["n1".into(), "n2".into()],
    });
    job.status.waits_for = vec![WaitsFor {
        job: "job/lammps".into(),
        until: Some("2026-03-01T12:45:00Z".into()),
        assumed: false,
    }];
    job.status.reason = Some(Reason {
        class: "Reserved".into(),
        text: "starts at 12:45 on 2 nodes, when job/lammps has ended".into(),
        details: vec!["0/3 nodes are available: 2 had insufficient cpu, 1 had no nvidia.com/gpu".into()],
        ..Reason::default()
    });
    job.status.history = vec![
        HistoryEntry {
            time: "2026-03-01T11:30:00Z".into(),
            state: "Gathering".into(),
            reason: "waiting for members: 0 of 4 created".into(),
        },
        HistoryEntry { time: "2026-03-01T11:31:00Z".into(), state: "Pending".into(), reason: String::new() },
        HistoryEntry {
            time: "2026-03-01T11:45:00Z".into(),
            state: "Reserved".into(),
            reason: "planned for 12:45".into(),
        },
    ];
    job.status.warnings =
        vec!["its own limit (activeDeadlineSeconds) ends it 15 minutes after its planned start".into()];
    job
}

pub(crate) fn jobs() -> Vec<FluxionJob> {
    let mut pending = job("Job", "sweep", "Pending");
    pending.status.position = Some(2);
    pending.status.reason = Some(Reason::new(
        ReasonClass::Busy,
        vec![Fact::Together(Box::new(Together { wanted: 4, of: 4, room: 3, ..Together::default() }))],
    ));
    let mut gathering = job("group", "sim", "Gathering");
    gathering.status.members = Members { wanted: Some(4), seen: 3, ..Members::default() };
    gathering.status.reason = Some(Reason::new(
        ReasonClass::Gathering,
        vec![Fact::WaitingForMembers { created: 3, wanted: 4, gated: 0, gates: Vec::new(), joining: false }],
    ));
    let mut impossible = job("Pod", "huge", "Unsatisfiable");
    impossible.status.members.wanted = Some(1);
    impossible.status.members.seen = 1;
    impossible.status.request = quantities(&[("cpu", "512500m")]);
    impossible.status.reason = Some(Reason {
        class: "Unsatisfiable".into(),
        text: "0/3 nodes are available: 3 had too little cpu (512.5 requested, at most 16 per node)".into(),
        ..Reason::default()
    });
    let mut ended = job("Job", "done", "Completed");
    (ended.status.members.bound, ended.status.members.ended) = (4, 4);
    ended.status.started_at = Some("2026-03-01T11:00:00Z".into());
    ended.status.ended_at = Some("2026-03-01T11:50:00Z".into());
    let mut other = job("Job", "lammps", "Pending");
    other.metadata.namespace = Some("team-b".into());
    other.status.position = Some(3);
    vec![running(), reserved(), pending, gathering, impossible, ended, other]
}

pub(crate) fn nodes() -> Vec<FluxionNode> {
    ["n1", "n2", "n10"]
        .into_iter()
        .map(|name| {
            let mut node = FluxionNode {
                api_version: fluxion_api::API_VERSION.into(),
                kind: "FluxionNode".into(),
                ..Default::default()
            };
            node.metadata.name = name.into();
            node.metadata.resource_version = "40".into();
            let gpus = if name == "n10" { "0" } else { "4" };
            node.status.eligible = name != "n10";
            node.status.allocatable = quantities(&[
                ("cpu", "16"),
                ("memory", "68719476736"),
                ("nvidia.com/gpu", gpus),
                ("pods", "110"),
            ]);
            if name == "n10" {
                node.status.reasons = vec!["cordoned".into()];
                node.status.allocated =
                    quantities(&[("cpu", "500m"), ("memory", "1073741824"), ("pods", "1")]);
                node.status.foreign = node.status.allocated.clone();
            } else {
                node.status.allocated = quantities(&[("cpu", "4"), ("memory", "8589934592"), ("pods", "2")]);
                node.status.reserved =
                    quantities(&[("cpu", "12"), ("memory", "34359738368"), ("nvidia.com/gpu", "2")]);
                node.status.jobs = vec!["default/job/lammps".into()];
                node.status.levels = [("topology.kubernetes.io/zone".to_owned(), "a".to_owned())].into();
            }
            node
        })
        .collect()
}

pub(crate) fn queues() -> Vec<FluxionQueue> {
    let mut queue = FluxionQueue {
        api_version: fluxion_api::API_VERSION.into(),
        kind: "FluxionQueue".into(),
        ..Default::default()
    };
    queue.metadata.name = "default".into();
    queue.spec.policy = "easy".into();
    queue.spec.queue_depth = 10_000;
    queue.spec.reservation_depth = 1;
    queue.status.jobs = [
        ("Running", 1),
        ("Reserved", 1),
        ("Pending", 2),
        ("Gathering", 1),
        ("Unsatisfiable", 1),
        ("Completed", 1),
    ]
    .map(|(state, number)| (state.into(), number))
    .into();
    queue.status.last_pass.at = Some("2026-03-01T11:59:58Z".into());
    queue.status.last_pass.seconds = 0.0012;
    queue.status.last_pass.tried = 3;
    queue.status.last_pass.started = 0;
    vec![queue]
}

pub(crate) fn audit() -> FluxionAudit {
    let finding = Finding {
        class: "Overcommitted".into(),
        object: "node/n1".into(),
        text: "another scheduler bound default/web while we bound job/lammps; move one of them".into(),
    };
    FluxionAudit { kind: "FluxionAudit".into(), findings: vec![finding], ..Default::default() }
}

pub(crate) fn graph() -> FluxionGraph {
    let mut graph = FluxionGraph { kind: "FluxionGraph".into(), ..Default::default() };
    graph.status.graph = Some(serde_json::json!({"graph": {"nodes": [{"id": "0"}], "edges": []}}));
    graph.status.summary = [("cluster", 1), ("zone", 1), ("node", 3)]
        .map(|(level, vertices)| LevelSummary {
            level: level.into(),
            vertices,
            allocatable: quantities(&[("cpu", "48"), ("nvidia.com/gpu", "8"), ("ephemeral-storage", "1")]),
            allocated: quantities(&[("cpu", "8500m")]),
            free: quantities(&[("cpu", "39500m"), ("nvidia.com/gpu", "8")]),
        })
        .into();
    graph
}

pub(crate) fn list<T>(items: Vec<T>) -> List<T> {
    List {
        api_version: fluxion_api::API_VERSION.into(),
        kind: "List".into(),
        metadata: ListMeta {
            resource_version: "42".into(),
            observed_at: NOW.into(),
            role: "standalone".into(),
            ..ListMeta::default()
        },
        items,
    }
}
