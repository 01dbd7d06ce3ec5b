//! Jobs suspended when they were created: queued by the shape of their template, resumed when they start.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::sync::Arc;

use fluxion_scheduler::event::{BindOutcome, Effect, Event};
use fluxion_scheduler::model::{ControllerRef, OwnerDetail, PodSet};
use fluxion_scheduler::state::JobState;
use world::{World, gated};

const ADMISSION: &str = "fluxion.flux-framework.org/admission";

fn world() -> World {
    World::of_two(60)
}

/// As admission leaves it: suspended, and marked.
fn queued(world: &mut World, name: &str, count: i64, cpu: &str) -> ControllerRef {
    let controller = world.job_object(name, count, count, false);
    let mut template = world.make_pod("template", cpu, gated);
    world.pods.remove(&template.uid);
    (template.uid, template.name) = (controller.uid.clone(), controller.name.clone());
    template.controller = Some(controller.clone());
    world.change_owner(name, |owner| {
        owner.annotations.insert(ADMISSION.into(), "suspend".into());
        let OwnerDetail::Job { suspended, template: pods, .. } = &mut owner.detail else { panic!("a Job") };
        (*suspended, *pods) = (true, Some(Arc::new(template)));
    });
    controller
}

/// What the API server does.
fn resumed(world: &mut World, name: &str) {
    world.change_owner(name, |owner| {
        owner.annotations.insert(ADMISSION.into(), "resumed".into());
        let OwnerDetail::Job { suspended, template, .. } = &mut owner.detail else { panic!("a Job") };
        (*suspended, *template) = (false, None);
    });
}

fn resumes(world: &World) -> Vec<&str> {
    let resumes = world.effects.iter().filter_map(|effect| match effect {
        Effect::Resume { object } => Some(&*object.name),
        _ => None,
    });
    resumes.collect()
}

fn member(world: &mut World, name: &str, cpu: &str, controller: &ControllerRef) {
    world.pod_with(name, cpu, |pod| {
        gated(pod);
        pod.controller = Some(controller.clone());
    });
}

fn free(world: &World) -> [u64; 2] {
    ["n1", "n2"].map(|node| world.state.inventory().node(node).unwrap().free.get("cpu"))
}

#[test]
fn a_queued_job_is_resumed_when_it_fits_and_its_pods_take_what_is_reserved() {
    let mut world = world();
    world.pod("before", "cpu=1500");
    let controller = queued(&mut world, "j", 2, "cpu=2000");
    world.pass(5);
    assert_eq!((world.line("job.j"), resumes(&world).len()), ("Reserved 2/2".to_owned(), 0));
    assert!(world.told("job.j").contains("cpu"), "{}", world.told("job.j"));
    assert!(world.state.why_not(world.job("job.j")).is_some());
    let uid = controller.uid.clone();
    let targets = world.state.cancel_plan(world.job("job.j")).targets;
    assert_eq!(targets.iter().map(|object| object.uid.clone()).collect::<Vec<_>>(), [uid]);
    world.delete_pod("before");
    assert_eq!((world.line("job.j"), resumes(&world)), ("Binding 0/2".to_owned(), vec!["j"]));
    assert_eq!(free(&world), [0, 0]);
    resumed(&mut world, "j");
    member(&mut world, "j-0", "cpu=2000", &controller);
    assert_eq!((world.line("job.j"), free(&world)), ("Binding 0/2".to_owned(), [0, 0]));
    world.pod("other", "cpu=1000");
    assert_eq!(world.node_of("other"), None);
    member(&mut world, "j-1", "cpu=2000", &controller);
    assert_eq!((world.line("job.j"), world.bound("j"), free(&world)), ("Running 2/2".to_owned(), 2, [0, 0]));
    assert_eq!(resumes(&world).len(), 1);
    assert!(world.state.audit().is_empty(), "{:?}", world.state.audit());
}

#[test]
fn a_restart_at_any_moment_loses_no_job_and_resumes_none_twice() {
    let mut world = world();
    let controller = queued(&mut world, "j", 2, "cpu=2000");
    world.restart();
    // It was not resumed yet, so that is done again.
    assert_eq!(resumes(&world), ["j", "j"]);
    resumed(&mut world, "j");
    world.restart();
    member(&mut world, "j-0", "cpu=2000", &controller);
    world.restart();
    assert_eq!(world.line("job.j"), "Gathering 1/2");
    member(&mut world, "j-1", "cpu=2000", &controller);
    assert_eq!((world.line("job.j"), resumes(&world).len()), ("Running 2/2".to_owned(), 2));
}

#[test]
fn what_is_reserved_is_freed_when_the_pods_do_not_come() {
    let mut world = world();
    let controller = queued(&mut world, "j", 2, "cpu=2000");
    resumed(&mut world, "j");
    member(&mut world, "j-0", "cpu=2000", &controller);
    world.pass(55);
    assert_eq!(free(&world), [0, 0]);
    world.pass(10);
    assert_eq!((world.line("job.j"), free(&world)), ("Gathering 1/2".to_owned(), [2000, 2000]));
    member(&mut world, "j-1", "cpu=2000", &controller);
    assert_eq!(world.line("job.j"), "Running 2/2");
}

#[test]
fn a_job_that_can_not_be_resumed_says_why_and_is_tried_again() {
    let mut world = world();
    let controller = queued(&mut world, "j", 1, "cpu=1000");
    let refused = BindOutcome::Refused("jobs is forbidden".into());
    world.step(vec![Event::Resumed { object: controller.uid.clone(), outcome: refused }]);
    assert_eq!((world.state_of("job.j"), free(&world)), (JobState::Pending, [2000, 2000]));
    assert!(world.told("job.j").contains("jobs is forbidden"), "{}", world.told("job.j"));
    world.pass(40);
    assert_eq!(resumes(&world).len(), 2);
}

#[test]
fn a_user_who_resumes_or_suspends_has_the_last_word() {
    let mut world = world();
    world.pod("before", "cpu=1500");
    let controller = queued(&mut world, "j", 2, "cpu=2000");
    // The user resumes it: its Pods wait as a gang.
    resumed(&mut world, "j");
    assert_eq!(world.state_of("job.j"), JobState::Gathering);
    for name in ["j-0", "j-1"] {
        member(&mut world, name, "cpu=2000", &controller);
    }
    world.pass(5);
    assert_eq!((world.line("job.j"), resumes(&world).len()), ("Reserved 2/2".to_owned(), 0));
    // And suspends it: that is not ours.
    for name in ["j-0", "j-1"] {
        world.delete_pod(name);
    }
    world.change_owner("j", |owner| {
        let OwnerDetail::Job { suspended, .. } = &mut owner.detail else { panic!("a Job") };
        *suspended = true;
    });
    world.delete_pod("before");
    world.pass(60);
    assert_eq!((world.state_of("job.j"), resumes(&world).len()), (JobState::Suspended, 0));
}

#[test]
fn a_user_who_suspends_or_deletes_a_resumed_job_frees_what_is_reserved() {
    for deletes in [false, true] {
        let mut world = world();
        queued(&mut world, "j", 2, "cpu=2000");
        resumed(&mut world, "j");
        assert_eq!(free(&world), [0, 0]);
        world.change_owner("j", |owner| {
            let OwnerDetail::Job { suspended, .. } = &mut owner.detail else { panic!("a Job") };
            (*suspended, owner.deleting) = (!deletes, deletes);
        });
        assert_eq!(free(&world), [2000, 2000]);
    }
}

#[test]
fn a_deleted_job_leaves_nothing_behind() {
    let mut world = world();
    for fits in [false, true] {
        let controller = queued(&mut world, "j", if fits { 2 } else { 9 }, "cpu=2000");
        assert_eq!(world.state_of("job.j"), if fits { JobState::Binding } else { JobState::Unsatisfiable });
        world.owners.clear();
        world.step(vec![Event::OwnerGone(controller.uid)]);
        world.pass(1);
        assert_eq!((world.state_of("job.j"), free(&world)), (JobState::Cancelled, [2000, 2000]));
        world.pass(4000);
    }
}

#[test]
fn a_kind_with_several_sets_of_pods_is_one_gang() {
    let mut world = world();
    world.pod("before", "cpu=1500");
    let controller = queued(&mut world, "j", 1, "cpu=9000");
    let sets = [(1, "cpu=500"), (3, "cpu=1000")].map(|(count, cpu)| {
        let mut template = world.make_pod("template", cpu, gated);
        world.pods.remove(&template.uid);
        template.controller = Some(controller.clone());
        PodSet { count, template: Some(Arc::new(template)) }
    });
    world.change_owner("j", |owner| {
        owner.detail =
            OwnerDetail::Sets { sets: sets.into(), suspended: true, complete: false, failed: None };
    });
    world.pass(5);
    assert_eq!((world.line("job.j"), resumes(&world).len()), ("Reserved 4/4".to_owned(), 0));
    let request = world.job("job.j").request.clone().unwrap();
    let shapes: Vec<_> = request.shapes.iter().map(|shape| (shape.count, shape.needs.get("cpu"))).collect();
    assert_eq!(shapes, [(1, 500), (3, 1000)]);
    world.delete_pod("before");
    assert_eq!((world.line("job.j"), resumes(&world)), ("Binding 0/4".to_owned(), vec!["j"]));
    assert_eq!(free(&world).iter().sum::<u64>(), 4000 - 3500);
    world.change_owner("j", |owner| {
        owner.annotations.insert(ADMISSION.into(), "resumed".into());
        let OwnerDetail::Sets { sets, suspended, .. } = &mut owner.detail else { panic!("sets") };
        *suspended = false;
        *sets = sets.iter().map(|set| PodSet { count: set.count, template: None }).collect();
    });
    // Its Pods have other controllers in between.
    let jobs = ["a", "b"].map(|name| world.job_object(name, 2, 2, false));
    for name in ["a", "b"] {
        world.change_owner(name, |owner| owner.controller = Some(controller.clone()));
    }
    for (name, cpu, job) in [("a-0", "cpu=500", 0), ("a-1", "cpu=1000", 0), ("b-0", "cpu=1000", 1)] {
        member(&mut world, name, cpu, &jobs[job]);
    }
    assert_eq!(world.line("job.j"), "Binding 0/4");
    member(&mut world, "b-1", "cpu=1000", &jobs[1]);
    assert_eq!(world.line("job.j"), "Running 4/4");
    assert!(world.state.audit().is_empty(), "{:?}", world.state.audit());
    world.change_owner("j", |owner| {
        let OwnerDetail::Sets { suspended, .. } = &mut owner.detail else { panic!("sets") };
        *suspended = true;
    });
    for name in ["a-0", "a-1", "b-0", "b-1"] {
        world.delete_pod(name);
    }
    assert_eq!(world.line("job.j"), "Suspended 0/4", "by its user");
}

#[test]
fn a_kind_whose_pods_another_one_describes_is_queued_with_them_and_named_itself() {
    let mut world = world();
    world.pod("before", "cpu=1500");
    let top = world.job_object("train", 1, 1, false);
    world.change_owner("train", |owner| {
        (owner.kind, owner.api_version) = ("TrainJob".into(), "trainer.kubeflow.org/v1alpha1".into());
        owner.annotations.insert(ADMISSION.into(), "suspend".into());
        owner.detail = OwnerDetail::Delegating { suspended: true, complete: false, failed: None };
    });
    assert_eq!(world.names(), ["pod.before"], "its Pods are not known yet");
    let set = world.job_object("set", 3, 3, false);
    let template = world.make_pod("template", "cpu=1000", gated);
    world.pods.remove(&template.uid);
    world.change_owner("set", |owner| {
        owner.controller = Some(top.clone());
        let OwnerDetail::Job { suspended, template: pods, .. } = &mut owner.detail else { panic!("a Job") };
        (*suspended, *pods) = (true, Some(Arc::new(template)));
    });
    let name = "trainjob.trainer.kubeflow.org.train";
    assert_eq!(world.names(), ["pod.before", name]);
    assert_eq!((world.line(name), resumes(&world).len()), ("Reserved 3/3".to_owned(), 0));
    world.restart();
    assert_eq!(world.line(name), "Reserved 3/3");
    // Its number may change before it starts, and only its controller changes that.
    world.change_owner("set", |owner| {
        let OwnerDetail::Job { parallelism, completions, .. } = &mut owner.detail else { panic!("a Job") };
        (*parallelism, *completions) = (4, Some(4));
    });
    world.delete_pod("before");
    assert_eq!((world.line(name), resumes(&world)), ("Binding 0/4".to_owned(), vec!["train"]));
    world.change_owner("train", |owner| {
        owner.annotations.insert(ADMISSION.into(), "resumed".into());
        owner.detail = OwnerDetail::Delegating { suspended: false, complete: false, failed: None };
    });
    world.change_owner("set", |owner| {
        let OwnerDetail::Job { suspended, template, .. } = &mut owner.detail else { panic!("a Job") };
        (*suspended, *template) = (false, None);
    });
    for member_name in ["a", "b", "c", "d"] {
        member(&mut world, member_name, "cpu=1000", &set);
    }
    assert_eq!(world.line(name), "Running 4/4");
    assert_eq!(world.names(), ["pod.before", name], "there is no other job");
    world.check();
}
