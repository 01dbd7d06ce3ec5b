//! Gangs with more members than their minimum: any of them that fit will do.

mod world;

use fluxion_scheduler::model::{PodSpec, Unsupported};
use fluxion_scheduler::state::{JobState, ReasonClass};
use world::World;

fn two_gpu_nodes() -> World {
    let mut world = World::default();
    for node in ["g1", "g2"] {
        world.node(node, "cpu=16000 nvidia.com/gpu=4");
    }
    world
}

fn member(group: &'static str) -> impl Fn(&mut PodSpec) {
    move |pod: &mut PodSpec| pod.scheduling_group = Some(group.into())
}

/// A head, three workers that fit and three that no node can take.
fn ray(world: &mut World, group: &'static str, huge: &str) {
    world.pod_with(&format!("{group}-head"), "cpu=1000", member(group));
    for index in 0..3 {
        let small = format!("{group}-small-{index}");
        world.pod_with(&small, "cpu=1000 nvidia.com/gpu=1", member(group));
        world.pod_with(&format!("{group}-{huge}-{index}"), "cpu=1000 nvidia.com/gpu=99", member(group));
    }
}

#[test]
fn members_that_can_never_fit_do_not_hold_the_others_back() {
    // Before and behind those that fit in order of names.
    for huge in ["huge", "zhuge"] {
        let mut world = two_gpu_nodes();
        ray(&mut world, "ray", huge);
        world.group("ray", Some(3), None);
        assert_eq!((world.line("podgroup.ray"), world.bound("ray")), ("Running 4/3".to_owned(), 4));
        let told = world.told("podgroup.ray");
        assert!(
            told.contains("3 members are waiting") && told.contains("nvidia.com/gpu (99 requested"),
            "{told}"
        );
        world.restart();
        assert_eq!((world.bound("ray"), world.told("podgroup.ray")), (4, told));
        world.pod_with("ray-zz", "cpu=1000", member("ray"));
        assert_eq!(world.bound("ray"), 5, "nobody waits behind those that can't run");
    }
}

#[test]
fn a_minimum_that_no_choice_can_reach_is_unsatisfiable_at_once() {
    let mut world = two_gpu_nodes();
    ray(&mut world, "ray", "huge");
    world.group("ray", Some(5), None);
    assert_eq!((world.state_of("podgroup.ray"), world.bound("ray")), (JobState::Unsatisfiable, 0));
    let told = world.told("podgroup.ray");
    assert!(told.contains("nvidia.com/gpu (99 requested, at most 4 per node)"), "{told}");
    assert!(
        told.contains(
            "5 of 7 members must start together, but there is room for only 4, even when all nodes are empty"
        ),
        "{told}"
    );
    world.group("ray", Some(4), None);
    assert_eq!((world.line("podgroup.ray"), world.bound("ray")), ("Running 4/4".to_owned(), 4));
}

#[test]
fn the_members_that_fit_now_start_and_the_others_follow() {
    let mut world = two_gpu_nodes();
    for index in 0..2 {
        world.pod(&format!("hog-{index}"), "nvidia.com/gpu=4");
    }
    world.pod_with("mx-a", "cpu=1000 nvidia.com/gpu=1", member("mixed"));
    world.pod_with("mx-b", "cpu=1000", member("mixed"));
    world.pod_with("mx-c", "cpu=1000", member("mixed"));
    world.group("mixed", Some(2), None);
    assert_eq!((world.line("podgroup.mixed"), world.node_of("mx-a")), ("Running 2/2".to_owned(), None));
    assert_eq!(world.job("podgroup.mixed").reason.as_ref().unwrap().class, ReasonClass::Busy);
    world.delete_pod("hog-1");
    assert_eq!((world.bound("mx"), world.node_of("mx-a")), (3, Some("g2")));
    assert_eq!(world.job("podgroup.mixed").reason, None);
}

#[test]
fn what_more_than_the_minimum_asks_for_does_not_delay_others() {
    // Six of eight have room: two come when there is more, and nobody waits for them.
    let mut world = World::default();
    world.node("n1", "cpu=4000");
    world.node("n2", "cpu=4000");
    world.pod_with("first", "cpu=2000", |pod| pod.active_deadline = Some(100));
    for index in 0..8 {
        world.pod_with(&format!("w-{index}"), "cpu=1000", member("wide"));
    }
    world.group("wide", Some(3), None);
    assert_eq!((world.line("podgroup.wide"), world.bound("w-")), ("Running 6/3".to_owned(), 6));
    let named = |index: i32| world.node_of(&format!("w-{index}")).is_some();
    assert_eq!((0..8).filter(|index| named(*index)).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    world.end_pod("first", fluxion_scheduler::model::Phase::Succeeded);
    assert_eq!(world.bound("w-"), 8);
}

#[test]
fn the_minimum_gets_a_planned_start() {
    let mut world = World::default();
    world.node("n1", "cpu=4000");
    world.node("n2", "cpu=2000");
    world.pod_with("now", "cpu=3000", |pod| pod.active_deadline = Some(100));
    world.pod_with("also", "cpu=2000", |pod| pod.active_deadline = Some(200));
    for (name, needs) in [("m-a", "cpu=9000"), ("m-b", "cpu=2000"), ("m-c", "cpu=2000"), ("m-d", "cpu=2000")]
    {
        world.pod_with(name, needs, member("planned"));
    }
    world.group("planned", Some(2), None);
    let job = world.job("podgroup.planned");
    let planned = job.reservation.as_ref().unwrap();
    assert_eq!((job.state, planned.start - world.now), (JobState::Reserved, 100));
    assert_eq!(planned.nodes, ["n1".into()]);
    let told = world.told("podgroup.planned");
    assert!(
        told.contains("2 of 4 members must start together, but there is no room for any of them"),
        "{told}"
    );
    world.end_pod("now", fluxion_scheduler::model::Phase::Succeeded);
    assert_eq!(world.bound("m-"), 2);
    world.end_pod("also", fluxion_scheduler::model::Phase::Succeeded);
    assert_eq!((world.bound("m-"), world.node_of("m-a")), (3, None));
}

#[test]
fn a_member_that_can_not_be_bound_does_not_hold_the_others_back() {
    let mut world = two_gpu_nodes();
    world.pod_with("v-a", "cpu=1000", |pod| {
        member("volumes")(pod);
        pod.unsupported.push(Unsupported::ResourceClaim("scratch".into()));
    });
    world.pod_with("v-b", "cpu=1000", member("volumes"));
    world.pod_with("v-c", "cpu=1000", member("volumes"));
    world.group("volumes", Some(3), None);
    let told = world.told("podgroup.volumes");
    assert!(told.starts_with("UnsupportedConstraint") && told.contains("scratch"), "{told}");
    assert_eq!((world.line("podgroup.volumes"), world.bound("v-")), ("Pending 3/3".to_owned(), 0));
    world.group("volumes", Some(2), None);
    assert_eq!((world.line("podgroup.volumes"), world.node_of("v-a")), ("Running 2/2".to_owned(), None));
    let told = world.told("podgroup.volumes");
    assert!(told.starts_with("UnsupportedConstraint") && told.contains("scratch"), "{told}");
    world.change_pod("v-a", |pod| pod.unsupported.clear());
    assert_eq!((world.bound("v-"), world.job("podgroup.volumes").reason.clone()), (3, None));
}
