//! Jobs without a time limit: what is planned behind them rests on an assumption, and says so.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::collections::BTreeMap;

use fluxion_scheduler::event::Event;
use fluxion_scheduler::inventory::Release;
use fluxion_scheduler::model::Phase;
use fluxion_scheduler::queue::QueueConfig;
use fluxion_scheduler::state::{JobState, ReasonClass, Settings};
use proptest::prelude::*;
use world::{World, in_group};

const HOUR: i64 = 3_600;

fn without_assumption() -> World {
    let queue = QueueConfig { assumed_duration: None, ..QueueConfig::default() };
    World::new(Settings { queues: vec![queue], ..Settings::default() })
}

fn gang(world: &mut World, name: &str, size: u32, cpu: u32) {
    world.at(1);
    for index in 0..size {
        world.pod_with(&format!("{name}-{index}"), &format!("cpu={cpu}"), in_group(name, &size.to_string()));
    }
}

/// Three full nodes, and a gang that wants all of them.
fn three_full(mut world: World, apart: i64) -> World {
    for node in ["n1", "n2", "n3"] {
        world.node(node, "cpu=4000");
        world.pod(&format!("on-{node}"), "cpu=4000");
        world.at(apart);
    }
    gang(&mut world, "wide", 3, 4000);
    world
}

#[test]
fn the_first_in_line_is_planned_behind_jobs_without_a_limit() {
    let mut world = three_full(World::default(), 60);
    let last = world.job("pod.on-n3").started_at.unwrap();
    let wide = world.job("group.wide");
    assert_eq!(wide.state, JobState::Reserved);
    let reservation = wide.reservation.clone().unwrap();
    assert_eq!((reservation.start, reservation.start_assumed), (last + HOUR, true));
    assert_eq!((reservation.end, reservation.end_assumed), (Some(last + 2 * HOUR), true));
    let told = world.told("group.wide");
    assert!(
        told.contains("the planned start is assumed: pod/on-n1, pod/on-n2, pod/on-n3 have no time limit"),
        "{told}"
    );
    assert!(!told.contains("no start time estimate"), "{told}");
    assert_eq!(
        world.state.release_of(world.job("pod.on-n1")),
        Some(Release { at: last - 120 + HOUR, assumed: true })
    );
    assert_eq!(world.job("pod.on-n1").planned_end, None, "nothing is planned that nobody said");

    // Two end; nobody without a limit gets their nodes, somebody with one may.
    world.end_pod("on-n1", Phase::Succeeded);
    world.end_pod("on-n2", Phase::Succeeded);
    world.at(1);
    world.pod("late", "cpu=4000");
    assert_eq!(world.state_of("pod.late"), JobState::Pending);
    assert_eq!(world.job("pod.late").reason.as_ref().unwrap().class, ReasonClass::QueueOrder);
    world.pod_with("short", "cpu=4000", |pod| pod.active_deadline = Some(600));
    assert_eq!(world.state_of("pod.short"), JobState::Running);
    world.end_pod("short", Phase::Succeeded);
    world.end_pod("on-n3", Phase::Succeeded);
    assert_eq!(world.state_of("group.wide"), JobState::Running);
}

#[test]
fn one_that_outlives_it_is_assumed_to_run_as_long_again() {
    let mut world = three_full(World::default(), 0);
    let last = world.job("pod.on-n3").started_at.unwrap();
    let start = |world: &World| world.job("group.wide").reservation.as_ref().unwrap().start;
    for (until, expected) in [(HOUR - 1, HOUR), (HOUR, 2 * HOUR), (2 * HOUR, 4 * HOUR), (7 * HOUR, 8 * HOUR)]
    {
        world.pass(last + until - world.now);
        assert_eq!(start(&world), last + expected, "after {until} s");
        assert_eq!(world.bound("on-"), 3, "nothing is freed");
        assert_eq!(world.bound("wide"), 0);
    }
    // A new engine assumes the same.
    let before: Vec<_> = world
        .state
        .inventory()
        .holdings()
        .map(|(name, node, hold)| (name.clone(), node.clone(), hold.until))
        .collect();
    world.restart();
    let after: Vec<_> = world
        .state
        .inventory()
        .holdings()
        .map(|(name, node, hold)| (name.clone(), node.clone(), hold.until))
        .collect();
    assert_eq!(before, after);
    assert_eq!(start(&world), last + 8 * HOUR);
}

#[test]
fn without_an_assumption_there_is_no_estimate() {
    let mut world = three_full(without_assumption(), 0);
    assert_eq!(world.state_of("group.wide"), JobState::Pending);
    let told = world.told("group.wide");
    assert_eq!(told.matches("no start time estimate").count(), 1, "{told}");
    assert!(told.contains("no time limit") && told.contains("pod/on-n1"), "{told}");
    world.end_pod("on-n1", Phase::Succeeded);
    world.pod("late", "cpu=4000");
    assert_eq!(world.state_of("pod.late"), JobState::Running, "nothing is promised to anybody");
}

#[test]
fn pods_of_others_count_the_same_and_those_that_stay_do_not() {
    let mut world = World::default();
    world.node("n1", "cpu=4000");
    let bound = world.now - 100;
    world.pod_with("theirs", "cpu=3000", |pod| {
        pod.scheduler_name = "default-scheduler".into();
        pod.node = Some("n1".into());
        pod.phase = Phase::Running;
        pod.scheduled_at = Some(bound);
    });
    world.pod_with("agent", "cpu=500", |pod| {
        pod.scheduler_name = "default-scheduler".into();
        pod.node = Some("n1".into());
        pod.phase = Phase::Running;
        pod.annotations.insert("kubernetes.io/config.mirror".into(), "x".into());
    });
    world.pod("mine", "cpu=3500");
    let reservation = world.job("pod.mine").reservation.clone().unwrap();
    assert_eq!((reservation.start, reservation.start_assumed), (bound + HOUR, true));
    let told = world.told("pod.mine");
    assert!(told.contains("the planned start is assumed: running Pods have no time limit"), "{told}");
    world.pod("more", "cpu=4000");
    assert_eq!(world.state_of("pod.more"), JobState::Unsatisfiable, "the agent never leaves");
}

#[test]
fn only_what_rests_on_it_is_marked() {
    let mut world = World::default();
    world.node("n1", "cpu=8000");
    world.pod_with("limited", "cpu=6000", |pod| pod.active_deadline = Some(2 * HOUR));
    world.pod("endless", "cpu=1000");
    // Free when the limited one ends, whatever becomes of the other.
    world.pod_with("waits", "cpu=7000", |pod| pod.active_deadline = Some(60));
    let reservation = world.job("pod.waits").reservation.clone().unwrap();
    assert_eq!((reservation.start_assumed, reservation.end_assumed), (false, false));
    assert!(!world.told("pod.waits").contains("assumed"), "{}", world.told("pod.waits"));
    world.delete_pod("waits");
    world.pod_with("whole", "cpu=8000", |pod| pod.active_deadline = Some(60));
    let reservation = world.job("pod.whole").reservation.clone().unwrap();
    assert_eq!((reservation.start_assumed, reservation.end_assumed), (true, true));
    let told = world.told("pod.whole");
    assert!(told.contains("the planned start is assumed: pod/endless has no time limit"), "{told}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Single Pods without an end to their stream take what they can get; a gang that came before them waits no longer
    /// than for the jobs that ran when it came.
    #[test]
    fn a_stream_of_single_pods_never_starves_a_gang(
        runs in prop::collection::vec((0..9_000_i64, 0..3_000_i64), 4..14),
        stream in prop::collection::vec((1..60_i64, 1..9_000_i64), 60..140),
        part in 1..100_usize,
    ) {
        let mut world = World::default();
        let mut ends: BTreeMap<String, i64> = BTreeMap::new();
        for (at, (age, left)) in runs.iter().enumerate() {
            world.node(&format!("n{at}"), "cpu=4000");
            // Full nodes that are as old as one likes.
            let start = world.now - age;
            world.pod_with(&format!("first-{at}"), "cpu=4000", |pod| {
                pod.created = start;
                pod.node = Some(format!("n{at}").into());
                pod.scheduled_at = Some(start);
                pod.phase = Phase::Running;
            });
            ends.insert(format!("first-{at}"), world.now + left + 1);
        }
        let size = u32::try_from(runs.len() * part / 100 + 1).unwrap();
        gang(&mut world, "wide", size, 4000);
        let bound = ends.values().max().copied().unwrap();
        let mut coming = world.now;
        for (number, (pause, run)) in stream.into_iter().cycle().take(2_000).enumerate() {
            coming += pause;
            while let Some((name, end)) =
                ends.iter().min_by_key(|(name, end)| (**end, (*name).clone())).map(|(name, end)| (name.clone(), *end))
                && end <= coming.min(bound)
            {
                world.pass(end - world.now);
                ends.remove(&name);
                world.end_pod(&name, Phase::Succeeded);
                let running: Vec<String> = world.pods.values()
                    .filter(|pod| pod.name.starts_with('s') && pod.node.is_some() && !pod.phase.ended())
                    .map(|pod| pod.name.to_string()).collect();
                for name in running {
                    ends.entry(name).or_insert(world.now + run);
                }
            }
            if coming >= bound || world.state_of("group.wide") == JobState::Running {
                break;
            }
            world.pass(coming - world.now);
            world.pod(&format!("s{number}"), "cpu=4000");
            if world.node_of(&format!("s{number}")).is_some() {
                ends.insert(format!("s{number}"), world.now + run);
            }
        }
        world.step(vec![Event::Tick]);
        prop_assert_eq!(world.state_of("group.wide"), JobState::Running);
        prop_assert!(world.job("group.wide").started_at.unwrap() <= bound);
    }
}
