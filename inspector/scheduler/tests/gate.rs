//! Pods at our scheduling gate: placed by us, pinned when the gate is removed, bound by kube-scheduler.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use fluxion_scheduler::event::{BindOutcome, Effect, LET_GO};
use fluxion_scheduler::model::Unsupported;
use fluxion_scheduler::state::JobState;
use world::{GATE, World, gated, in_group};

fn world() -> World {
    World::of_two(60)
}

fn pair_of_job(world: &mut World) {
    let controller = world.job_object("j", 2, 2, true);
    for index in 0..2 {
        world.pod_with(&format!("j-{index}"), "cpu=2000", |pod| {
            gated(pod);
            pod.controller = Some(controller.clone());
        });
    }
}

fn bare_pair(world: &mut World) {
    for index in 0..2 {
        world.pod_with(&format!("b-{index}"), "cpu=2000", |pod| {
            gated(pod);
            in_group("b", "2")(pod);
        });
    }
}

fn pinned(world: &World) -> Vec<(&str, &str)> {
    let pins =
        world.pods.values().filter_map(|pod| Some((&*pod.name, &*pod.record.as_ref()?.pin.as_ref()?.node)));
    pins.collect()
}

fn evicted(world: &World) -> Vec<&str> {
    let evicted = world.effects.iter().filter_map(|effect| match effect {
        Effect::Evict { pod, .. } => Some(&*pod.name),
        _ => None,
    });
    evicted.collect()
}

fn events<'a>(world: &'a World, about: &str, wanted: &str) -> Vec<&'a str> {
    let notes = world.effects.iter().filter_map(|effect| match effect {
        Effect::Note { regarding, reason, note, .. } if &*regarding.name == about && *reason == wanted => {
            Some(note.as_str())
        }
        _ => None,
    });
    notes.collect()
}

fn free(world: &World, node: &str) -> u64 {
    world.state.inventory().node(node).unwrap().free.get("cpu")
}

#[test]
fn a_gated_gang_is_pinned_whole_and_runs_once_kube_scheduler_has_bound_it() {
    let mut world = world();
    pair_of_job(&mut world);
    assert_eq!((world.line("job.j"), world.bound("j")), ("Running 2/2".to_owned(), 2));
    assert_eq!(pinned(&world), [("j-0", "n1"), ("j-1", "n2")]);
    let pods: Vec<_> = world.state.inventory().node("n1").unwrap().holders;
    assert!(pods.iter().all(|(_, hold)| hold.job.is_some()), "it counts as ours, not as foreign");
    assert_eq!(world.state.audit().len(), 0, "{:?}", world.state.audit());
}

#[test]
fn an_incomplete_gang_and_one_with_another_gate_keep_all_their_gates() {
    let mut world = world();
    let controller = world.job_object("j", 2, 2, true);
    world.pod_with("j-0", "cpu=2000", |pod| {
        gated(pod);
        pod.controller = Some(controller.clone());
    });
    world.pod_with("j-1", "cpu=2000", |pod| {
        gated(pod);
        pod.gates.push("example.com/quota".into());
        pod.controller = Some(controller.clone());
    });
    world.pass(60);
    assert_eq!(world.line("job.j"), "Gathering 1/2");
    let told = world.told("job.j");
    assert!(told.contains("example.com/quota") && !told.contains(GATE), "{told}");
    assert!(pinned(&world).is_empty());
    let conditions = world.effects.iter().filter(|effect| matches!(effect, Effect::Unscheduled { .. }));
    assert_eq!(conditions.count(), 0, "a gated Pod's condition says that it is gated");
    world.change_pod("j-1", |pod| drop(pod.gates.pop()));
    assert_eq!(world.line("job.j"), "Running 2/2");
}

#[test]
fn until_bound_the_node_is_held_also_by_the_next_inspector() {
    let mut world = world();
    world.kube_scheduler = false;
    pair_of_job(&mut world);
    for _ in 0..2 {
        assert_eq!(world.line("job.j"), "Binding 0/2");
        assert_eq!((free(&world, "n1"), free(&world, "n2")), (0, 0));
        world.pod("other", "cpu=1000");
        assert_eq!(world.node_of("other"), None);
        world.delete_pod("other");
        world.restart();
    }
    for (name, node) in [("j-0", "n1"), ("j-1", "n2")] {
        world.change_pod(name, |pod| pod.node = Some(node.into()));
    }
    assert_eq!(world.line("job.j"), "Running 2/2");
    world.pass(1000);
    assert!(evicted(&world).is_empty());
}

#[test]
fn a_half_pinned_gang_becomes_whole_after_a_restart() {
    let mut world = world();
    world.kube_scheduler = false;
    world.bind = |pod, _| pod.name.ends_with("-1").then(|| BindOutcome::Transient("killed".into()));
    pair_of_job(&mut world);
    assert_eq!(pinned(&world).len(), 1);
    world.kube_scheduler = true;
    world.bind = |_, _| None;
    world.restart();
    assert_eq!(pinned(&world).len(), 2);
    world.change_pod("j-0", |pod| pod.node = Some("n1".into()));
    assert_eq!(world.line("job.j"), "Running 2/2");
}

#[test]
fn what_kube_scheduler_does_not_bind_is_told_and_recreated_by_its_controller() {
    let mut world = world();
    world.kube_scheduler = false;
    pair_of_job(&mut world);
    world.change_pod("j-0", |pod| pod.node = Some("n1".into()));
    world.change_pod("j-1", |pod| {
        pod.unscheduled = Some(("Unschedulable".into(), "0/2 nodes are available: 2 node(s) are odd".into()));
    });
    let told = world.told("job.j");
    assert!(
        told.starts_with("BindFailed") && told.contains("kube-scheduler: 0/2 nodes are available"),
        "{told}"
    );
    world.pass(55);
    world.restart();
    assert!(evicted(&world).is_empty());
    world.pass(20);
    assert_eq!(evicted(&world), ["j-0", "j-1"]);
    assert!(events(&world, "j-0", "GangReleased")[0].contains("are odd"));
    for name in ["j-0", "j-1"] {
        world.change_pod(name, |pod| {
            pod.disruption = Some(LET_GO.into());
            pod.deleting = true;
        });
    }
    let controller = world.pods.values().next().unwrap().controller.clone();
    for name in ["j-0", "j-1"] {
        world.delete_pod(name);
    }
    world.kube_scheduler = true;
    for index in 2..4 {
        world.pod_with(&format!("j-{index}"), "cpu=2000", |pod| {
            gated(pod);
            pod.controller.clone_from(&controller);
        });
    }
    assert_eq!(world.bound("j"), 0, "it waits for its pause");
    world.pass(40);
    assert_eq!((world.line("job.j"), evicted(&world).len()), ("Running 2/2".to_owned(), 2));
}

#[test]
fn bare_pods_that_kube_scheduler_does_not_bind_are_held() {
    let mut world = world();
    world.kube_scheduler = false;
    bare_pair(&mut world);
    world.pass(200);
    assert!(evicted(&world).is_empty());
    assert_eq!(events(&world, "b-0", "GangHeld").len(), 1);
    assert_eq!((free(&world, "n1"), free(&world, "n2")), (0, 0));
    for (name, node) in [("b-0", "n1"), ("b-1", "n2")] {
        world.change_pod(name, |pod| pod.node = Some(node.into()));
    }
    assert_eq!(world.line("group.b"), "Running 2/2");
}

#[test]
fn a_member_that_joins_late_and_is_not_bound_is_recreated_alone() {
    let mut world = world();
    let controller = world.job_object("j", 1, 3, true);
    let member = |world: &mut World, name: &str| {
        let controller = controller.clone();
        world.pod_with(name, "cpu=2000", |pod| {
            gated(pod);
            pod.controller = Some(controller);
        });
    };
    member(&mut world, "j-0");
    world.pass(100);
    world.kube_scheduler = false;
    member(&mut world, "j-1");
    assert_eq!(pinned(&world).len(), 2);
    world.pass(50);
    assert!(evicted(&world).is_empty());
    world.pass(20);
    assert_eq!(evicted(&world), ["j-1"]);
    assert_eq!(events(&world, "j-1", "GangReleased").len(), 1);
    assert_eq!(world.line("job.j"), "Running 1/1");
}

#[test]
fn a_node_deleted_before_the_binding_is_told_at_once() {
    let mut world = world();
    world.kube_scheduler = false;
    pair_of_job(&mut world);
    bare_pair(&mut world);
    world.pass(20);
    world.nodes.remove("n1");
    world.step(vec![fluxion_scheduler::event::Event::NodeGone("n1".into())]);
    world.pass(1);
    assert_eq!(evicted(&world), ["j-0", "j-1"]);
    assert!(events(&world, "j-0", "GangReleased")[0].contains("node n1: the node was deleted"));
}

#[test]
fn a_gate_removed_by_somebody_else_is_told_and_holds_nothing_up() {
    let mut world = world();
    world.bind = |pod, _| {
        pod.name.ends_with("-0").then(|| BindOutcome::Gone("its scheduling gate was removed".into()))
    };
    pair_of_job(&mut world);
    world.change_pod("j-0", |pod| pod.gates.clear());
    assert_eq!(events(&world, "j-0", "GateRemoved").len(), 1);
    let told = world.told("job.j");
    assert!(told.contains("has no scheduling gate"), "{told}");
    // kube-scheduler places it.
    world.change_pod("j-0", |pod| pod.node = Some("n1".into()));
    world.pass(60);
    assert_eq!((world.line("job.j"), world.node_of("j-1")), ("Running 2/2".to_owned(), Some("n2")));
    // One that is alone, and is never bound.
    world.pod_with("alone", "cpu=9000", gated);
    world.change_pod("alone", |pod| pod.gates.clear());
    world.pass(60);
    assert_eq!(world.state_of("pod.alone"), JobState::Pending);
    assert!(world.told("pod.alone").contains("kube-scheduler places it"));
    world.delete_pod("alone");
    assert_eq!(world.state_of("pod.alone"), JobState::Cancelled);
}

#[test]
fn a_forged_record_holds_nothing() {
    let mut world = world();
    world.pod_with("real", "cpu=1000", gated);
    let record = world.pods.values().next().unwrap().record.clone();
    assert!(record.is_some());
    world.pod_with("forged", "cpu=2000", |pod| {
        pod.scheduler_name = "default-scheduler".into();
        pod.record = record;
    });
    assert_eq!((free(&world, "n1"), world.names()), (1000, vec!["pod.real".to_owned()]));
}

#[test]
fn what_kube_scheduler_checks_is_no_obstacle() {
    let mut world = world();
    let unsupported =
        || vec![Unsupported::ResourceClaim("gpu".into()), Unsupported::PodTerms("too many terms".into())];
    world.pod_with("gated", "cpu=1000", |pod| {
        gated(pod);
        pod.unsupported = unsupported();
    });
    world.pod_with("ours", "cpu=1000", |pod| pod.unsupported = unsupported());
    world.pod_with("broken", "cpu=1000", |pod| {
        gated(pod);
        world::storage::mounting(&["data"])(pod);
    });
    assert_eq!(world.state_of("pod.gated"), JobState::Running);
    assert!(world.told("pod.ours").starts_with("UnsupportedConstraint"));
    assert!(world.told("pod.broken").contains("data does not exist"));
}

#[test]
fn our_gate_on_a_pod_of_our_own_scheduler_is_a_gate_like_any_other() {
    let mut world = world();
    world.pod_with("p", "cpu=1000", |pod| pod.gates = vec![GATE.into()]);
    let told = world.told("pod.p");
    assert!(told.starts_with("Gated") && told.contains(GATE), "{told}");
    world.change_pod("p", |pod| pod.gates.clear());
    assert_eq!(world.state_of("pod.p"), JobState::Running);
}
