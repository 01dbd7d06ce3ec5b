//! What an inspector knows after a restart, however the cluster arrives.

mod world;

use fluxion_scheduler::event::Event;
use fluxion_scheduler::model::{OwnerDetail, Phase};
use fluxion_scheduler::state::State;
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
