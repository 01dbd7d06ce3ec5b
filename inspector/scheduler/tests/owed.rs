//! What a started gang is owed: places for lost members, and nothing more.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use fluxion_scheduler::event::{Effect, Event};
use fluxion_scheduler::model::{ControllerRef, OwnerDetail, Phase, PodSpec};
use fluxion_scheduler::state::{JobState, Settings};
use world::{World, in_group};

/// Nodes n1 to nN of one CPU each.
fn cluster(nodes: u32) -> World {
    let mut world = World::default();
    for index in 1..=nodes {
        world.node(&format!("n{index}"), "cpu=1000");
    }
    world
}

fn of(controller: &ControllerRef) -> impl FnOnce(&mut PodSpec) {
    let controller = controller.clone();
    move |pod| pod.controller = Some(controller)
}

fn in_pod_group(pod: &mut PodSpec) {
    pod.scheduling_group = Some("train".into());
}

fn succeeded(world: &mut World, name: &str, count: i64) {
    world.change_owner(name, |owner| {
        let OwnerDetail::Job { succeeded, .. } = &mut owner.detail else { panic!("a Job") };
        *succeeded = count;
    });
}

/// A native gang of two on two nodes, and two Pods that wait for a node.
fn full() -> World {
    let mut world = cluster(2);
    world.group("train", Some(2), None);
    for name in ["t-0", "t-1"] {
        world.pod_with(name, "cpu=1000", in_pod_group);
    }
    for name in ["filler-0", "filler-1"] {
        world.pod(name, "cpu=1000");
    }
    assert_eq!((world.bound("t-"), world.bound("filler")), (2, 0));
    world
}

#[test]
fn the_place_of_a_lost_member_is_kept_for_its_replacement() {
    let mut world = full();
    let was = world.node_of("t-1").unwrap().to_owned();
    world.delete_pod("t-1");
    for restarted in [false, true] {
        if restarted {
            world.restart();
        }
        world.pass(30);
        assert_eq!(world.bound("filler"), 0, "restarted: {restarted}");
        assert!(world.job("podgroup.train").degraded);
        assert_eq!(world.line("podgroup.train"), "Running 1/2");
        let told = world.told("podgroup.train");
        assert!(
            told.contains(&format!(
                "1 of 2 members is missing: resources for the replacement are reserved on {was}"
            )),
            "{told}"
        );
        let node = world.state.inventory().node(&was).unwrap();
        assert_eq!((node.kept.get("cpu"), node.allocated.get("cpu"), node.free.get("cpu")), (1000, 0, 0));
    }
    world.pod_with("t-1b", "cpu=1000", in_pod_group);
    assert_eq!(
        (world.line("podgroup.train"), world.node_of("t-1b")),
        ("Running 2/2".to_owned(), Some(&*was))
    );
    assert!(!world.job("podgroup.train").degraded);
}

#[test]
fn a_replacement_that_asks_for_less_or_elsewhere_uses_the_place_all_the_same() {
    let mut world = full();
    world.delete_pod("t-1");
    world.pod_with("t-1b", "cpu=500", in_pod_group);
    assert_eq!(world.line("podgroup.train"), "Running 2/2", "{}", world.told("podgroup.train"));
    assert!(!world.job("podgroup.train").degraded);
}

#[test]
fn each_lost_member_has_a_place_and_all_must_be_there_before_any_joins() {
    let mut world = cluster(3);
    world.group("train", Some(3), None);
    for name in ["t-0", "t-1", "t-2"] {
        world.pod_with(name, "cpu=1000", in_pod_group);
    }
    world.pod("filler", "cpu=1000");
    world.delete_pod("t-1");
    world.delete_pod("t-2");
    world.pod_with("t-1b", "cpu=1000", in_pod_group);
    assert_eq!((world.line("podgroup.train"), world.bound("filler")), ("Running 1/3".to_owned(), 0));
    world.pod_with("t-2b", "cpu=1000", in_pod_group);
    assert_eq!((world.line("podgroup.train"), world.bound("filler")), ("Running 3/3".to_owned(), 0));
}

#[test]
fn a_drained_node_gives_the_place_to_the_first_node_that_fits_before_any_waiting_job() {
    let mut world = full();
    let drained = world.node_of("t-1").unwrap().to_owned();
    world.node_with(&drained, "cpu=1000", |node| node.unschedulable = true);
    world.change_pod("t-1", |pod| {
        pod.deleting = true;
        pod.disruption = Some("EvictionByEvictionAPI".into());
    });
    let told = world.told("podgroup.train");
    assert!(told.contains("no node has room for a replacement yet"), "{told}");
    world.node("n3", "cpu=1000");
    assert_eq!(world.bound("filler"), 0, "{:?}", world.told("podgroup.train"));
    assert!(world.told("podgroup.train").contains("reserved on n3"), "{}", world.told("podgroup.train"));
    world.delete_pod("t-1");
    assert_eq!(world.job("podgroup.train").lost.len(), 1, "one place for one missing member");
    world.node_with(&drained, "cpu=1000", |_| ());
    assert_eq!(world.bound("filler"), 1, "the drained node is back, and nobody's");
    world.pod_with("t-1b", "cpu=1000", in_pod_group);
    assert_eq!(world.node_of("t-1b"), Some("n3"));
}

#[test]
fn a_kept_place_moves_when_its_node_takes_no_work_any_more() {
    let mut world = full();
    let was = world.node_of("t-1").unwrap().to_owned();
    world.delete_pod("t-1");
    world.node_with(&was, "cpu=1000", |node| node.ready = false);
    world.node("n3", "cpu=1000");
    assert!(world.told("podgroup.train").contains("reserved on n3"), "{}", world.told("podgroup.train"));
    assert_eq!(world.bound("filler"), 0);
}

#[test]
fn a_terminating_member_holds_its_own_place_and_nothing_beside_it() {
    let mut world = cluster(3);
    world.group("train", Some(2), None);
    for name in ["t-0", "t-1"] {
        world.pod_with(name, "cpu=1000", in_pod_group);
    }
    let end = world.now + 30;
    world.change_pod("t-1", |pod| (pod.deleting, pod.deletes_at) = (true, Some(end)));
    world.pod("filler", "cpu=1000");
    assert_eq!(world.bound("filler"), 1, "the third node is free for all");
    world.pod("late", "cpu=1000");
    world.pod_with("t-1b", "cpu=1000", in_pod_group);
    assert_eq!(world.bound("t-1b"), 0, "held until it is gone");
    world.delete_pod("t-1");
    assert_eq!((world.bound("t-1b"), world.bound("late")), (1, 0));
}

#[test]
fn what_terminates_is_planned_to_be_free_at_the_end_of_its_grace_period() {
    let mut world = cluster(1);
    world.pod("old", "cpu=1000");
    world.pod("next", "cpu=1000");
    let end = world.now + 30;
    world.change_pod("old", |pod| (pod.deleting, pod.deletes_at) = (true, Some(end)));
    let next = world.job("pod.next");
    assert_eq!((next.state, next.reservation.as_ref().map(|r| r.start)), (JobState::Reserved, Some(end)));
    world.pass(60);
    assert_eq!(world.bound("next"), 0, "held until it is gone, however long that takes");
    world.delete_pod("old");
    assert_eq!(world.bound("next"), 1);
}

#[test]
fn an_indexed_job_keeps_its_places_between_completions() {
    let mut world = cluster(2);
    let controller = world.job_object("steps", 2, 6, true);
    for index in 0..2 {
        world.pod_with(&format!("steps-{index}"), "cpu=1000", of(&controller));
    }
    world.pod("thief", "cpu=1000");
    for done in 1..=4 {
        world.end_pod(&format!("steps-{}", done - 1), Phase::Succeeded);
        succeeded(&mut world, "steps", done);
        assert_eq!(world.bound("thief"), 0, "{done} done: {}", world.told("job.steps"));
        world.pod_with(&format!("steps-{}", done + 1), "cpu=1000", of(&controller));
        assert_eq!(world.line("job.steps"), "Running 2/2", "{done} done");
    }
    // Five done, one runs: what is left is one member.
    world.end_pod("steps-4", Phase::Succeeded);
    succeeded(&mut world, "steps", 5);
    assert_eq!((world.bound("thief"), world.job("job.steps").degraded), (1, false));
}

#[test]
fn a_failed_index_gets_its_place_back_and_a_completed_one_gives_it_up() {
    let mut world = World::default();
    world.node("n1", "cpu=3000");
    let controller = world.job_object("steps", 3, 3, true);
    for index in 0..3 {
        world.pod_with(&format!("steps-{index}"), "cpu=1000", of(&controller));
    }
    world.pod("filler-0", "cpu=1000");
    world.pod("filler-1", "cpu=1000");
    // Both are heard of before the Job's own count follows.
    world.end_pod("steps-0", Phase::Succeeded);
    world.end_pod("steps-1", Phase::Failed);
    assert_eq!(world.bound("filler"), 0);
    succeeded(&mut world, "steps", 1);
    assert_eq!(world.bound("filler"), 1, "exactly the share of the index that is done");
    world.restart();
    world.pod_with("steps-1b", "cpu=1000", of(&controller));
    assert_eq!((world.bound("steps-1b"), world.bound("filler")), (1, 1), "{}", world.told("job.steps"));
    assert_eq!(world.state_of("job.steps"), JobState::Running);
}

#[test]
fn indexes_that_failed_for_good_are_not_waited_for() {
    let mut world = cluster(3);
    let controller = world.job_object("steps", 3, 3, true);
    for index in 0..3 {
        world.pod_with(&format!("steps-{index}"), "cpu=1000", of(&controller));
    }
    world.end_pod("steps-0", Phase::Failed);
    world.end_pod("steps-1", Phase::Failed);
    world.change_owner("steps", |owner| {
        let OwnerDetail::Job { failed_indexes, .. } = &mut owner.detail else { panic!("a Job") };
        *failed_indexes = 1;
    });
    world.pod_with("steps-1b", "cpu=1000", of(&controller));
    assert_eq!(world.bound("steps-1b"), 1, "{}", world.told("job.steps"));
    assert!(!world.job("job.steps").degraded);
    assert_eq!(world.job("job.steps").lost.len(), 0);
}

#[test]
fn a_place_nobody_comes_for_is_given_up_with_an_event_and_a_finding() {
    let mut world = full();
    world.delete_pod("t-1");
    world.pass(599);
    assert_eq!(world.bound("filler"), 0);
    world.pass(2);
    assert_eq!(world.bound("filler"), 1);
    let told = |effect: &&Effect| matches!(effect, Effect::Note { reason: "LostMemberGivenUp", .. });
    assert_eq!(world.effects.iter().filter(told).count(), 1);
    assert!(
        world.state.audit().iter().any(|finding| finding.class == "LostMember"),
        "{:?}",
        world.state.audit()
    );
    // A replacement that comes after all is a member like before.
    world.delete_pod("filler-0");
    world.delete_pod("filler-1");
    world.pod_with("t-1b", "cpu=1000", in_pod_group);
    assert_eq!(world.line("podgroup.train"), "Running 2/2");
    assert!(!world.state.audit().iter().any(|finding| finding.class == "LostMember"));
}

#[test]
fn nothing_is_kept_where_nobody_makes_a_replacement_or_it_is_switched_off() {
    let mut world = cluster(2);
    for index in 0..2 {
        world.pod_with(&format!("m-{index}"), "cpu=1000", in_group("m", "2"));
    }
    world.pod("filler", "cpu=1000");
    world.delete_pod("m-1");
    assert_eq!(world.bound("filler"), 1);
    let told = world.told("group.m");
    assert!(
        world.job("group.m").degraded && told.contains("Pods without a controller are not recreated"),
        "{told}"
    );

    let mut world = World::new(Settings { lost_member_deadline: 0, ..Settings::default() });
    world.node("n1", "cpu=1000");
    world.node("n2", "cpu=1000");
    world.group("train", Some(2), None);
    for name in ["t-0", "t-1"] {
        world.pod_with(name, "cpu=1000", in_pod_group);
    }
    world.pod("filler", "cpu=1000");
    world.delete_pod("t-1");
    assert_eq!(world.bound("filler"), 1);
}

#[test]
fn surplus_over_the_minimum_keeps_nothing() {
    let mut world = cluster(3);
    world.group("train", Some(2), None);
    for name in ["t-0", "t-1", "t-2"] {
        world.pod_with(name, "cpu=1000", in_pod_group);
    }
    assert_eq!(world.bound("t-"), 3);
    world.pod("filler", "cpu=1000");
    world.delete_pod("t-2");
    assert_eq!((world.bound("filler"), world.job("podgroup.train").degraded), (1, false));
}

#[test]
fn what_goes_keeps_nothing() {
    // The PodGroup is being deleted.
    let mut world = full();
    let mut group = world.groups["pg-train"].clone();
    group.deleting = true;
    world.step(vec![Event::Group(Box::new(group))]);
    world.delete_pod("t-1");
    assert_eq!(world.bound("filler"), 1, "{}", world.told("podgroup.train"));
    // The Job is suspended, is being deleted, or is gone.
    for how in 0..3 {
        let mut world = cluster(2);
        let controller = world.job_object("run", 2, 2, true);
        for index in 0..2 {
            world.pod_with(&format!("run-{index}"), "cpu=1000", of(&controller));
        }
        world.pod("filler", "cpu=1000");
        match how {
            0 => world.change_owner("run", |owner| owner.deleting = true),
            1 => world.change_owner("run", |owner| {
                let OwnerDetail::Job { suspended, .. } = &mut owner.detail else { panic!("a Job") };
                *suspended = true;
            }),
            _ => {
                world.owners.clear();
                world.step(vec![Event::OwnerGone("job-run".into())]);
            }
        }
        world.delete_pod("run-1");
        assert_eq!(world.bound("filler"), 1, "{how}: {}", world.told("job.run"));
    }
}

#[test]
fn a_gang_that_lost_everybody_keeps_nothing_and_starts_whole_or_not_at_all() {
    let mut world = full();
    world.delete_pod("filler-1");
    world.change_pod("t-0", |pod| pod.deleting = true);
    world.change_pod("t-1", |pod| pod.deleting = true);
    assert_eq!(world.state_of("podgroup.train"), JobState::Releasing);
    world.pod_with("t-0b", "cpu=1000", in_pod_group);
    assert_eq!(world.line("podgroup.train"), "Gathering 1/2");
    world.delete_pod("t-0");
    world.delete_pod("t-1");
    assert_eq!(world.bound("filler"), 1);
    world.pod_with("t-1b", "cpu=1000", in_pod_group);
    assert_eq!(world.bound("t-"), 0, "one node is not enough for two");
    world.delete_pod("filler-0");
    assert_eq!(world.line("podgroup.train"), "Running 2/2");
}

#[test]
fn a_gang_that_lost_all_its_nodes_starts_whole_or_not_at_all() {
    let mut world = cluster(2);
    world.group("train", Some(2), None);
    for name in ["t-0", "t-1"] {
        world.pod_with(name, "cpu=1000", in_pod_group);
    }
    world.node("n3", "cpu=1000");
    for node in ["n1", "n2"] {
        world.nodes.remove(node);
        world.step(vec![Event::NodeGone(node.into())]);
    }
    for name in ["t-0b", "t-1b"] {
        world.pod_with(name, "cpu=1000", in_pod_group);
    }
    assert_eq!((world.node_of("t-0b"), world.node_of("t-1b")), (None, None));
    assert!(
        world.told("podgroup.train").contains("its nodes were deleted"),
        "{}",
        world.told("podgroup.train")
    );
    for name in ["t-0", "t-1"] {
        world.delete_pod(name);
    }
    assert_eq!(
        (world.node_of("t-0b"), world.node_of("t-1b")),
        (None, None),
        "one node is not enough for two"
    );
    world.node("n4", "cpu=1000");
    assert_eq!(world.line("podgroup.train"), "Running 2/2");
}

#[test]
fn a_suspended_job_holds_nothing_and_starts_anew() {
    let mut world = cluster(2);
    let controller = world.job_object("run", 2, 2, true);
    for index in 0..2 {
        world.pod_with(&format!("run-{index}"), "cpu=1000", of(&controller));
    }
    let set = |world: &mut World, on| {
        world.change_owner("run", |owner| {
            let OwnerDetail::Job { suspended, .. } = &mut owner.detail else { panic!("a Job") };
            *suspended = on;
        });
    };
    set(&mut world, true);
    for index in 0..2 {
        world.change_pod(&format!("run-{index}"), |pod| pod.deleting = true);
    }
    assert_eq!(world.state_of("job.run"), JobState::Releasing);
    world.delete_pod("run-0");
    world.delete_pod("run-1");
    assert_eq!(world.line("job.run"), "Suspended 0/2");
    assert_eq!(world.job("job.run").started_at, None);
    set(&mut world, false);
    for index in 2..4 {
        world.pod_with(&format!("run-{index}"), "cpu=1000", of(&controller));
    }
    assert_eq!(world.line("job.run"), "Running 2/2");
}

#[test]
fn a_job_in_backoff_gathers() {
    let mut world = cluster(2);
    let controller = world.job_object("run", 2, 2, true);
    for index in 0..2 {
        world.pod_with(&format!("run-{index}"), "cpu=1000", of(&controller));
    }
    world.end_pod("run-0", Phase::Failed);
    world.end_pod("run-1", Phase::Failed);
    assert_eq!(world.line("job.run"), "Gathering 0/2");
    assert!(world.told("job.run").contains("waiting for the controller to finish the job or recreate them"));
}

#[test]
fn what_ended_a_job_decides_its_state() {
    let evict = |world: &mut World, name: &str| {
        world.change_pod(name, |pod| {
            pod.deleting = true;
            pod.disruption = Some("EvictionByEvictionAPI".into());
        });
        world.delete_pod(name);
    };
    // Deleted by its user, running or not, whatever its processes say to that.
    let mut world = full();
    world.change_pod("t-0", |pod| (pod.deleting, pod.phase) = (true, Phase::Failed));
    world.change_pod("t-1", |pod| (pod.deleting, pod.phase) = (true, Phase::Succeeded));
    assert_eq!(world.state_of("podgroup.train"), JobState::Cancelled);
    // Evicted.
    let mut world = full();
    evict(&mut world, "t-0");
    evict(&mut world, "t-1");
    assert_eq!(world.state_of("podgroup.train"), JobState::Failed);
    assert!(
        world.told("podgroup.train").contains("Disrupted: evicted through the Eviction API"),
        "{}",
        world.told("podgroup.train")
    );
    // Evicted in part, replaced, and deleted later.
    let mut world = full();
    evict(&mut world, "t-1");
    world.pod_with("t-1b", "cpu=1000", in_pod_group);
    world.pass(10);
    world.delete_pod("t-0");
    world.delete_pod("t-1b");
    assert_eq!(world.state_of("podgroup.train"), JobState::Cancelled);
    // Evicted in part, and the rest deleted later.
    let mut world = full();
    evict(&mut world, "t-1");
    world.pass(10);
    world.delete_pod("t-0");
    assert_eq!(world.state_of("podgroup.train"), JobState::Cancelled);
    // Failed, and replaced by nobody.
    let mut world = full();
    world.end_pod("t-0", Phase::Failed);
    world.end_pod("t-1", Phase::Succeeded);
    assert_eq!(world.state_of("podgroup.train"), JobState::Failed);
    world.restart();
    assert_eq!(world.state_of("podgroup.train"), JobState::Failed);
}

#[test]
fn retries_of_failed_members_wait_for_nobody_who_can_not_come() {
    // Bound by labels, with a Job for a controller: nothing of it is lost between two of its attempts.
    let mut world = cluster(2);
    let controller = world.job_object("mpi", 2, 2, false);
    let member = |pod: &mut PodSpec| {
        in_group("mpi", "2")(pod);
        pod.controller = Some(controller.clone());
    };
    world.pod_with("mpi-0", "cpu=1000", member);
    world.pod_with("mpi-1", "cpu=1000", member);
    world.end_pod("mpi-0", Phase::Succeeded);
    succeeded(&mut world, "mpi", 1);
    world.end_pod("mpi-1", Phase::Failed);
    assert_eq!(world.state_of("group.mpi"), JobState::Gathering, "{}", world.told("group.mpi"));
    world.pod_with("mpi-1b", "cpu=1000", member);
    assert_eq!(world.bound("mpi-1b"), 1, "{}", world.told("group.mpi"));
    assert_eq!(world.names(), ["group.mpi"]);
}
