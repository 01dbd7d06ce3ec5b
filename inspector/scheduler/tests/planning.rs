//! What is planned, why, what moves it, and what would be if.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use fluxion_scheduler::event::Event;
use fluxion_scheduler::model::Phase;
use fluxion_scheduler::queue::{QueueConfig, QueuePolicy};
use fluxion_scheduler::request::Request;
use fluxion_scheduler::state::{JobState, ReasonClass, Settings};
use world::{World, in_group};

fn with(policy: QueuePolicy) -> World {
    let queue = QueueConfig { policy, assumed_duration: None, ..QueueConfig::default() };
    World::new(Settings { queues: vec![queue], ..Settings::default() })
}

fn limited(world: &mut World, name: &str, cpu: u32, limit: i64) {
    world.at(1);
    world.pod_with(name, &format!("cpu={cpu}"), |pod| pod.active_deadline = Some(limit));
}

fn waits_for(world: &World, job: &str) -> Vec<String> {
    let job = world.job(job);
    job.waits_for.iter().map(|id| world.state.job(*id).unwrap().key.display()).collect()
}

fn class(world: &World, job: &str) -> ReasonClass {
    world.job(job).reason.as_ref().unwrap().class
}

fn history(world: &World, job: &str) -> Vec<String> {
    world.job(job).history.iter().map(|entry| entry.reason.clone()).collect()
}

#[test]
fn who_is_planned_behind_a_planned_job_waits_for_it() {
    let mut world = with(QueuePolicy::Conservative);
    world.node("n1", "cpu=4000");
    limited(&mut world, "runs", 4000, 100);
    limited(&mut world, "weather", 4000, 300);
    limited(&mut world, "climate", 4000, 50);
    let end = world.job("pod.runs").planned_end.unwrap();
    assert_eq!(waits_for(&world, "pod.weather"), ["pod/runs"]);
    assert_eq!(waits_for(&world, "pod.climate"), ["pod/runs", "pod/weather"]);
    let release = |name: &str| world.state.release_of(world.job(name)).unwrap();
    assert_eq!((release("pod.weather").at, release("pod.weather").assumed), (end + 300, false));
    assert_eq!(release("pod.climate").at, end + 350);
}

#[test]
fn no_idle_node_is_promised_where_a_busy_one_will_be_free_in_time() {
    let mut world = with(QueuePolicy::Easy);
    for number in 1..=4 {
        world.node(&format!("n{number}"), "cpu=1000 pods=10");
    }
    let gang = |world: &mut World, name: &str, size: u32, limit: i64| {
        world.at(1);
        for member in 0..size {
            world.pod_with(&format!("{name}-{member}"), "cpu=1000", |pod| {
                in_group(name, &size.to_string())(pod);
                pod.active_deadline = Some(limit);
            });
        }
    };
    // Both end together as planned, but the first of them ends early, and leaves two nodes idle.
    gang(&mut world, "first", 2, 100);
    gang(&mut world, "second", 2, 100);
    for member in ["first-0", "first-1"] {
        world.end_pod(member, Phase::Succeeded);
    }
    gang(&mut world, "wide", 3, 100);
    assert_eq!(world.state_of("group.wide"), JobState::Reserved);
    limited(&mut world, "long", 1000, 1000);
    assert!(world.node_of("long").is_some(), "the planned start needs one of the idle nodes only");
    let planned = &world.job("group.wide").reservation.as_ref().unwrap().nodes;
    assert!(planned.iter().all(|node| world.node_of("long") != Some(node)), "{planned:?}");
}

#[test]
fn a_planned_start_that_moves_says_who_moved_it() {
    let mut world = with(QueuePolicy::Easy);
    world.node("n1", "cpu=4000");
    limited(&mut world, "runs", 4000, 100);
    limited(&mut world, "waits", 4000, 50);
    let before = history(&world, "pod.waits").len();
    let start = world.job("pod.waits").reservation.as_ref().unwrap().start;

    // It overruns: one entry, however long that goes on.
    world.pass(160);
    let late = history(&world, "pod.waits");
    assert_eq!(late.len(), before + 1, "{late:?}");
    let last = &late[before];
    let moved = format!("planned start moved from {} to ", fluxion_scheduler::explain::utc(start));
    assert!(
        last.starts_with(&moved) && last.ends_with(": pod/runs exceeded its planned duration"),
        "{late:?}"
    );
    let planned = world.job("pod.waits").reservation.as_ref().unwrap().start;
    assert!(last.contains(&fluxion_scheduler::explain::utc(planned)), "{late:?} {planned}");

    // Somebody comes before it, and goes again.
    let mut world = with(QueuePolicy::Conservative);
    world.node("n1", "cpu=4000");
    limited(&mut world, "runs", 4000, 100);
    limited(&mut world, "waits", 4000, 50);
    world.at(1);
    world.pod_with("urgent", "cpu=4000", |pod| (pod.active_deadline, pod.priority) = (Some(30), 5));
    let told = history(&world, "pod.waits");
    assert!(told.last().unwrap().ends_with(": pod/urgent was scheduled ahead of it"), "{told:?}");
    world.delete_pod("urgent");
    let told = history(&world, "pod.waits");
    assert!(told.last().unwrap().ends_with(": no longer waiting for pod/urgent"), "{told:?}");

    // Its node goes down; another one is free later.
    let mut world = with(QueuePolicy::Conservative);
    world.node("n1", "cpu=4000");
    limited(&mut world, "runs", 4000, 100);
    world.node("n2", "cpu=4000");
    limited(&mut world, "other", 4000, 500);
    limited(&mut world, "waits", 4000, 50);
    world.node_with("n1", "cpu=4000", |node| node.unschedulable = true);
    let told = history(&world, "pod.waits");
    assert!(told.last().unwrap().ends_with(": node n1 is no longer available"), "{told:?}");
}

#[test]
fn nodes_that_are_down_are_told_apart_from_busy_ones() {
    let mut world = with(QueuePolicy::Easy);
    world.node("n1", "cpu=4000");
    world.pod("full", "cpu=4000");
    world.node_with("n2", "cpu=4000", |node| node.unschedulable = true);
    // It would fit on the cordoned node.
    world.at(1);
    world.pod("fits", "cpu=4000");
    assert_eq!(class(&world, "pod.fits"), ReasonClass::NodesDown, "{}", world.told("pod.fits"));
    let told = world.told("pod.fits");
    assert!(
        told.contains(
            "no start time estimate: it depends on unavailable nodes, and their recovery time is unknown"
        ),
        "{told}"
    );
    assert!(!told.contains("time limit") && told.contains("1 was cordoned"), "{told}");
    assert!(world.job("pod.fits").waits_for.is_empty());
    world.delete_pod("fits");
    // On no node, whatever its state, but behind one that ends.
    world.pod_with("theirs", "cpu=4000", |pod| {
        pod.node = Some("n2".into());
        pod.phase = Phase::Running;
        pod.scheduler_name = "other".into();
    });
    world.pod("busy", "cpu=4000");
    assert_eq!(class(&world, "pod.busy"), ReasonClass::Busy, "{}", world.told("pod.busy"));
    assert_eq!(
        world.told("pod.busy").matches("no start time estimate").count(),
        1,
        "{}",
        world.told("pod.busy")
    );
}

#[test]
fn what_a_node_withholds_from_pods_is_said() {
    let mut world = with(QueuePolicy::Easy);
    world.node_with("n1", "cpu=8000", |node| node.allocatable = world::resources("cpu=7500 pods=20"));
    world.pod("p", "cpu=7900");
    assert_eq!(world.state_of("pod.p"), JobState::Pending, "its allocatable may come back");
    let told = world.told("pod.p");
    assert!(told.contains("1 had at most 7.5 cpu even when empty (7.9 requested)"), "{told}");
    assert!(
        told.contains(
            "no start time estimate: running jobs with a planned end will not free enough resources"
        ),
        "{told}"
    );
    assert_eq!(class(&world, "pod.p"), ReasonClass::NodesDown);
    world.node("n1", "cpu=8000");
    assert_eq!(world.state_of("pod.p"), JobState::Running);
}

#[test]
fn what_is_short_most_is_named() {
    let mut world = with(QueuePolicy::Easy);
    world.node("n1", "cpu=32000 gpu=4");
    limited(&mut world, "holds", 500, 100);
    world.pod_with("gpus", "cpu=100 gpu=4", |pod| pod.active_deadline = Some(100));
    world.at(1);
    world.pod("p", "cpu=32000 gpu=4");
    let told = world.told("pod.p");
    assert!(told.contains("1 had insufficient gpu"), "31.4 of 32 CPUs are free, and no gpu: {told}");
}

#[test]
fn who_would_start_if_a_job_were_gone_is_found_on_a_clone() {
    let mut world = with(QueuePolicy::Easy);
    world.node("n1", "cpu=4000");
    let job = world.job_object("running", 3, 3, true);
    for index in 0..3 {
        let controller = job.clone();
        world.pod_with(&format!("running-{index}"), "cpu=1000", |pod| pod.controller = Some(controller));
    }
    world.at(1);
    for index in 0..2 {
        world.pod_with(&format!("next-{index}"), "cpu=2000", in_group("next", "2"));
    }
    world.at(1);
    world.pod_with("third", "cpu=2000", |pod| pod.priority = -1);
    let next = |world: &World, name: &str| {
        let job = world.job(name);
        let plan = world.state.cancel_plan(job);
        let ids = world.state.starts_without(job, &plan);
        ids.into_iter().map(|id| world.state.job(id).unwrap().key.display()).collect::<Vec<_>>()
    };
    assert_eq!(world.state_of("job.running"), JobState::Running);
    let before =
        format!("{:?}", world.state.jobs().map(|job| (job.state, job.state_since)).collect::<Vec<_>>());
    assert_eq!(next(&world, "job.running"), ["group/next"]);
    assert_eq!(next(&world, "group.next"), Vec::<String>::new(), "there is no room for the third");
    let after =
        format!("{:?}", world.state.jobs().map(|job| (job.state, job.state_since)).collect::<Vec<_>>());
    assert_eq!(before, after, "nothing was changed");
}

#[test]
fn a_trial_knows_the_place_in_the_queue() {
    let shorter = |world: &World, name: &str, seconds: i64| {
        let job = world.job(name);
        let request = Request { duration: Some(seconds), ..(**job.request.as_ref().unwrap()).clone() };
        world.state.trial(job).map(|trial| trial.start(&request).is_some())
    };
    for (policy, expected) in
        [(QueuePolicy::Easy, [Some(true), Some(false)]), (QueuePolicy::Fcfs, [None, None])]
    {
        let mut world = with(policy);
        world.node("n1", "cpu=4000");
        world.node("n2", "cpu=4000");
        limited(&mut world, "runs", 4000, 100);
        world.at(1);
        for index in 0..2 {
            world.pod_with(&format!("wide-{index}"), "cpu=4000", |pod| {
                in_group("wide", "2")(pod);
                pod.active_deadline = Some(50);
            });
        }
        limited(&mut world, "behind", 4000, 5000);
        let left = world.job("pod.runs").planned_end.unwrap() - world.now;
        assert_eq!([shorter(&world, "pod.behind", left), shorter(&world, "pod.behind", left + 1)], expected);
        // What was said is so: one that asks for that much starts, and one that asks for more does not.
        for (extra, state) in [(1, JobState::Pending), (0, JobState::Running)] {
            let name = format!("so-{extra}");
            world.pod_with(&name, "cpu=4000", |pod| pod.active_deadline = Some(left + extra));
            let so = world.state_of(&format!("pod.{name}"));
            assert_eq!(so, if policy == QueuePolicy::Easy { state } else { JobState::Pending });
        }
    }
}

#[test]
fn who_waits_without_a_reservation_has_an_estimate_behind_those_before_it() {
    let mut world = World::default();
    world.node("n1", "cpu=1000");
    let start = world.now;
    for (name, limit) in [("runs", 10), ("head", 100), ("next", 50), ("last", 50)] {
        world.pod_with(name, "cpu=1000", |pod| pod.active_deadline = Some(limit));
        world.now += 1;
    }
    world.pass(1);
    assert_eq!(world.job("pod.head").reservation.as_ref().map(|planned| planned.start), Some(start + 10));
    for (name, estimate) in [("pod.head", 10), ("pod.next", 110), ("pod.last", 160)] {
        assert_eq!(world.state.estimate(world.job(name)), Some((start + estimate, false)), "{name}");
    }
    assert_eq!(world.state.estimate(world.job("pod.runs")), None);
}

#[test]
fn nothing_is_tried_while_another_engine_leads() {
    let mut world = with(QueuePolicy::Easy);
    world.node("n1", "cpu=4000");
    limited(&mut world, "runs", 4000, 100);
    limited(&mut world, "waits", 4000, 50);
    assert!(world.state.trial(world.job("pod.waits")).is_some());
    world.step(vec![Event::Paused]);
    assert!(world.state.trial(world.job("pod.waits")).is_none());
}
