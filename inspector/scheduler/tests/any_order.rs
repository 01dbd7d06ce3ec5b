//! The same objects make the same jobs, in whatever order they are delivered: no job is left behind that only was
//! there because a Pod was seen before what it belongs to.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use fluxion_scheduler::event::Event;
use fluxion_scheduler::model::{ControllerRef, GroupApi, GroupSpec, Marks, OwnerDetail, OwnerSpec};
use proptest::prelude::*;
use proptest::sample::Index;
use world::{World, in_group};

const GANG: &str = "fluxion.flux-framework.org/gang";

fn controller(kind: &str, api_version: &str, name: &str) -> ControllerRef {
    let uid = format!("{}-{name}", kind.to_lowercase());
    ControllerRef { api_version: api_version.into(), kind: kind.into(), name: name.into(), uid: uid.into() }
}

fn owner(
    world: &mut World,
    of: &ControllerRef,
    gang: bool,
    above: Option<ControllerRef>,
    detail: OwnerDetail,
) {
    let mut annotations = Marks::new();
    if gang {
        annotations.insert(GANG.into(), "true".into());
    }
    let owner = OwnerSpec {
        uid: of.uid.clone(),
        namespace: "default".into(),
        api_version: of.api_version.clone(),
        kind: of.kind.clone(),
        name: of.name.clone(),
        created: world.now,
        deleting: false,
        labels: Marks::new(),
        annotations,
        controller: above,
        scheduler: None,
        failure: None,
        detail,
    };
    world.owners.insert(owner.uid.clone(), owner);
}

fn group(world: &mut World, api: GroupApi, name: &str, min: i64, above: Option<ControllerRef>) {
    let api_version = match api {
        GroupApi::Native => "scheduling.k8s.io/v1beta1",
        GroupApi::SchedulerPlugins => "scheduling.x-k8s.io/v1alpha1",
    };
    let group = GroupSpec {
        api,
        uid: format!("pg-{name}").into(),
        namespace: "default".into(),
        name: name.into(),
        api_version: api_version.into(),
        created: world.now,
        deleting: false,
        min_count: Some(min),
        topology: None,
        priority: None,
        labels: Marks::new(),
        annotations: Marks::new(),
        controller: above,
        scheduled: false,
        schedule_timeout: None,
    };
    world.groups.insert(group.uid.clone(), group);
}

/// What is there, of every way in which Pods become one job; nothing of it was told to the engine yet.
fn objects() -> World {
    let mut world = World::default();
    let pods = |world: &mut World, of: &ControllerRef, count: u32, group: Option<&str>| {
        for index in 0..count {
            world.make_pod(&format!("{}-{index}", of.name), "cpu=1000", |pod| {
                pod.controller = Some(of.clone());
                pod.scheduling_group = group.map(Into::into);
            });
        }
    };
    for (name, gang, count) in [("render", false, 2), ("solver", true, 3), ("generated", false, 2)] {
        let job = controller("Job", "batch/v1", name);
        let detail = OwnerDetail::Job {
            parallelism: i64::from(count),
            completions: Some(count.into()),
            succeeded: 0,
            failed_indexes: 0,
            active_deadline: None,
            start_time: None,
            complete: false,
            failed: None,
            ended_at: None,
            suspended: false,
            gang: None,
            template: None,
        };
        owner(&mut world, &job, gang, None, detail);
        pods(&mut world, &job, count, (name == "generated").then_some("generated-pg"));
        if name == "generated" {
            group(&mut world, GroupApi::Native, "generated-pg", 2, Some(job));
        }
    }
    for (name, gang) in [("front", true), ("back", false)] {
        let deployment = controller("Deployment", "apps/v1", name);
        let set = controller("ReplicaSet", "apps/v1", &format!("{name}-1"));
        owner(&mut world, &deployment, gang, None, OwnerDetail::Replicas { replicas: 2 });
        owner(&mut world, &set, false, Some(deployment), OwnerDetail::Replicas { replicas: 2 });
        pods(&mut world, &set, 2, None);
    }
    group(&mut world, GroupApi::SchedulerPlugins, "train", 2, None);
    for index in 0..2 {
        world.make_pod(&format!("train-{index}"), "cpu=1000", |pod| {
            pod.labels.insert("scheduling.x-k8s.io/pod-group".into(), "train".into());
        });
        world.make_pod(&format!("labels-{index}"), "cpu=1000", in_group("labels", "2"));
        world.make_pod(&format!("mixed-{index}"), "cpu=1000", in_group("mixed", "3"));
    }
    world.make_pod("mixed-2", "cpu=1000", |pod| {
        in_group("mixed", "3")(pod);
        pod.scheduler_name = "default-scheduler".into();
    });
    world.make_pod("single", "cpu=1000", |_| ());
    world.node("n1", "cpu=64000 pods=100");
    world
}

fn lines(world: &World) -> Vec<String> {
    let mut names = world.names();
    names.sort();
    names.iter().map(|name| format!("{name} {}", world.line(name))).collect()
}

/// Shuffled as `order` says.
fn shuffled(mut events: Vec<Event>, order: &[Index]) -> Vec<Event> {
    let mut out = Vec::with_capacity(events.len());
    for pick in order.iter().cycle() {
        if events.is_empty() {
            break;
        }
        out.push(events.swap_remove(pick.index(events.len())));
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_the_same_objects_makes_the_same_jobs(
        order in prop::collection::vec(any::<Index>(), 40),
        going in prop::collection::vec(any::<Index>(), 40),
    ) {
        let mut world = objects();
        let mut events: Vec<Event> =
            world.pods.values().map(|pod| Event::Pod(Box::new(pod.clone()))).collect();
        events.extend(world.groups.values().map(|group| Event::Group(Box::new(group.clone()))));
        events.extend(world.owners.values().map(|owner| Event::Owner(Box::new(owner.clone()))));
        for event in shuffled(events, &order) {
            world.step(vec![event]);
            for job in world.state.jobs() {
                prop_assert!(!job.state.ended(), "{} is {}", job.key.display(), job.state.as_str());
            }
        }
        let want = [
            "deployment.front Running 2/2",
            "group.labels Running 2/2",
            "group.mixed Unsatisfiable 3/3",
            "job.generated Running 2/2",
            "job.solver Running 3/3",
            "pod.back-1-0 Running 1/1",
            "pod.back-1-1 Running 1/1",
            "pod.render-0 Running 1/1",
            "pod.render-1 Running 1/1",
            "pod.single Running 1/1",
            "podgroup.scheduling.x-k8s.io.train Running 2/2",
        ];
        prop_assert_eq!(lines(&world), want);

        // And when all of it is deleted, each of them has ended, and nothing else has.
        let mut events: Vec<Event> = world.pods.keys().map(|uid| Event::PodGone(uid.clone())).collect();
        events.extend(world.groups.keys().map(|uid| Event::GroupGone(uid.clone())));
        events.extend(world.owners.keys().map(|uid| Event::OwnerGone(uid.clone())));
        world.pods.clear();
        for event in shuffled(events, &going) {
            world.step(vec![event]);
        }
        let names: Vec<String> = want.iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
        let mut ended = Vec::new();
        for job in world.state.jobs() {
            prop_assert!(job.state.ended(), "{} is {}", job.key.display(), job.state.as_str());
            ended.push(world.state.object_name(job));
        }
        ended.sort();
        prop_assert_eq!(ended, names);
    }
}

#[test]
fn a_plain_job_whose_pod_comes_first_leaves_no_job_behind() {
    let mut world = World::default();
    world.node("n1", "cpu=4000");
    let render = controller("Job", "batch/v1", "render");
    world.pod_with("render-0", "cpu=1000", |pod| pod.controller = Some(render));
    assert_eq!(world.line("job.render"), "Gathering 1/?");
    world.at(1);
    world.job_object("render", 1, 1, false);
    assert_eq!(lines(&world), ["pod.render-0 Running 1/1"]);
    // One whose Pod goes before its owner was seen was never known to be a job of that name.
    let short = controller("Job", "batch/v1", "short");
    world.pod_with("short-0", "cpu=1000", |pod| pod.controller = Some(short));
    world.delete_pod("short-0");
    assert_eq!(lines(&world), ["pod.render-0 Running 1/1"]);
}
