//! Owners whose Pods can't come to be are jobs too: suspended ones, and those whose Pods the API server rejects.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use fluxion_scheduler::event::Event;
use fluxion_scheduler::model::{ControllerRef, OwnerDetail};
use world::World;

const QUOTA: &str = "forbidden: exceeded quota: small";

fn owner(world: &mut World, name: &str, count: i64, gang: bool) -> ControllerRef {
    let controller = world.job_object(name, count, count, gang);
    world.change_owner(name, |owner| owner.scheduler = Some("fluxion".into()));
    controller
}

fn fails(world: &mut World, controller: &ControllerRef, at: i64) {
    fails_in(world, "default", controller, at);
}

fn fails_in(world: &mut World, namespace: &str, controller: &ControllerRef, at: i64) {
    let owner = controller.uid.clone();
    let event = Event::CreationFailed { namespace: namespace.into(), owner, why: QUOTA.into(), at };
    world.step(vec![event]);
}

fn suspend(world: &mut World, name: &str, on: bool) {
    world.change_owner(name, |owner| {
        let OwnerDetail::Job { suspended, .. } = &mut owner.detail else { panic!("a Job") };
        *suspended = on;
    });
}

fn member(world: &mut World, name: &str, controller: &ControllerRef) {
    world.pod_with(name, "cpu=100", |pod| pod.controller = Some(controller.clone()));
}

fn there(world: &World, name: &str) -> bool {
    world.state.job_named("default", name).is_some()
}

#[test]
fn a_gang_whose_pods_are_rejected_is_seen_with_the_cause_until_they_come() {
    let mut world = World::of_two(60);
    let controller = owner(&mut world, "j", 3, true);
    assert!(!there(&world, "job.j"));
    let now = world.state.now();
    fails(&mut world, &controller, now);
    assert_eq!(world.line("job.j"), "Gathering 0/3");
    assert!(world.told("job.j").contains(QUOTA), "{}", world.told("job.j"));
    member(&mut world, "j-0", &controller);
    member(&mut world, "j-1", &controller);
    assert_eq!(world.line("job.j"), "Gathering 2/3");
    assert!(world.told("job.j").contains("2 of 3") && world.told("job.j").contains(QUOTA));
    world.restart();
    assert_eq!(world.line("job.j"), "Gathering 2/3");
    fails(&mut world, &controller, now);
    assert!(world.told("job.j").contains(QUOTA));
    member(&mut world, "j-2", &controller);
    assert_eq!(world.line("job.j"), "Running 3/3");
    assert!(!world.told("job.j").contains(QUOTA), "{}", world.told("job.j"));
}

#[test]
fn an_event_in_another_namespace_says_nothing_about_an_owner() {
    let mut world = World::of_two(60);
    let controller = owner(&mut world, "j", 3, true);
    let now = world.state.now();
    fails_in(&mut world, "elsewhere", &controller, now);
    assert!(!there(&world, "job.j"));
    member(&mut world, "j-0", &controller);
    assert!(!world.told("job.j").contains(QUOTA), "{}", world.told("job.j"));
    fails(&mut world, &controller, now);
    assert!(world.told("job.j").contains(QUOTA), "{}", world.told("job.j"));
}

#[test]
fn a_failure_that_is_not_repeated_no_longer_counts() {
    let mut world = World::of_two(60);
    let (first, second) = (owner(&mut world, "a", 2, true), owner(&mut world, "b", 2, true));
    member(&mut world, "a-0", &first);
    let now = world.state.now();
    for controller in [&first, &second] {
        fails(&mut world, controller, now);
    }
    assert!(world.told("job.a").contains(QUOTA) && there(&world, "job.b"));
    assert!(world.state.next_wake().is_some_and(|at| at <= now + 1_200));
    world.pass(1_199);
    assert!(there(&world, "job.b"));
    world.pass(1);
    assert!(!world.told("job.a").contains(QUOTA), "{}", world.told("job.a"));
    assert!(!there(&world, "job.b"), "there is nothing to tell of it any more");
    // An old Event is listed after a restart.
    fails(&mut world, &second, now);
    assert!(!there(&world, "job.b"));
    assert!(world.state.audit().is_empty(), "{:?}", world.state.audit());
}

#[test]
fn pods_that_are_jobs_by_themselves_replace_their_owner() {
    let mut world = World::of_two(60);
    let controller = owner(&mut world, "set", 2, false);
    world.change_owner("set", |owner| {
        owner.detail = OwnerDetail::Replicas { replicas: 2 };
        owner.failure = Some(QUOTA.into());
    });
    assert_eq!(world.line("job.set"), "Gathering 0/2");
    assert!(world.told("job.set").contains(QUOTA));
    world.change_owner("set", |owner| owner.failure = None);
    assert!(!there(&world, "job.set"));
    world.change_owner("set", |owner| owner.failure = Some(QUOTA.into()));
    member(&mut world, "set-0", &controller);
    assert!(!there(&world, "job.set") && world.line("pod.set-0").starts_with("Running"));
    let deleted = world.owners[&controller.uid].uid.clone();
    world.delete_pod("set-0");
    world.step(vec![Event::OwnerGone(deleted)]);
    assert!(!there(&world, "job.set"));
    assert!(world.state.audit().is_empty(), "{:?}", world.state.audit());
}

#[test]
fn a_job_suspended_by_its_user_is_seen() {
    let mut world = World::of_two(60);
    let (gang, alone) = (owner(&mut world, "gang", 2, true), owner(&mut world, "alone", 1, false));
    for name in ["gang", "alone"] {
        suspend(&mut world, name, true);
        assert!(world.line(&format!("job.{name}")).starts_with("Suspended"), "{name}");
    }
    world.restart();
    assert_eq!(world.line("job.gang"), "Suspended 0/2");
    for name in ["gang", "alone"] {
        suspend(&mut world, name, false);
    }
    member(&mut world, "alone-0", &alone);
    for name in ["gang-0", "gang-1"] {
        member(&mut world, name, &gang);
    }
    assert_eq!((world.line("job.gang"), there(&world, "job.alone")), ("Running 2/2".to_owned(), false));
    assert!(world.line("pod.alone-0").starts_with("Running"));
}

#[test]
fn owners_of_other_schedulers_are_not_jobs_unless_their_namespace_is_taken_in() {
    let mut world = World::of_two(60);
    owner(&mut world, "j", 2, false);
    world.change_owner("j", |owner| owner.scheduler = Some("default-scheduler".into()));
    suspend(&mut world, "j", true);
    assert!(!there(&world, "job.j"));
    let mode = |mode: &str| Event::Namespace {
        name: "default".into(),
        labels: [("fluxion.flux-framework.org/admission".into(), mode.into())].into(),
    };
    world.step(vec![mode("gate")]);
    suspend(&mut world, "j", false);
    suspend(&mut world, "j", true);
    assert!(there(&world, "job.j"));
    world.change_owner("j", |owner| {
        owner.labels.insert("fluxion.flux-framework.org/admission".into(), "none".into());
    });
    assert!(!there(&world, "job.j"));
}

#[test]
fn what_another_one_controls_is_not_shown_beside_it_whichever_comes_first() {
    let mut world = World::of_two(60);
    let mut top = None;
    for name in ["inner", "top"] {
        let controller = owner(&mut world, name, 2, false);
        suspend(&mut world, name, true);
        top = Some(controller);
    }
    assert!(there(&world, "job.inner") && there(&world, "job.top"));
    let top = top.unwrap();
    world.change_owner("inner", |owner| owner.controller = Some(top));
    assert!(!there(&world, "job.inner") && there(&world, "job.top"), "{:?}", world.names());
    // And when the other one comes later.
    let mut world = World::of_two(60);
    let unseen = ControllerRef { uid: "job-top".into(), ..owner(&mut world, "inner", 2, false) };
    world.change_owner("inner", |owner| owner.controller = Some(unseen));
    suspend(&mut world, "inner", true);
    assert!(there(&world, "job.inner"));
    owner(&mut world, "top", 2, false);
    suspend(&mut world, "top", true);
    assert!(!there(&world, "job.inner") && there(&world, "job.top"), "{:?}", world.names());
}
