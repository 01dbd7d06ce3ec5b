//! Who starts when: priority and age, reservations and backfill, time limits, what can never run.

mod world;

use fluxion_scheduler::model::{OwnerDetail, Phase};
use fluxion_scheduler::queue::QueueConfig;
use fluxion_scheduler::state::{JobState, ReasonClass, Settings};
use world::{World, in_group};

fn with_limit(seconds: i64) -> impl FnOnce(&mut fluxion_scheduler::model::PodSpec) {
    move |pod| pod.active_deadline = Some(seconds)
}

#[test]
fn a_wide_job_gets_a_reservation_that_only_short_jobs_may_pass() {
    let mut world = World::default();
    for node in ["n1", "n2", "n3"] {
        world.node(node, "cpu=4000");
    }
    for name in ["r-1", "r-2", "r-3"] {
        world.pod_with(name, "cpu=4000", with_limit(600));
    }
    let started = world.now;
    for index in 0..3 {
        world.pod_with(&format!("wide-{index}"), "cpu=4000", |pod| {
            in_group("wide", "3")(pod);
            pod.active_deadline = Some(1000);
        });
    }
    assert_eq!(world.state_of("group.wide"), JobState::Reserved);
    let reservation = world.job("group.wide").reservation.clone().unwrap();
    assert_eq!((reservation.start, reservation.end), (started + 600, Some(started + 1600)));
    assert_eq!(reservation.nodes.iter().map(|name| &**name).collect::<Vec<_>>(), ["n1", "n2", "n3"]);
    assert_eq!(world.job("group.wide").waits_for.len(), 3);
    assert!(!world.told("group.wide").contains("reserved for"), "its own reservation is not in its way");
    world.at(10);
    world.delete_pod("r-1");
    world.pod_with("long", "cpu=4000", with_limit(6000));
    assert_eq!(world.bound("long"), 0);
    assert!(world.told("pod.long").contains("group/wide"), "{}", world.told("pod.long"));
    assert_eq!(
        world.job("group.wide").reservation.as_ref().unwrap().start,
        started + 600,
        "nobody delays it"
    );
    world.pod_with("short", "cpu=4000", with_limit(60));
    assert_eq!(world.bound("short"), 1, "it ends before the reserved start");
    world.delete_pod("short");
    world.delete_pod("r-2");
    assert_eq!(world.bound("long"), 0, "two nodes are free and still wide is first");
    world.delete_pod("r-3");
    assert_eq!((world.bound("wide"), world.bound("long")), (3, 0));
}

#[test]
fn priority_then_age_and_the_same_after_a_restart() {
    let mut world = World::default();
    world.node("n1", "cpu=2000");
    world.pod("blocker", "cpu=2000");
    for (name, priority, later) in
        [("plain", 0, 0), ("low-1", 100, 0), ("high-1", 1000, 0), ("low-2", 100, 2), ("high-2", 1000, 0)]
    {
        world.at(later);
        world.pod_with(name, "cpu=1000", |pod| pod.priority = priority);
    }
    let order = |world: &World| -> Vec<String> {
        world.state.pending("default").iter().map(|job| job.key.display()).collect()
    };
    let wanted = ["pod/high-1", "pod/high-2", "pod/low-1", "pod/low-2", "pod/plain"];
    assert_eq!(order(&world), wanted);
    world.restart();
    assert_eq!(order(&world), wanted);
    world.delete_pod("blocker");
    assert_eq!((world.bound("high"), world.bound("low"), world.bound("plain")), (2, 0, 0));
    world.delete_pod("high-1");
    assert_eq!((world.bound("low-1"), world.bound("low-2")), (1, 0));
    world.delete_pod("high-2");
    assert_eq!((world.bound("low-2"), world.bound("plain")), (1, 0));
    world.delete_pod("low-1");
    assert_eq!(world.bound("plain"), 1);
}

#[test]
fn what_can_never_run_is_said_at_once_and_looked_at_again() {
    let mut world = World::default();
    world.node("n1", "cpu=8000");
    world.node("n2", "cpu=8000");
    world.pod("full-1", "cpu=8000");
    world.pod("full-2", "cpu=8000");
    for index in 0..3 {
        world.pod_with(&format!("three-{index}"), "cpu=8000", in_group("three", "3"));
    }
    for index in 0..2 {
        world.pod_with(&format!("two-{index}"), "cpu=8000", in_group("two", "2"));
    }
    world.pod("device", "example.com/tpu=1");
    world.pod("huge", "cpu=20000");
    assert_eq!(world.state_of("group.three"), JobState::Unsatisfiable);
    let told = world.told("group.three");
    assert!(told.contains('3') && told.contains('2'), "{told}");
    assert!(matches!(world.state_of("group.two"), JobState::Pending | JobState::Reserved));
    assert!(world.told("group.two").contains("cpu"), "{}", world.told("group.two"));
    assert!(world.told("pod.device").contains("example.com/tpu"), "{}", world.told("pod.device"));
    assert_eq!(world.state_of("pod.huge"), JobState::Unsatisfiable);
    assert!(
        world.told("pod.huge").contains("20") && world.told("pod.huge").contains('8'),
        "{}",
        world.told("pod.huge")
    );
    world.node("n3", "cpu=8000");
    assert!(matches!(world.state_of("group.three"), JobState::Pending | JobState::Reserved));
    assert_eq!(world.state_of("pod.huge"), JobState::Unsatisfiable);
    world.node("n4", "cpu=32000 example.com/tpu=1");
    assert_eq!((world.bound("huge"), world.bound("device")), (1, 1));
}

#[test]
fn who_waits_on_a_job_without_a_limit_is_told_so() {
    let queue = QueueConfig { assumed_duration: None, ..QueueConfig::default() };
    let mut world = World::new(Settings { queues: vec![queue], ..Settings::default() });
    world.node("n1", "cpu=8000");
    world.pod("p-none", "cpu=1000");
    world.pod_with("p-5", "cpu=1000", with_limit(5));
    world.pod("behind", "cpu=8000");
    let told = world.told("pod.behind");
    assert!(told.contains("no time limit") && told.contains("p-none"), "{told}");
    assert_eq!(world.job("pod.behind").reservation, None);
}

#[test]
fn durations_come_from_the_annotation_then_the_pod_and_never_wrap() {
    let mut world = World::default();
    world.node("n1", "cpu=8000");
    world.pod_with("max", "cpu=1000", with_limit(i64::MAX));
    assert_eq!(world.line("pod.max"), "Running 1/1");
    assert_eq!(world.job("pod.max").planned_end, None, "the end of time is no end");
    world.pod_with("note", "cpu=1000", |pod| {
        pod.active_deadline = Some(3600);
        pod.annotations.insert("fluxion.flux-framework.org/duration".into(), "90s".into());
    });
    assert_eq!(world.job("pod.note").duration, Some(90));
    world.pod_with("bad", "cpu=1000", |pod| {
        pod.annotations.insert("fluxion.flux-framework.org/duration".into(), "soon".into());
    });
    assert_eq!(world.bound("bad"), 0);
    assert_eq!(world.job("pod.bad").reason.as_ref().unwrap().class, ReasonClass::InvalidRequest);
    assert!(world.told("pod.bad").contains("soon"));
}

#[test]
fn an_overrun_frees_nothing_and_plans_move_behind_it() {
    let mut world = World::default();
    world.node("n1", "cpu=4000");
    world.pod_with("late", "cpu=4000", with_limit(10));
    world.pod_with("next", "cpu=4000", with_limit(10));
    let planned = world.job("pod.next").reservation.as_ref().unwrap().start;
    assert_eq!(planned, world.now + 10);
    world.pass(60);
    assert_eq!(world.bound("next"), 0);
    assert!(world.job("pod.next").reservation.as_ref().unwrap().start > planned);
    world.end_pod("late", Phase::Failed);
    assert_eq!(world.line("pod.next"), "Running 1/1");
}

#[test]
fn a_rack_is_required_as_a_whole() {
    let mut world = World::default();
    for (node, rack) in [("a1", "ra"), ("a2", "ra"), ("b1", "rb"), ("b2", "rb"), ("b3", "rb")] {
        world.node_with(node, "cpu=4000", |node| {
            node.labels.insert("rack".into(), rack.into());
        });
    }
    world.node("x1", "cpu=4000");
    world.pod_with("occupant", "cpu=2000", |pod| {
        pod.scheduler_name = "default-scheduler".into();
        pod.node = Some("b3".into());
    });
    world.group("tight", Some(3), Some("rack"));
    world.group("wide", Some(4), Some("rack"));
    for index in 0..3 {
        world.pod_with(&format!("tight-{index}"), "cpu=3000", |pod| {
            pod.scheduling_group = Some("tight".into());
        });
    }
    for index in 0..4 {
        world
            .pod_with(&format!("wide-{index}"), "cpu=3000", |pod| pod.scheduling_group = Some("wide".into()));
    }
    assert_eq!((world.bound("tight"), world.state_of("podgroup.wide")), (0, JobState::Unsatisfiable));
    let told = world.told("podgroup.tight");
    assert!(told.contains("rack") && told.contains('3') && told.contains('2'), "{told}");
    world.delete_pod("occupant");
    let mut nodes: Vec<_> =
        (0..3).filter_map(|index| world.node_of(&format!("tight-{index}")).map(str::to_owned)).collect();
    nodes.sort();
    assert_eq!(nodes, ["b1", "b2", "b3"]);
}

#[test]
fn nodes_that_are_down_or_cordoned_are_the_reason_then() {
    let mut world = World::default();
    world.node_with("n1", "cpu=4000", |node| node.ready = false);
    world.node_with("n2", "cpu=4000", |node| node.unschedulable = true);
    world.pod("small", "cpu=1000");
    assert_eq!(world.state_of("pod.small"), JobState::Pending);
    let told = world.told("pod.small");
    assert!(told.contains("1 was not ready") && told.contains("1 was cordoned"), "{told}");
    world.node("n1", "cpu=4000");
    assert_eq!(world.node_of("small"), Some("n1"));
}

#[test]
fn a_node_that_loses_a_device_shows_a_deficit_and_frees_nothing() {
    let mut world = World::default();
    world.node("gpu-1", "cpu=32000 nvidia.com/gpu=8");
    world.pod("eight", "cpu=8000 nvidia.com/gpu=8");
    world.node_with("gpu-1", "cpu=32000 nvidia.com/gpu=8", |node| {
        node.allocatable.set("nvidia.com/gpu", 6);
    });
    let view = world.state.inventory().node("gpu-1").unwrap();
    assert_eq!((view.free.get("nvidia.com/gpu"), view.deficit.get("nvidia.com/gpu")), (0, 2));
    world.pod("six", "cpu=1000 nvidia.com/gpu=6");
    world.pod("cpu-only", "cpu=4000");
    assert_eq!(
        (world.bound("six"), world.bound("cpu-only"), world.state_of("pod.eight")),
        (0, 1, JobState::Running)
    );
    assert!(matches!(world.state_of("pod.six"), JobState::Pending | JobState::Reserved));
    assert!(world.state.audit().iter().any(|finding| finding.class == "Overcommitted"));
    world.delete_pod("eight");
    assert_eq!(world.bound("six"), 1);
    assert!(world.state.audit().is_empty(), "{:?}", world.state.audit());
}

#[test]
fn the_limit_of_the_kubernetes_job_ends_its_pods_where_it_comes_first() {
    let mut world = World::default();
    world.node("n1", "cpu=4000");
    for (name, pod_limit) in [("late", 1_000), ("early", 20)] {
        let controller = world.job_object(name, 1, 1, true);
        let now = world.now;
        world.change_owner(name, |owner| {
            if let OwnerDetail::Job { active_deadline, start_time, .. } = &mut owner.detail {
                (*active_deadline, *start_time) = (Some(100), Some(now - 50));
            }
        });
        world.pod_with(&format!("{name}-0"), "cpu=1000", |pod| {
            (pod.controller, pod.active_deadline) = (Some(controller), Some(pod_limit));
        });
    }
    let end = |name: &str| world.job(name).planned_end;
    assert_eq!((end("job.late"), end("job.early")), (Some(world.now + 50), Some(world.now + 20)));
}
