//! What the cluster is told: conditions, Events and the status of PodGroups; neither too little nor to and fro.

mod world;

use std::collections::BTreeMap;

use fluxion_scheduler::event::{Effect, Event};
use fluxion_scheduler::model::{GroupApi, Phase, PodSpec};
use fluxion_scheduler::state::Settings;
use world::{World, in_group};

fn conditions(world: &World, about: &str) -> Vec<&'static str> {
    world
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Unscheduled { pod, reason, .. } if &*pod.name == about => Some(*reason),
            _ => None,
        })
        .collect()
}

fn failed_scheduling<'a>(world: &'a World, kind: &str, about: &str) -> Vec<&'a str> {
    world
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Note { regarding, reason: "FailedScheduling", note, warning: true, .. }
                if &*regarding.name == about && &*regarding.kind == kind =>
            {
                Some(note.as_str())
            }
            _ => None,
        })
        .collect()
}

#[test]
fn every_waiting_pod_has_an_event_with_its_reason_once_for_each_class() {
    let mut world = World::default();
    world.node("n1", "cpu=2000");
    world.pod("holder", "cpu=2000");
    for index in 0..2 {
        world.pod_with(&format!("w-{index}"), "cpu=1000", in_group("w", "2"));
    }
    world.pass(300);
    for member in ["w-0", "w-1"] {
        let told = failed_scheduling(&world, "Pod", member);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("cpu"), "{told:?}");
        assert_eq!(conditions(&world, member), ["Unschedulable"]);
    }
    assert!(failed_scheduling(&world, "Pod", "holder").is_empty());
}

#[test]
fn an_unsatisfiable_gang_is_told_to_its_owner_and_its_pod_group() {
    let mut world = World::default();
    world.node("n1", "cpu=2000");
    let controller = world.job_object("big", 2, 2, true);
    for index in 0..2 {
        world.pod_with(&format!("big-{index}"), "cpu=9000", |pod| pod.controller = Some(controller.clone()));
    }
    world.group("huge", Some(1), None);
    world.pod_with("huge-0", "cpu=9000", |pod| pod.scheduling_group = Some("huge".into()));
    world.pass(100);
    assert_eq!(failed_scheduling(&world, "Job", "big").len(), 1);
    assert_eq!(failed_scheduling(&world, "PodGroup", "huge").len(), 1);
    assert_eq!(failed_scheduling(&world, "Pod", "big-1").len(), 1);
}

#[test]
fn a_class_that_replaces_another_one_has_lasted_and_a_pod_that_waits_is_written_seldom() {
    // What is free comes and goes each second, so those that wait are short of nodes at one time, and at another
    // would only delay the first in the queue.
    let mut world = World::default();
    for node in 0..4 {
        world.node(&format!("n{node}"), "cpu=4000");
        world.pod_with(&format!("holder-{node}"), "cpu=3000", |pod| pod.active_deadline = Some(10_000));
    }
    world.pod_with("head", "cpu=4000", |pod| (pod.priority, pod.active_deadline) = (10, Some(50)));
    for gang in 0..3 {
        for index in 0..4 {
            let name = format!("g{gang}");
            let mark = in_group(&name, "4");
            world.pod_with(&format!("g{gang}-{index}"), "cpu=1000", |pod| {
                mark(pod);
                pod.active_deadline = Some(20_000);
            });
        }
    }
    let mut written: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    let mut changes = 0;
    let mut last = None;
    for second in 0..300 {
        let name = format!("filler-{}", second / 2);
        if second % 2 == 0 {
            world.pod_with(&name, "cpu=1000", |pod| (pod.priority, pod.active_deadline) = (20, Some(5)));
        } else {
            world.delete_pod(&name);
        }
        world.pass(1);
        let class = world.job("group.g1").reason.as_ref().map(|reason| reason.class);
        changes += usize::from(class != last);
        last = class;
        for effect in world.effects.drain(..) {
            if let Effect::Unscheduled { pod, .. } = effect {
                written.entry(pod.name.to_string()).or_default().push(world.now);
            }
        }
    }
    assert!(changes > 200, "the class does change: {changes}");
    assert_eq!(world.bound("g"), 0);
    for gang in 0..3 {
        for index in 0..4 {
            let times = written.remove(&format!("g{gang}-{index}")).unwrap_or_default();
            assert_eq!(times.len(), 1, "{times:?}");
        }
    }
}

#[test]
fn a_class_that_lasts_is_told_after_half_a_minute() {
    let mut world = World::default();
    world.node("n1", "cpu=2000");
    world.pod("holder", "cpu=2000");
    world.pod("w", "cpu=1000");
    world.pass(10);
    world.delete_pod("holder");
    assert_eq!(world.bound("w"), 1, "what can start does so at once");
    world.pod("v", "cpu=2000");
    assert_eq!(conditions(&world, "v"), ["Unschedulable"]);
    world.pass(60);
    world.change_pod("v", |pod| {
        pod.unsupported = vec![fluxion_scheduler::model::Unsupported::PodTerms("too many terms".into())];
    });
    world.pass(29);
    assert_eq!(conditions(&world, "v").len(), 1);
    world.pass(2);
    assert_eq!(conditions(&world, "v"), ["Unschedulable", "FluxionUnsupportedConstraint"]);
}

#[test]
fn a_restart_writes_nothing_that_stands_there_already() {
    let mut world = World::default();
    world.node("n1", "cpu=1000");
    world.pod("w", "cpu=2000");
    let written = conditions(&world, "w");
    assert_eq!(written, ["Unschedulable"]);
    world.change_pod("w", |pod| pod.unscheduled = Some(("Unschedulable".into(), "text".into())));
    world.effects.clear();
    world.restart();
    world.pass(60);
    assert!(conditions(&world, "w").is_empty() && failed_scheduling(&world, "Pod", "w").is_empty());
}

#[test]
fn ungated_siblings_of_a_gated_pod_have_their_condition() {
    let mut world = World::default();
    world.node("n1", "cpu=4000");
    world.pod_with("m-0", "cpu=1000", in_group("m", "2"));
    let mark = in_group("m", "2");
    world.pod_with("m-1", "cpu=1000", |pod| {
        mark(pod);
        pod.gates = vec!["wait".into()];
    });
    world.pass(10);
    assert_eq!(conditions(&world, "m-0"), ["FluxionGathering"]);
    assert!(conditions(&world, "m-1").is_empty(), "a gated Pod's condition is not ours");
    world.change_pod("m-1", |pod| pod.gates.clear());
    assert_eq!(world.line("group.m"), "Running 2/2");
}

/// The phases that the group went through.
fn phases(world: &World) -> Vec<&'static str> {
    let phase = |effect: &Effect| match effect {
        Effect::GroupStatus { status, .. } => Some(status.phase),
        _ => None,
    };
    let mut phases: Vec<_> = world.effects.iter().filter_map(phase).collect();
    phases.dedup();
    phases
}

fn sigs_group(world: &mut World, timeout: Option<i64>) {
    world.group("train", Some(2), None);
    let mut group = world.groups.values().next().expect("the group made above").clone();
    group.api = GroupApi::SchedulerPlugins;
    group.api_version = "scheduling.x-k8s.io/v1alpha1".into();
    group.schedule_timeout = timeout;
    world.groups.insert(group.uid.clone(), group.clone());
    world.step(vec![Event::GroupGone(group.uid.clone()), Event::Group(Box::new(group))]);
}

#[test]
fn a_group_of_scheduler_plugins_has_its_status_from_gathering_to_its_end() {
    let mut world = World::default();
    world.node("n1", "cpu=4000");
    world.pod("holder", "cpu=3000");
    sigs_group(&mut world, None);
    let member = |pod: &mut fluxion_scheduler::model::PodSpec| {
        pod.labels.insert("scheduling.x-k8s.io/pod-group".into(), "train".into());
    };
    world.pod_with("w-0", "cpu=1000", member);
    assert_eq!(phases(&world), ["Pending"]);
    world.pod_with("w-1", "cpu=1000", member);
    world.pass(5);
    assert_eq!(phases(&world), ["Pending", "Scheduling"]);
    world.delete_pod("holder");
    world.pass(1);
    assert_eq!(phases(&world).last(), Some(&"Running"));
    for index in 0..2 {
        world.end_pod(&format!("w-{index}"), Phase::Succeeded);
    }
    assert_eq!(phases(&world).last(), Some(&"Finished"));
    let last = world.effects.iter().rev().find_map(|effect| match effect {
        Effect::GroupStatus { status, .. } => Some(status.clone()),
        _ => None,
    });
    assert_eq!(last.map(|status| (status.running, status.succeeded)), Some((0, 2)));
}

#[test]
fn schedule_timeout_seconds_bounds_how_long_members_hold_nodes_for_the_others() {
    let mut world = World::new(Settings::default());
    for node in ["n1", "n2"] {
        world.node(node, "cpu=1000");
    }
    sigs_group(&mut world, Some(20));
    world.bind =
        |pod, _| (&*pod.name == "w-1").then(|| fluxion_scheduler::event::BindOutcome::Refused("no".into()));
    let controller = world.job_object("j", 2, 2, false);
    for index in 0..2 {
        world.pod_with(&format!("w-{index}"), "cpu=1000", |pod| {
            pod.labels.insert("scheduling.x-k8s.io/pod-group".into(), "train".into());
            pod.controller = Some(controller.clone());
        });
    }
    let evicted = |world: &World| world.effects.iter().any(|effect| matches!(effect, Effect::Evict { .. }));
    world.pass(19);
    assert!(!evicted(&world));
    world.pass(2);
    assert!(evicted(&world));
}

#[test]
fn what_could_not_be_understood_is_found_by_the_audit_and_told_to_the_job() {
    let mut world = World::default();
    world.node_with("n1", "cpu=4000", |node| node.problems = vec!["status.allocatable of gpu is 'x'".into()]);
    for index in 0..3 {
        world.pod_with(&format!("w-{index}"), "cpu=9000", |pod| {
            pod.problems = vec!["toleration of gpu has unknown operator 'Gt' and tolerates nothing".into()];
        });
    }
    let findings = world.state.audit();
    let of = |object: &str| -> Vec<&str> {
        let found = |finding: &&fluxion_scheduler::state::Finding| {
            finding.class == "NotUnderstood" && finding.object.ends_with(object)
        };
        findings.iter().filter(found).map(|finding| finding.text.as_str()).collect()
    };
    assert_eq!(of("node/n1"), ["status.allocatable of gpu is 'x'"]);
    assert!(of("pod/w-1")[0].contains("'Gt'"), "{findings:?}");
    assert!(world.told("pod.w-1").contains("unknown operator 'Gt'"), "{}", world.told("pod.w-1"));
}

#[test]
fn a_restart_replaces_what_stands_there_after_half_a_minute() {
    let mut world = World::default();
    world.node("n1", "cpu=1000");
    world.pod("holder", "cpu=1000");
    let queued = |pod: &mut PodSpec| pod.unscheduled = Some(("FluxionQueued".into(), "waits".into()));
    world.make_pod("queued", "cpu=1000", queued);
    world.make_pod("foreign", "cpu=1000", |pod| pod.unscheduled = Some(("Other".into(), "waits".into())));
    world.restart();
    assert_eq!(conditions(&world, "queued"), [""; 0]);
    assert_eq!(conditions(&world, "foreign"), ["Unschedulable"], "nobody's word on scheduling");
    world.pass(30);
    assert_eq!(conditions(&world, "queued"), ["Unschedulable"]);
}

#[test]
fn a_native_pod_group_is_told_when_nodes_are_short_and_not_while_it_gathers() {
    let mut world = World::default();
    world.node("n1", "cpu=2000");
    world.pod("holder", "cpu=1000");
    world.group("g", Some(2), None);
    let told = |world: &World| -> Vec<(bool, &'static str)> {
        let told = world.effects.iter().filter_map(|effect| match effect {
            Effect::GroupScheduled { scheduled, reason, .. } => Some((*scheduled, *reason)),
            _ => None,
        });
        told.collect()
    };
    let member = |pod: &mut PodSpec| pod.scheduling_group = Some("g".into());
    world.pod_with("g-0", "cpu=1000", member);
    world.pass(60);
    assert_eq!(told(&world), []);
    world.pod_with("g-1", "cpu=1000", member);
    world.pass(60);
    assert_eq!(told(&world), [(false, "Unschedulable")]);
    world.delete_pod("holder");
    world.pass(60);
    assert_eq!(told(&world), [(false, "Unschedulable"), (true, "Scheduled")]);
}

#[test]
fn a_group_of_scheduler_plugins_whose_pods_are_bound_and_do_not_run_yet_is_scheduled() {
    let mut world = World::default();
    world.node("n1", "cpu=4000");
    sigs_group(&mut world, None);
    let member = |pod: &mut PodSpec| {
        pod.labels.insert("scheduling.x-k8s.io/pod-group".into(), "train".into());
    };
    for index in 0..2 {
        world.pod_with(&format!("train-{index}"), "cpu=1000", member);
    }
    assert_eq!(phases(&world).last(), Some(&"Running"));
    world.change_pod("train-1", |pod| pod.phase = Phase::Pending);
    assert_eq!(phases(&world).last(), Some(&"Scheduled"));
}
