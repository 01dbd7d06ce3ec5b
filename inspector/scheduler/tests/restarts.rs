//! What an inspector knows after a restart, however the cluster arrives.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::sync::Arc;

use fluxion_scheduler::event::Event;
use fluxion_scheduler::model::{OwnerDetail, Phase, ReservationRecord, SharedStr};
use fluxion_scheduler::queue::{QueueConfig, QueuePolicy};
use fluxion_scheduler::state::{Settings, State};
use world::World;

/// A gang that has ended, one that runs, Pods of a Job that is no gang, and a gang that has ended in part.
fn cluster() -> World {
    let mut world = World::default();
    world.node("n1", "cpu=16000 memory=8192");
    for (name, gang) in [("done", true), ("runs", true), ("plain", false), ("mixed", true)] {
        let controller = world.job_object(name, 3, 3, gang);
        for index in 0..3 {
            let pod = format!("{name}-{index}");
            world.pod_with(&pod, "cpu=1000", |pod| pod.controller = Some(controller.clone()));
        }
    }
    for pod in ["done-0", "done-1", "done-2", "mixed-1", "plain-2"] {
        world.end_pod(pod, Phase::Succeeded);
    }
    world.change_owner("done", |owner| {
        if let OwnerDetail::Job { succeeded, complete, .. } = &mut owner.detail {
            (*succeeded, *complete) = (3, true);
        }
    });
    world
}

fn lines(world: &World) -> Vec<String> {
    let mut names = world.names();
    names.sort();
    names.iter().map(|name| format!("{name} {}", world.line(name))).collect()
}

/// Everything there is, one object a step, in an order that `turn` makes another one.
fn restart_in_pieces(world: &mut World, turn: usize, last: Event) {
    let mut events: Vec<Event> = world.pods.values().map(|pod| Event::Pod(Box::new(pod.clone()))).collect();
    events.extend(world.nodes.values().map(|node| Event::Node(Box::new(node.clone()))));
    events.extend(world.owners.values().map(|owner| Event::Owner(Box::new(owner.clone()))));
    let first = turn % events.len();
    events.rotate_left(first);
    world.state = State::new(world.state.settings().clone());
    for event in events {
        world.state.step(world.now, vec![event]);
    }
    world.step(vec![last]);
}

#[test]
fn a_restart_finds_whole_gangs_in_whatever_pieces_the_cluster_arrives() {
    let mut world = cluster();
    world.restart();
    let whole = lines(&world);
    assert_eq!(
        whole,
        [
            "job.done Completed 3/3",
            "job.mixed Running 2/3",
            "job.runs Running 3/3",
            "pod.plain-0 Running 1/1",
            "pod.plain-1 Running 1/1",
            "pod.plain-2 Completed 1/1",
        ]
    );
    for turn in 0..17 {
        restart_in_pieces(&mut world, turn, Event::Synced);
        assert_eq!(lines(&world), whole, "turn {turn}");
        // Another one leads: the same is known.
        restart_in_pieces(&mut world, turn, Event::Paused);
        assert_eq!(lines(&world), whole, "turn {turn}");
    }
}

/// Reservations of the past, of something else, on nodes that are gone or taken: the store may say anything.
#[test]
fn a_stored_reservation_that_can_not_be_kept_is_planned_again() {
    let queue = QueueConfig { policy: QueuePolicy::Conservative, ..QueueConfig::default() };
    let mut world = World::new(Settings { queues: vec![queue], ..Settings::default() });
    world.node("n1", "cpu=4000");
    world.node("n2", "cpu=1000");
    world.pod_with("runs", "cpu=4000", |pod| pod.active_deadline = Some(100));
    world.at(1);
    world.pod_with("waits", "cpu=4000", |pod| pod.active_deadline = Some(50));
    let planned = world.job("pod.waits").reservation.clone().unwrap();
    let stored = world.pods["uid-waits"].reserved.clone().unwrap();
    let now = world.now;
    let slots = |slots: &[(u32, &str, u32)]| -> Vec<(u32, SharedStr, u32)> {
        slots.iter().map(|&(shape, node, count)| (shape, node.into(), count)).collect()
    };
    let starts = [i64::MIN, 0, now, now + 10, i64::MAX - 1, i64::MAX];
    let starts = starts.map(|start| ReservationRecord { start, ..(*stored).clone() });
    let places: [&[(u32, &str, u32)]; 8] = [
        &[],
        &[(0, "gone", 1)],
        &[(0, "n2", 1)],
        &[(0, "n1", 0)],
        &[(0, "n1", 2)],
        &[(7, "n1", 1)],
        &[(u32::MAX, "n1", u32::MAX)],
        &[(0, "n1", 1), (0, "n1", 1)],
    ];
    let places = places.map(|places| ReservationRecord { slots: slots(places), ..(*stored).clone() });
    let domain = ReservationRecord { domain: Some("n1".into()), ..(*stored).clone() };
    for wrong in starts.into_iter().chain(places).chain([domain]) {
        let pod = world.pods.get_mut("uid-waits").unwrap();
        pod.reserved = Some(Arc::new(wrong.clone()));
        world.restart();
        assert_eq!(world.job("pod.waits").reservation.as_ref(), Some(&planned), "{wrong:?}");
        let again = world.pods["uid-waits"].reserved.as_ref().unwrap();
        assert_eq!(
            (again.start, &again.slots),
            (stored.start, &stored.slots),
            "it is stored instead: {wrong:?}"
        );
    }
    // One that is kept is moved to an earlier start where that is possible.
    let later = ReservationRecord { start: planned.start + 1_000, ..(*stored).clone() };
    world.pods.get_mut("uid-waits").unwrap().reserved = Some(Arc::new(later.clone()));
    world.restart();
    assert_eq!(world.job("pod.waits").reservation.as_ref().unwrap().start, later.start);
    world.pass(5);
    assert_eq!(world.job("pod.waits").reservation.as_ref(), Some(&planned));
    // What was freed in the meantime is given to nobody else before.
    world.pods.get_mut("uid-runs").unwrap().phase = Phase::Succeeded;
    world.make_pod("new", "cpu=4000", |pod| pod.active_deadline = Some(10));
    world.restart();
    assert_eq!((world.node_of("waits"), world.node_of("new")), (Some("n1"), None));
    assert!(world.pods["uid-new"].reserved.is_some());
}
