//! Bindings that fail: other nodes are tried, half-bound gangs are held or released whole, nothing is tried for ever.

mod world;

use fluxion_scheduler::event::{BindOutcome, Effect, LET_GO};
use fluxion_scheduler::model::{ObjectRef, Phase};
use fluxion_scheduler::queue::{OnPartialBind, QueueConfig};
use fluxion_scheduler::state::{JobState, ReasonClass, Settings};
use world::{World, in_group};

fn world(settings: Settings) -> World {
    let mut world = World::new(settings);
    world.node("n1", "cpu=2000");
    world.node("n2", "cpu=2000");
    world
}

fn refuse_second(pod: &ObjectRef, _: &std::sync::Arc<str>) -> Option<BindOutcome> {
    pod.name.ends_with("-1").then(|| BindOutcome::Refused("policy says no".into()))
}

/// Events about this Pod with this reason.
fn events<'a>(world: &'a World, about: &str, wanted: &str) -> Vec<&'a str> {
    world
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Note { regarding, reason, note, .. }
                if &*regarding.name == about && *reason == wanted =>
            {
                Some(note.as_str())
            }
            _ => None,
        })
        .collect()
}

fn conditions<'a>(world: &'a World, about: &str) -> Vec<(&'static str, &'a str)> {
    world
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Unscheduled { pod, reason, message } if &*pod.name == about => {
                Some((*reason, message.as_str()))
            }
            _ => None,
        })
        .collect()
}

fn evicted(world: &World) -> Vec<&str> {
    world
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Evict { pod, .. } => Some(&*pod.name),
            _ => None,
        })
        .collect()
}

fn binds(world: &World, name: &str) -> Vec<String> {
    world
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Bind { pod, node, .. } if &*pod.name == name => Some(node.to_string()),
            _ => None,
        })
        .collect()
}

fn pair_of_job(world: &mut World) {
    let controller = world.job_object("j", 2, 2, true);
    world.bind = refuse_second;
    for index in 0..2 {
        world.pod_with(&format!("j-{index}"), "cpu=2000", |pod| pod.controller = Some(controller.clone()));
    }
}

#[test]
fn a_half_bound_gang_with_a_controller_is_released_whole_and_starts_again_whole() {
    let mut world = world(Settings::default());
    pair_of_job(&mut world);
    assert_eq!((world.state_of("job.j"), world.bound("j")), (JobState::Binding, 1));
    world.pass(299);
    assert!(evicted(&world).is_empty());
    world.pass(2);
    assert_eq!(evicted(&world), ["j-0"]);
    for member in ["j-0", "j-1"] {
        let told = events(&world, member, "GangReleased");
        assert_eq!(told.len(), 1, "{member}");
        assert!(told[0].contains("j-1") && told[0].contains("policy says no"), "{told:?}");
    }
    // What was not bound keeps no node and does not go on alone; what was bound holds its own until it is gone.
    assert_eq!(world.state.inventory().node("n2").unwrap().free.get("cpu"), 2000);
    assert!(world.job("job.j").request.is_none());
    world.bind = |_, _| None;
    world.change_pod("j-0", |pod| {
        pod.disruption = Some(LET_GO.into());
        pod.deleting = true;
    });
    let controller = world.pods.values().find(|pod| &*pod.name == "j-1").unwrap().controller.clone();
    world.pod_with("j-2", "cpu=2000", |pod| pod.controller = controller);
    world.pass(1);
    assert_eq!(world.bound("j-1") + world.bound("j-2"), 0, "it waits for its pause");
    world.delete_pod("j-0");
    world.pass(40);
    assert_eq!((world.line("job.j"), world.bound("j")), ("Running 2/2".to_owned(), 2));
    assert_eq!(evicted(&world), ["j-0"], "a replacement is not deleted by an old deadline");
    world.pass(600);
    assert_eq!((evicted(&world).len(), world.state.audit().len()), (1, 0), "{:?}", world.state.audit());
}

/// As seen by an inspector that leads from then on.
#[test]
fn the_rest_of_a_half_bound_gang_starts_though_its_bound_members_have_ended() {
    for (phase, line, bound) in [(Phase::Succeeded, "Running 2/3", 2), (Phase::Failed, "Gathering 2/3", 0)] {
        let mut world = world(Settings::default());
        world.bind = |pod, _| (&*pod.name != "m-0").then(|| BindOutcome::Transient("cut off".into()));
        for index in 0..3 {
            world.pod_with(&format!("m-{index}"), "cpu=1000", in_group("m", "3"));
        }
        assert_eq!(world.bound("m"), 1);
        world.bind = |_, _| None;
        world.end_pod("m-0", phase);
        world.restart();
        world.pass(1);
        assert_eq!(
            (world.line("group.m").as_str(), world.bound("m")),
            (line, bound),
            "{}",
            world.told("group.m")
        );
    }
}

#[test]
fn the_deadline_runs_from_the_first_binding_over_restarts() {
    let mut world = world(Settings::default());
    pair_of_job(&mut world);
    world.pass(200);
    world.restart();
    assert_eq!(world.bound("j"), 1);
    world.pass(90);
    assert!(evicted(&world).is_empty(), "290 s");
    world.pass(20);
    assert_eq!(evicted(&world), ["j-0"]);
    // The restart comes after the mark and before the eviction.
    world.change_pod("j-0", |pod| pod.disruption = Some(LET_GO.into()));
    world.effects.clear();
    world.restart();
    assert_eq!(evicted(&world), ["j-0"]);
    assert_eq!(world.bound("j-1"), 0);
}

#[test]
fn the_pause_doubles_with_each_time_a_gang_is_given_up() {
    let mut world = world(Settings { bind_deadline: 10, ..Settings::default() });
    pair_of_job(&mut world);
    let mut pauses = Vec::new();
    for round in 2..6 {
        world.pass(12);
        let bound = world.pods.values().find(|pod| pod.node.is_some()).unwrap();
        let (bound, controller) = (bound.name.to_string(), bound.controller.clone());
        world.delete_pod(&bound);
        let before = world.now;
        world.pod_with(&format!("j-{round}0"), "cpu=2000", |pod| pod.controller = controller);
        while world.bound("j") == 0 && world.now < before + 4000 {
            world.pass(1);
        }
        pauses.push(world.now - before);
    }
    // Two seconds of each pass before the replacement comes.
    assert_eq!(pauses, [28, 58, 118, 238]);
}

#[test]
fn bare_pods_are_held_and_say_so_unless_it_is_set_otherwise() {
    for (settings, released) in [
        (Settings::default(), false),
        (Settings { on_partial_bind: Some(OnPartialBind::Release), ..Settings::default() }, true),
        (
            Settings {
                on_partial_bind: Some(OnPartialBind::Release),
                queues: vec![QueueConfig {
                    on_partial_bind: Some(OnPartialBind::Hold),
                    ..QueueConfig::default()
                }],
                ..Settings::default()
            },
            false,
        ),
    ] {
        let mut world = world(settings);
        world.bind = refuse_second;
        for index in 0..2 {
            world.pod_with(&format!("m-{index}"), "cpu=2000", in_group("m", "2"));
        }
        world.pass(400);
        assert_eq!(evicted(&world).contains(&"m-0"), released);
        let event = if released { "GangReleased" } else { "GangHeld" };
        for member in ["m-0", "m-1"] {
            let told = events(&world, member, event);
            assert!(told.len() == 1 && told[0].contains("m-1 to node n2: policy says no"), "{told:?}");
        }
        if !released {
            let findings = world.state.audit();
            let partly = findings.iter().find(|finding| finding.class == "PartlyBound").unwrap();
            assert!(partly.text.contains("1 of 2") && partly.text.contains("policy says no"), "{partly:?}");
            world.bind = |_, _| None;
            world.pass(600);
            assert_eq!(world.line("group.m"), "Running 2/2", "a held gang is completed when it can be");
            assert!(world.state.audit().is_empty());
        }
    }
}

#[test]
fn the_refused_pod_is_told_what_the_api_server_answered() {
    let mut world = world(Settings::default());
    pair_of_job(&mut world);
    let told = conditions(&world, "j-1");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].0, "FluxionBindFailed");
    assert!(told[0].1.contains("policy says no"), "{told:?}");
    assert!(events(&world, "j-1", "FailedScheduling")[0].contains("policy says no"));
    assert!(conditions(&world, "j-0").is_empty());
    world.pass(100);
    assert_eq!(conditions(&world, "j-1").len(), 1, "once");
}

#[test]
fn a_refused_member_tries_other_nodes_and_a_node_that_refuses_is_left_out() {
    let mut world = World::default();
    for node in ["n1", "n2", "n3"] {
        world.node(node, "cpu=2000");
    }
    world.bind = |_, node| (&**node == "n2").then(|| BindOutcome::Refused("n2 is closed".into()));
    for index in 0..2 {
        world.pod_with(&format!("a-{index}"), "cpu=2000", in_group("a", "2"));
    }
    world.pass(2);
    assert_eq!((world.line("group.a"), world.node_of("a-1")), ("Running 2/2".to_owned(), Some("n3")));
    for index in 0..2 {
        world.delete_pod(&format!("a-{index}"));
    }
    world.effects.clear();
    // A second job is refused there too; from then on the namespace's jobs leave the node out.
    for index in 0..2 {
        world.pod_with(&format!("b-{index}"), "cpu=2000", in_group("b", "2"));
    }
    world.pass(2);
    assert_eq!(world.line("group.b"), "Running 2/2");
    let findings = world.state.audit();
    let found =
        findings.iter().any(|finding| finding.class == "RefusesBindings" && finding.object == "node/n2");
    assert!(found, "{findings:?}");
    world.pod("single", "cpu=2000");
    assert!(binds(&world, "single").is_empty());
    assert!(
        world.told("pod.single").contains("1 recently rejected a binding"),
        "{}",
        world.told("pod.single")
    );
    assert_ne!(world.state_of("pod.single"), JobState::Unsatisfiable);
    world.bind = |_, _| None;
    world.pass(310);
    assert_eq!(world.node_of("single"), Some("n2"), "after a while it is tried again");
    assert!(world.state.audit().is_empty());
}

#[test]
fn a_pod_that_is_refused_everywhere_closes_no_node_to_others() {
    let mut world = World::default();
    for node in 0..6 {
        world.node(&format!("n{node}"), "cpu=2000");
    }
    world.bind = |pod, _| pod.name.starts_with("bad").then(|| BindOutcome::Refused("no".into()));
    for index in 0..3 {
        world.pod(&format!("bad-{index}"), "cpu=2000");
    }
    world.pass(20);
    let refused: std::collections::BTreeSet<String> = binds(&world, "bad-0").into_iter().collect();
    assert!(refused.len() >= 3, "{refused:?}");
    world.pod_with("good", "cpu=2000", |pod| pod.priority = 1);
    world.pass(1);
    assert_eq!(world.bound("good"), 1);
    assert!(!world.state.audit().iter().any(|finding| finding.class == "RefusesBindings"));
}

#[test]
fn a_binding_that_is_refused_for_good_is_not_tried_for_ever() {
    let mut world = world(Settings::default());
    world.bind = |_, _| Some(BindOutcome::Refused("quota".into()));
    world.pod("p", "cpu=1000");
    world.pass(7200);
    let tries = binds(&world, "p").len();
    assert!(tries < 60, "{tries} tries in two hours");
    let job = world.job("pod.p");
    assert_eq!((job.state, job.reason.as_ref().unwrap().class), (JobState::Pending, ReasonClass::BindFailed));
    assert!(job.reason.as_ref().unwrap().text().contains("quota"));
    let findings = world.state.audit();
    assert!(
        findings.iter().any(|finding| finding.class == "BindingRefused" && finding.text.contains("quota"))
    );
    assert_eq!(
        world.state.inventory().node("n1").unwrap().free.get("cpu"),
        2000,
        "it keeps no node meanwhile"
    );
    world.bind = |_, _| None;
    world.pass(3700);
    assert_eq!(world.line("pod.p"), "Running 1/1");
    assert!(world.state.audit().is_empty());
}

#[test]
fn a_replacement_whose_binding_is_refused_harms_no_running_member() {
    let mut world = world(Settings::default());
    let controller = world.job_object("j", 2, 2, true);
    for index in 0..2 {
        world.pod_with(&format!("j-{index}"), "cpu=2000", |pod| pod.controller = Some(controller.clone()));
    }
    assert_eq!(world.line("job.j"), "Running 2/2");
    world.pass(10);
    world.delete_pod("j-1");
    world.bind = |_, _| Some(BindOutcome::Refused("no".into()));
    world.pod_with("j-2", "cpu=2000", |pod| pod.controller = Some(controller.clone()));
    world.pass(3000);
    world.restart();
    world.pass(3000);
    assert!(evicted(&world).is_empty());
    assert_eq!(world.bound("j-0"), 1);
}

#[test]
fn a_pod_that_is_bound_after_all_when_its_gang_was_released_goes_too() {
    let mut world = world(Settings::default());
    world.bind = |pod, _| pod.name.ends_with("-1").then(|| BindOutcome::Transient("timeout".into()));
    let controller = world.job_object("j", 2, 2, true);
    for index in 0..2 {
        world.pod_with(&format!("j-{index}"), "cpu=2000", |pod| pod.controller = Some(controller.clone()));
    }
    world.pass(305);
    assert_eq!(evicted(&world), ["j-0"]);
    let record = world.pods.values().find_map(|pod| pod.record.clone());
    world.change_pod("j-1", |pod| {
        pod.node = Some("n2".into());
        pod.record = record;
        pod.scheduled_at = Some(1_000_305);
    });
    assert_eq!(evicted(&world), ["j-0", "j-1"]);
}

#[test]
fn a_pod_that_can_not_be_evicted_is_asked_to_go_again_and_found_by_the_audit() {
    let mut world = world(Settings::default());
    pair_of_job(&mut world);
    world.pass(305);
    assert_eq!(evicted(&world), ["j-0"]);
    assert!(!world.state.audit().iter().any(|finding| finding.class == "NotEvicted"));
    world.pass(60);
    assert!((2..=4).contains(&evicted(&world).len()), "{:?}", evicted(&world));
    let findings = world.state.audit();
    let found = findings.iter().find(|finding| finding.class == "NotEvicted").unwrap();
    assert!(
        found.text.contains("Pod j-0 was released") && found.text.contains("PodDisruptionBudgets"),
        "{found:?}"
    );
}

#[test]
fn what_is_refused_in_one_namespace_closes_no_node_to_another() {
    let mut world = World::default();
    world.node("n1", "cpu=4000");
    world.node("n2", "cpu=4000");
    world.bind = |pod, node| {
        (&*pod.namespace == "a" && &**node == "n1").then(|| BindOutcome::Refused("not in a".into()))
    };
    for index in 0..3 {
        world.pod_with(&format!("a-{index}"), "cpu=1000", |pod| pod.namespace = "a".into());
        world.pass(2);
    }
    assert_eq!(binds(&world, "a-1"), ["n1", "n2"]);
    assert_eq!(binds(&world, "a-2"), ["n2"], "two of its namespace were refused there");
    world.pod_with("b-0", "cpu=1000", |pod| pod.namespace = "b".into());
    assert_eq!(world.node_of("b-0"), Some("n1"));
}

#[test]
fn every_pod_that_is_bound_has_one_event_whoever_says_so_first() {
    for watch_first in [true, false] {
        let mut world = world(Settings::default());
        world.binding = false;
        world.pod("p", "cpu=1000");
        let record = world.effects.iter().find_map(|effect| match effect {
            Effect::Bind { record, .. } => Some(record.clone()),
            _ => None,
        });
        let answer =
            fluxion_scheduler::event::Event::Bound { pod: "uid-p".into(), outcome: BindOutcome::Done };
        let seen = |world: &mut World| {
            world.change_pod("p", |pod| {
                (pod.node, pod.record, pod.scheduled_at) =
                    (Some("n1".into()), record.clone(), Some(1_000_000));
            });
        };
        if watch_first {
            seen(&mut world);
            world.step(vec![answer]);
        } else {
            world.step(vec![answer]);
            seen(&mut world);
        }
        assert_eq!(events(&world, "p", "Scheduled"), ["Successfully assigned default/p to n1"]);
    }
}

#[test]
fn a_binding_that_failed_is_no_reason_any_more_once_it_is_done() {
    let mut world = world(Settings::default());
    world.bind = |_, _| Some(BindOutcome::Transient("etcd leader changed".into()));
    world.pod("p", "cpu=1000");
    let class = |world: &World| world.job("pod.p").reason.as_ref().map(|reason| reason.class);
    assert_eq!((world.state_of("pod.p"), class(&world)), (JobState::Binding, Some(ReasonClass::BindFailed)));
    world.bind = |_, _| None;
    world.pass(10);
    assert_eq!((world.state_of("pod.p"), class(&world)), (JobState::Running, None));
}
