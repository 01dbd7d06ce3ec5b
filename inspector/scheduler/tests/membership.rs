//! Which job a Pod belongs to when groups, owners and marks change, and what is seen of that.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use fluxion_scheduler::event::Event;
use fluxion_scheduler::model::{ControllerRef, Phase, PodSpec};
use fluxion_scheduler::state::JobState;
use world::{World, in_group};

fn two_nodes() -> World {
    let mut world = World::default();
    world.node("n1", "cpu=4000");
    world.node("n2", "cpu=4000");
    world
}

#[test]
fn a_member_that_moves_to_another_group_leaves_the_others_where_they_are() {
    let mut world = two_nodes();
    for index in 0..2 {
        world.pod_with(&format!("a-{index}"), "cpu=1000", in_group("a", "3"));
    }
    world.change_pod("a-1", in_group("b", "2"));
    assert_eq!(
        (world.line("group.a"), world.line("group.b")),
        ("Gathering 1/3".into(), "Gathering 1/2".into())
    );
    // One that nobody is left of goes, and another may come after it.
    world.change_pod("a-0", in_group("b", "2"));
    assert_eq!((world.names(), world.bound("a")), (vec!["group.b".to_owned()], 2));
    for index in 0..3 {
        world.pod_with(&format!("c-{index}"), "cpu=100", in_group("a", "3"));
    }
    assert_eq!(world.line("group.a"), "Running 3/3");
}

#[test]
fn a_member_whose_job_is_gone_follows_its_pod_group_all_the_same() {
    let mut world = two_nodes();
    let controller = world.job_object("train", 1, 1, false);
    world.pod_with("train-0", "cpu=1000", |pod| {
        (pod.controller, pod.scheduling_group) = (Some(controller), Some("g".into()));
    });
    let uid = world.owners.pop_first().unwrap().0;
    world.step(vec![Event::OwnerGone(uid)]);
    assert_eq!(world.bound("train"), 0);
    world.group("g", Some(1), None);
    assert_eq!(world.bound("train"), 1);
}

#[test]
fn a_pod_of_a_controller_that_nobody_watches_waits_for_no_object() {
    let mut world = two_nodes();
    world.pod_with("thing-0", "cpu=1000", |pod| {
        pod.controller = Some(ControllerRef {
            api_version: "example.com/v1".into(),
            kind: "Thing".into(),
            name: "thing".into(),
            uid: "uid-of-thing".into(),
        });
    });
    assert_eq!(world.line("pod.thing-0"), "Running 1/1");
}

#[test]
fn a_cancelled_job_whose_pod_fails_while_it_is_ended_is_cancelled() {
    let mut world = two_nodes();
    world.pod("p", "cpu=1000");
    world.step(vec![Event::Cancelled { job: "uid-p".into(), by: "alice".into() }]);
    world.end_pod("p", Phase::Failed);
    assert_eq!(world.state_of("pod.p"), JobState::Cancelled);
}

#[test]
fn what_other_schedulers_keep_for_a_nominated_pod_is_not_given_out() {
    let mut world = World::default();
    world.node("n1", "cpu=4000");
    let nominate = |pod: &mut PodSpec| pod.nominated = Some("n1".into());
    world.pod_with("theirs", "cpu=4000", |pod| {
        pod.scheduler_name = "default-scheduler".into();
        nominate(pod);
    });
    // One of ours is placed by nobody else.
    world.pod_with("ours", "cpu=1000", nominate);
    assert_eq!(world.bound("ours"), 0);
    world.delete_pod("theirs");
    assert_eq!(world.bound("ours"), 1);
}

#[test]
fn whatever_there_is_to_see_of_a_job_gives_it_another_revision() {
    let mut world = two_nodes();
    world.pod_with("g-0", "cpu=1000", in_group("g", "2"));
    let id = world.job("group.g").id;
    let mut seen = world.state.revision_of(id);
    let mut changed = |world: &World| {
        let before = std::mem::replace(&mut seen, world.state.revision_of(id));
        seen > before
    };
    world.pod_with("g-1", "cpu=1000", in_group("g", "2"));
    assert!(changed(&world), "it has started");
    world.pod("other", "cpu=100");
    assert!(!changed(&world), "others do not matter");
    world.end_pod("g-0", Phase::Succeeded);
    assert!(changed(&world), "a member has ended");
}
