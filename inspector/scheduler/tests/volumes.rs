//! Gangs with volumes: placed where their volumes are or can be, and bound when all of them are there.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::sync::Arc;

use fluxion_scheduler::constraint::volumes::{
    Capacity, Driver, NodeDrivers, PersistentVolume, StorageKey, StorageObject,
};
use fluxion_scheduler::constraint::{Expression, Operator, PodSelector, PodTerm, PodTerms};
use fluxion_scheduler::event::{BindOutcome, Effect, Event};
use fluxion_scheduler::model::{Phase, PodSpec};
use fluxion_scheduler::state::{JobState, Settings};
use world::storage::{claim, labelled, limit, mounting, volume, waits};
use world::{World, in_group};

/// `n1` and `n2` in zone a, `n3` in zone b; a little more than 2 cores each.
fn world() -> World {
    let mut world = World::new(Settings { bind_deadline: 100, ..Settings::default() });
    for (name, zone) in [("n1", "a"), ("n2", "a"), ("n3", "b")] {
        world.node_with(name, "cpu=2010", |node| {
            node.labels.insert("zone".into(), zone.into());
            node.labels.insert("host".into(), name.into());
        });
    }
    world.set(StorageObject::Class(waits("wait")));
    world
}

fn member(group: &'static str, claims: &'static [&'static str]) -> impl FnOnce(&mut PodSpec) {
    move |pod| {
        in_group(group, "2")(pod);
        mounting(claims)(pod);
    }
}

/// A gang of two Pods with a claim each, 2 cores each.
fn pair(world: &mut World) {
    for name in ["data-0", "data-1"] {
        world.set(StorageObject::Claim(claim(name)));
    }
    world.pod_with("p-0", "cpu=2000", member("g", &["data-0"]));
    world.pod_with("p-1", "cpu=2000", member("g", &["data-1"]));
}

fn binds(world: &World) -> usize {
    world.effects.iter().filter(|effect| matches!(effect, Effect::Bind { .. })).count()
}

#[test]
fn a_gang_is_bound_when_all_its_volumes_are_there() {
    let mut world = world();
    pair(&mut world);
    assert_eq!((world.selected("data-0"), world.selected("data-1")), (Some("n1"), Some("n2")));
    assert_eq!((world.line("group.g"), binds(&world)), ("Binding 0/2".to_owned(), 0));
    // Their places are held.
    world.pod("other", "cpu=2000");
    assert_eq!(world.node_of("other"), Some("n3"));
    world.provision("data-1", ("host", "n2"));
    assert_eq!(binds(&world), 1, "only the other Pod");
    let told = world.told("group.g");
    assert!(told.starts_with("ConstraintNotMet: waiting for volumes: 1 of 2"), "{told}");
    assert!(told.contains("data-0 is not"), "{told}");
    world.provision("data-0", ("zone", "a"));
    assert_eq!((world.node_of("p-0"), world.node_of("p-1")), (Some("n1"), Some("n2")));
    assert_eq!(world.line("group.g"), "Running 2/2");
    assert_eq!(world.job("group.g").reason, None);
}

#[test]
fn what_the_provisioner_refuses_is_tried_elsewhere_and_undone_everywhere() {
    let mut world = world();
    world.set(limit("n1", 9));
    world.set(limit("n2", 9));
    world.set(StorageObject::Claim(claim("data")));
    world.pod_with("p", "cpu=1000", mounting(&["data"]));
    assert_eq!(world.selected("data"), Some("n1"));
    world.provisioning_fails("data", "pool of zone a is full");
    let told = world.told("pod.p");
    assert!(
        told.contains("no volume for PersistentVolumeClaim data on node n1: pool of zone a is full"),
        "{told}"
    );
    world.pass(2);
    // n2 is in the same zone.
    assert_eq!(world.selected("data"), Some("n3"), "{}", world.told("pod.p"));
    world.provision("data", ("zone", "b"));
    assert_eq!(world.node_of("p"), Some("n3"));
}

#[test]
fn a_slow_provisioner_is_not_waited_for_beyond_the_deadline() {
    let mut world = world();
    pair(&mut world);
    world.provision("data-0", ("host", "n1"));
    world.pass(99);
    assert_eq!(world.line("group.g"), "Binding 0/2");
    world.pass(1);
    let told = world.told("group.g");
    assert!(told.contains("data-1 on node n2: no volume within 100 s"), "{told}");
    assert_eq!(world.selected("data-1"), None);
    world.pass(2);
    // The first claim's volume is where it is.
    assert_eq!(world.selected("data-1"), Some("n3"), "{}", world.told("group.g"));
    world.provision("data-1", ("zone", "b"));
    assert_eq!((world.node_of("p-0"), world.node_of("p-1")), (Some("n1"), Some("n3")));
}

#[test]
fn another_inspector_goes_on_where_the_first_was_killed() {
    let mut world = world();
    pair(&mut world);
    world.provision("data-1", ("host", "n2"));
    world.pass(50);
    world.restart();
    assert_eq!((world.selected("data-0"), world.line("group.g")), (Some("n1"), "Binding 0/2".to_owned()));
    world.pass(40);
    assert_eq!(world.selected("data-0"), Some("n1"));
    // The deadline counts from the first inspector's choice.
    world.pass(10);
    assert!(world.told("group.g").contains("no volume within 100 s"), "{}", world.told("group.g"));
    world.pass(2);
    assert_eq!(world.selected("data-0"), Some("n3"));
    world.restart();
    world.provision("data-0", ("zone", "b"));
    assert_eq!((world.node_of("p-0"), world.node_of("p-1")), (Some("n3"), Some("n2")));
}

#[test]
fn a_node_selected_before_a_restart_is_given_up_when_it_is_taken() {
    let mut world = world();
    world.set(StorageObject::Claim(claim("data")));
    world.pod_with("p", "cpu=2000", mounting(&["data"]));
    assert_eq!(world.selected("data"), Some("n1"));
    // While no inspector ran, another Pod took the node.
    world.make_pod("foreign", "cpu=2000", |pod| {
        pod.scheduler_name = "other".into();
        pod.node = Some("n1".into());
    });
    world.restart();
    let told = world.told("pod.p");
    assert!(told.contains("2 couldn't use a volume that is being provisioned for node n1"), "{told}");
    world.pass(99);
    assert_eq!(world.selected("data"), Some("n1"));
    world.pass(20);
    assert_eq!(world.selected("data"), Some("n2"), "{}", world.told("pod.p"));
}

#[test]
fn free_volumes_are_reserved_the_smallest_that_fits_each() {
    let mut world = world();
    let mut class = waits("wait");
    class.provisioner = "kubernetes.io/no-provisioner".into();
    world.set(StorageObject::Class(class));
    for (name, size, host) in [("a", 100, "n1"), ("b", 20, "n1"), ("c", 5, "n2"), ("d", 30, "n3")] {
        let mut one = volume(name, size);
        one.affinity = Some(labelled("host", host));
        world.set(StorageObject::Volume(one));
    }
    pair(&mut world);
    assert_eq!(world.volume("b").claimant.as_ref().unwrap().name, "data-0".into());
    assert_eq!(world.volume("d").claimant.as_ref().unwrap().name, "data-1".into());
    assert_eq!(world.volume("a").claimant, None);
    world.pod_with("third", "cpu=1", mounting(&["data-2"]));
    assert!(world.told("pod.third").contains("data-2 does not exist"));
    world.set(StorageObject::Claim(claim("data-2")));
    assert_eq!(
        world.volume("a").claimant.as_ref().unwrap().name,
        "data-2".into(),
        "{}",
        world.told("pod.third")
    );
    world.set(StorageObject::Claim(claim("data-3")));
    world.pod_with("fourth", "cpu=1", mounting(&["data-3"]));
    let told = world.told("pod.fourth");
    assert!(
        told.contains("3 didn't find available persistent volumes to bind (storage class wait)"),
        "{told}"
    );
    for name in ["b", "d", "a"] {
        let volume = world.volume(name).clone();
        let claim = world.claim(&volume.claimant.as_ref().unwrap().name.clone()).clone();
        world.bind_claim(&claim, volume);
    }
    assert_eq!(
        (world.node_of("p-0"), world.node_of("p-1"), world.node_of("third")),
        (Some("n1"), Some("n3"), Some("n1"))
    );
    world.set(StorageObject::Volume(volume("e", 10)));
    assert_eq!(world.volume("e").claimant.as_ref().unwrap().name, "data-3".into());
}

#[test]
fn a_volume_that_somebody_else_got_is_replaced() {
    let mut world = world();
    world.set(StorageObject::Claim(claim("data")));
    let mut free = volume("v", 10);
    free.version = "7".into();
    world.set(StorageObject::Volume(free.clone()));
    // The API server's version is newer than the one that the engine knows.
    free.version = "8".into();
    world.storage.insert(StorageKey::Volume("v".into()), StorageObject::Volume(free.clone()));
    world.pod_with("p", "cpu=1", mounting(&["data"]));
    assert!(world.told("pod.p").contains("the volume was changed"), "{}", world.told("pod.p"));
    let foreign = claim("foreign");
    world.set(StorageObject::Claim(foreign.clone()));
    world.bind_claim(&foreign, free);
    world.pass(2);
    assert_eq!(world.selected("data"), Some("n2"), "{}", world.told("pod.p"));
}

#[test]
fn capacity_and_topology_are_where_the_storage_is() {
    let mut world = world();
    let mut class = waits("wait");
    class.topologies = labelled("zone", "a");
    world.set(StorageObject::Class(class));
    world.set(StorageObject::Driver(Driver {
        name: "csi.example".into(),
        tracks_capacity: true,
        must_be_installed: false,
    }));
    world.set(StorageObject::Claim(claim("data")));
    world.pod_with("p", "cpu=1", mounting(&["data"]));
    let told = world.told("pod.p");
    assert!(told.contains("2 did not have enough free storage (storage class wait)"), "{told}");
    assert!(told.contains("1 didn't find available persistent volumes to bind"), "{told}");
    let room = |largest| {
        StorageObject::Capacity(Capacity {
            namespace: "kube-system".into(),
            name: "c".into(),
            class: "wait".into(),
            largest: Some(largest),
            nodes: Some(labelled("host", "n2")[0].labels.clone()),
        })
    };
    world.set(room(9));
    assert_eq!(world.selected("data"), None);
    world.set(room(10));
    assert_eq!(world.selected("data"), Some("n2"));
}

#[test]
fn volumes_with_the_same_handle_count_once() {
    let mut world = world();
    for node in ["n1", "n2", "n3"] {
        world.set(limit(node, u32::from(node == "n1")));
    }
    for name in ["one", "other"] {
        world.set(StorageObject::Claim(claim(name)));
    }
    world.provision("one", ("zone", "a"));
    world.provision("other", ("zone", "a"));
    world.pod_with("p", "cpu=1", mounting(&["one"]));
    world.pod_with("q", "cpu=1", mounting(&["other"]));
    assert_eq!(["p", "q"].map(|pod| world.node_of(pod)), [Some("n1"), None]);
    let same = world.volume("pv-one").csi.clone();
    let other = PersistentVolume { csi: same, ..world.volume("pv-other").clone() };
    world.set(StorageObject::Volume(other));
    assert_eq!(world.node_of("q"), Some("n1"), "{}", world.told("pod.q"));
}

#[test]
fn a_volume_that_is_there_already_is_shared_beyond_the_limit() {
    let mut world = world();
    world.set(limit("n1", 0));
    world.set(StorageObject::Claim(claim("data")));
    world.provision("data", ("host", "n1"));
    world.pod_with("alone", "cpu=1", mounting(&["data"]));
    assert_eq!(world.state_of("pod.alone"), JobState::Unsatisfiable);
    world.delete_pod("alone");
    world.pod_with("foreign", "cpu=1", |pod| {
        mounting(&["data"])(pod);
        pod.scheduler_name = "default-scheduler".into();
        pod.node = Some("n1".into());
        pod.phase = Phase::Running;
    });
    world.pod_with("p", "cpu=1", mounting(&["data"]));
    assert_eq!(world.node_of("p"), Some("n1"), "{}", world.told("pod.p"));
}

#[test]
fn a_pod_with_volumes_keeps_the_labels_that_others_select_by() {
    let mut world = world();
    let mut exclusive = claim("data");
    exclusive.modes = ["ReadWriteOncePod".into()].into();
    world.set(StorageObject::Claim(exclusive.clone()));
    world.bind_claim(&exclusive, volume("pv", 10));
    // A selector that selects Pods without the label.
    let labels =
        vec![Expression { key: "app".into(), operator: Operator::NotIn, values: vec!["friend".into()] }];
    let namespaces = ["default".into()].into();
    let selector = PodSelector { namespaces, namespace_selector: None, labels: Some(labels) };
    let apart = PodTerm { selector, topology: "host".into() };
    for node in ["n1", "n2", "n3"] {
        world.pod_with(&format!("foreign-{node}"), "cpu=0", |pod| {
            pod.scheduler_name = "default-scheduler".into();
            pod.node = Some(node.into());
            pod.phase = Phase::Running;
            pod.labels.insert("app".into(), "friend".into());
            let anti_affinity = vec![Arc::new(apart.clone())];
            pod.terms = Some(Arc::new(PodTerms { anti_affinity, ..PodTerms::default() }));
        });
    }
    world.pod_with("p", "cpu=1", |pod| {
        mounting(&["data"])(pod);
        pod.labels.insert("app".into(), "friend".into());
    });
    assert_eq!(world.node_of("p"), Some("n1"), "{}", world.told("pod.p"));
}

#[test]
fn a_driver_that_must_be_installed_is_waited_for() {
    let mut world = world();
    let driver = |must_be_installed| {
        let name = "csi.example".into();
        StorageObject::Driver(Driver { name, tracks_capacity: false, must_be_installed })
    };
    let node = |name: &str, installed: &[&str]| {
        let installed = installed.iter().map(|driver| (*driver).into()).collect();
        StorageObject::Node(NodeDrivers { node: name.into(), installed, ..NodeDrivers::default() })
    };
    world.set(driver(true));
    world.set(node("n2", &["other.example"]));
    for claimed in ["bound", "new"] {
        world.set(StorageObject::Claim(claim(claimed)));
    }
    world.provision("bound", ("zone", "a"));
    world.pod_with("p", "cpu=1", mounting(&["bound"]));
    let told = world.told("pod.p");
    assert!(told.contains("2 didn't have the CSI driver csi.example installed"), "{told}");
    world.set(node("n2", &["csi.example"]));
    assert_eq!(world.node_of("p"), Some("n2"));
    // The same applies to a volume that has yet to be created, unless the driver does not mind any more.
    world.set(node("n2", &[]));
    world.pod_with("q", "cpu=1", mounting(&["new"]));
    assert_eq!(world.selected("new"), None, "{}", world.told("pod.q"));
    world.set(driver(false));
    assert_eq!(world.selected("new"), Some("n1"), "{}", world.told("pod.q"));
}

#[test]
fn nodes_take_as_many_volumes_as_their_driver_allows() {
    let mut world = world();
    for (node, count) in [("n1", 2), ("n2", 1), ("n3", 0)] {
        world.set(limit(node, count));
    }
    for index in 0..5 {
        let name = format!("d{index}");
        world.set(StorageObject::Claim(claim(&name)));
        world.provision(&name, ("zone", "a"));
    }
    // A shared volume counts once on each node.
    world.pod_with("s1", "cpu=1", mounting(&["d0"]));
    world.pod_with("s2", "cpu=1", mounting(&["d0"]));
    world.pod_with("x", "cpu=1", mounting(&["d1"]));
    world.pod_with("y", "cpu=1", mounting(&["d2"]));
    assert_eq!(["s1", "s2", "x", "y"].map(|pod| world.node_of(pod)), ["n1", "n1", "n1", "n2"].map(Some));
    world.pod_with("z", "cpu=1", mounting(&["d3"]));
    let told = world.told("pod.z");
    assert!(told.contains("2 would exceed the maximum volume count of csi.example"), "{told}");
    world.pod_with("s3", "cpu=1", mounting(&["d0"]));
    assert_eq!(world.node_of("s3"), Some("n1"));
    world.end_pod("s1", Phase::Succeeded);
    world.end_pod("s2", Phase::Succeeded);
    assert_eq!(world.node_of("z"), None);
    world.end_pod("s3", Phase::Succeeded);
    assert_eq!(world.node_of("z"), Some("n1"));
}

#[test]
fn a_claim_for_one_pod_is_for_one_pod_at_a_time() {
    let mut world = world();
    let mut one = claim("one");
    one.modes = ["ReadWriteOncePod".into()].into();
    world.set(StorageObject::Claim(one));
    world.provision("one", ("zone", "a"));
    world.pod_with("first", "cpu=1", mounting(&["one"]));
    world.pod_with("second", "cpu=1", mounting(&["one"]));
    assert_eq!((world.node_of("first"), world.node_of("second")), (Some("n1"), None));
    let told = world.told("pod.second");
    assert!(told.contains("excluded because ReadWriteOncePod claim one is in use"), "{told}");
    world.end_pod("first", Phase::Succeeded);
    assert_eq!(world.node_of("second"), Some("n1"));
    // Members of one gang never can.
    world.pod_with("a", "cpu=1", member("never", &["one"]));
    world.pod_with("b", "cpu=1", member("never", &["one"]));
    assert_eq!(world.line("group.never"), "Unsatisfiable 2/2", "{}", world.told("group.never"));
}

#[test]
fn what_a_claim_is_lacking_is_said() {
    let mut world = world();
    world.pod_with("p", "cpu=1", mounting(&["data"]));
    for (change, text) in [
        ((|_| ()) as fn(&mut fluxion_scheduler::constraint::volumes::Claim), ""),
        (|claim| claim.class = "unknown".into(), "data is not bound yet"),
        (|claim| claim.volume = Some("v".into()), "data is not bound yet"),
        (
            |claim| (claim.volume, claim.complete) = (Some("v".into()), true),
            "PersistentVolume v, which does not exist",
        ),
        (|claim| claim.deleting = true, "data is being deleted"),
        (|claim| claim.lost = true, "data has lost its PersistentVolume"),
    ] {
        if text.is_empty() {
            assert!(
                world
                    .told("pod.p")
                    .starts_with("ConstraintNotMet: Pod p: PersistentVolumeClaim data does not exist")
            );
            continue;
        }
        let mut bad = claim("data");
        change(&mut bad);
        world.set(StorageObject::Claim(bad));
        assert!(world.told("pod.p").contains(text), "{text}: {}", world.told("pod.p"));
    }
    world.change_pod("p", |pod| {
        let mut volumes = (**pod.volumes.as_ref().unwrap()).clone();
        volumes.claims[0].ephemeral = true;
        pod.volumes = Some(Arc::new(volumes));
    });
    assert!(world.told("pod.p").contains("was not created for this Pod"), "{}", world.told("pod.p"));
    world.set(StorageObject::Claim(fluxion_scheduler::constraint::volumes::Claim {
        controller: Some("uid-p".into()),
        ..claim("data")
    }));
    assert_eq!(world.selected("data"), Some("n1"));
}

#[test]
fn members_that_share_a_claim_wait_for_its_one_volume() {
    let mut world = world();
    world.set(StorageObject::Claim(claim("shared")));
    world.pod_with("p-0", "cpu=2000", member("g", &["shared"]));
    world.pod_with("p-1", "cpu=2000", member("g", &["shared"]));
    assert_eq!((world.selected("shared"), world.line("group.g")), (Some("n1"), "Binding 0/2".to_owned()));
    // It is not accessible from the other member's node: both are placed again, where it is.
    world.provision("shared", ("zone", "a"));
    assert_eq!((world.node_of("p-0"), world.node_of("p-1")), (Some("n1"), Some("n2")));
}

#[test]
fn members_that_share_a_claim_need_one_free_volume_that_all_of_them_can_use() {
    let mut world = world();
    let mut class = waits("wait");
    class.provisioner = "kubernetes.io/no-provisioner".into();
    world.set(StorageObject::Class(class));
    world.set(StorageObject::Claim(claim("shared")));
    // The smallest is only accessible from one node.
    world.set(StorageObject::Volume(PersistentVolume {
        affinity: Some(labelled("host", "n1")),
        ..volume("local", 10)
    }));
    for pod in ["p-0", "p-1"] {
        world.pod_with(pod, "cpu=2000", member("g", &["shared"]));
    }
    let told = world.told("group.g");
    assert!(told.contains("there is room for only 1"), "{told}");
    world.set(StorageObject::Volume(PersistentVolume {
        affinity: Some(labelled("zone", "a")),
        ..volume("zonal", 20)
    }));
    let shared = world.claim("shared").clone();
    assert_eq!(world.volume("zonal").claimant.as_ref().map(|one| &one.name), Some(&shared.name));
    assert_eq!(world.volume("local").claimant, None);
    let zonal = world.volume("zonal").clone();
    world.bind_claim(&shared, zonal);
    assert_eq!(["p-0", "p-1"].map(|pod| world.node_of(pod)), ["n1", "n2"].map(Some));
}

#[test]
fn a_pod_that_is_deleted_meanwhile_leaves_nothing_behind() {
    let mut world = world();
    pair(&mut world);
    world.delete_pod("p-1");
    assert_eq!(world.selected("data-1"), None);
    world.provision("data-0", ("host", "n1"));
    assert_eq!((world.node_of("p-0"), world.line("group.g")), (None, "Gathering 1/2".to_owned()));
    world.pod_with("p-2", "cpu=2000", member("g", &["data-1"]));
    world.pass(2);
    world.provision("data-1", ("host", "n2"));
    assert_eq!((world.node_of("p-0"), world.node_of("p-2")), (Some("n1"), Some("n2")));
}

#[test]
fn writes_that_fail_are_repeated_and_rejected_ones_are_told() {
    let mut world = world();
    world.set(StorageObject::Claim(claim("data")));
    let pod = world.make_pod("p", "cpu=1", mounting(&["data"]));
    let effects = world.state.step(world.now, vec![Event::Pod(Box::new(pod))]);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::SelectNode { .. })), "{effects:?}");
    let answer = |outcome| vec![Event::StorageWritten { object: "claim-data".into(), outcome }];
    let none = world.state.step(world.now, answer(BindOutcome::Transient("slow".into())));
    assert!(!none.iter().any(|effect| matches!(effect, Effect::SelectNode { .. })), "{none:?}");
    world.now += 2;
    let again = world.state.step(world.now, vec![Event::Tick]);
    assert!(again.iter().any(|effect| matches!(effect, Effect::SelectNode { .. })), "{again:?}");
    world.step(answer(BindOutcome::Refused("a policy says no".into())));
    assert!(world.told("pod.p").contains("on node n1: a policy says no"), "{}", world.told("pod.p"));
    assert_eq!(world.selected("data"), None);
}

/// Pods with a claim each that arrive at once, and their claims.
fn at_once(world: &mut World, pods: &[(&str, &str)]) {
    let pods = pods.iter().map(|(name, claim)| world.make_pod(name, "cpu=1", mounting(&[claim])));
    let events = pods.map(|pod| Event::Pod(Box::new(pod))).collect();
    world.step(events);
}

/// Volumes of this class are only there, not created.
fn only_existing(world: &mut World) {
    let mut class = waits("wait");
    class.provisioner = "kubernetes.io/no-provisioner".into();
    world.set(StorageObject::Class(class));
}

/// A free volume of the node.
fn local(world: &mut World, name: &str, node: &str) {
    let mut one = volume(name, 10);
    one.affinity = Some(labelled("host", node));
    world.set(StorageObject::Volume(one));
}

#[test]
fn jobs_that_start_in_one_pass_share_the_limits_of_nodes() {
    let mut world = world();
    for (node, count) in [("n1", 2), ("n2", 1), ("n3", 0)] {
        world.set(limit(node, count));
    }
    for index in 0..4 {
        let name = format!("d{index}");
        world.set(StorageObject::Claim(claim(&name)));
        world.provision(&name, ("zone", "a"));
    }
    at_once(&mut world, &[("a", "d0"), ("b", "d1"), ("c", "d2"), ("d", "d3")]);
    let nodes = ["a", "b", "c", "d"].map(|pod| world.node_of(pod));
    assert_eq!(nodes, [Some("n1"), Some("n1"), Some("n2"), None]);
    let told = world.told("pod.d");
    assert!(told.contains("would exceed the maximum volume count of csi.example"), "{told}");
}

#[test]
fn jobs_that_start_in_one_pass_do_not_share_what_is_for_one_pod() {
    let mut world = world();
    let mut one = claim("one");
    one.modes = ["ReadWriteOncePod".into()].into();
    world.set(StorageObject::Claim(one));
    world.provision("one", ("zone", "a"));
    at_once(&mut world, &[("first", "one"), ("second", "one")]);
    assert_eq!((world.node_of("first"), world.node_of("second")), (Some("n1"), None));
    only_existing(&mut world);
    local(&mut world, "v", "n1");
    world.set(StorageObject::Claim(claim("x")));
    world.set(StorageObject::Claim(claim("y")));
    at_once(&mut world, &[("px", "x"), ("py", "y")]);
    assert_eq!(world.volume("v").claimant.as_ref().unwrap().name, "x".into());
    assert!(world.line("pod.px").starts_with("Binding"), "{}", world.line("pod.px"));
    assert!(world.line("pod.py").starts_with("Pending"), "{}", world.line("pod.py"));
    let told = world.told("pod.py");
    assert!(told.contains("didn't find available persistent volumes to bind"), "{told}");
}

#[test]
fn a_volume_that_a_reservation_counts_on_is_left_to_it() {
    let mut world = world();
    only_existing(&mut world);
    local(&mut world, "v", "n1");
    world.pod_with("blocker", "cpu=2000", |pod| pod.active_deadline = Some(100));
    assert_eq!(world.node_of("blocker"), Some("n1"));
    world.set(StorageObject::Claim(claim("x")));
    world.set(StorageObject::Claim(claim("y")));
    world.pod_with("reserved", "cpu=2000", mounting(&["x"]));
    assert!(world.job("pod.reserved").reservation.is_some(), "{}", world.told("pod.reserved"));
    // It would be over by then, but its claim would keep the volume.
    world.pod_with("short", "cpu=1", |pod| {
        mounting(&["y"])(pod);
        pod.active_deadline = Some(10);
    });
    assert_eq!(world.volume("v").claimant, None, "{}", world.told("pod.short"));
    world.end_pod("blocker", Phase::Succeeded);
    assert_eq!(world.volume("v").claimant.as_ref().unwrap().name, "x".into());
}

#[test]
fn storage_that_comes_while_nobody_waits_for_it_is_there_for_the_next_pod() {
    let mut world = world();
    only_existing(&mut world);
    world.set(StorageObject::Claim(claim("data")));
    world.pod_with("a", "cpu=1", mounting(&["data"]));
    let told = world.told("pod.a");
    assert!(told.contains("didn't find available persistent volumes to bind"), "{told}");
    world.delete_pod("a");
    local(&mut world, "v", "n2");
    world.pod_with("b", "cpu=1", mounting(&["data"]));
    assert!(world.volume("v").claimant.is_some(), "{}", world.told("pod.b"));
}

#[test]
fn failed_volumes_keep_only_their_own_jobs_from_a_node() {
    let mut world = world();
    for (pod, data) in [("p", "data-0"), ("q", "data-1")] {
        world.set(StorageObject::Claim(claim(data)));
        world.pod_with(pod, "cpu=1", mounting(&[data]));
        assert_eq!(world.selected(data), Some("n1"));
        world.provisioning_fails(data, "the pool is full");
    }
    world.pass(3);
    assert_eq!((world.selected("data-0"), world.selected("data-1")), (Some("n2"), Some("n2")));
    world.pod("other", "cpu=1");
    assert_eq!(world.node_of("other"), Some("n1"));
    let found = world.state.audit();
    assert!(found.iter().all(|finding| finding.class != "RefusesBindings"), "{found:?}");
}

#[test]
fn a_node_is_only_deselected_by_the_last_pod_that_waits_for_it() {
    let mut world = world();
    world.set(StorageObject::Claim(claim("data")));
    world.pod_with("a", "cpu=1", mounting(&["data"]));
    world.pod_with("b", "cpu=1", mounting(&["data"]));
    world.pod_with("c", "cpu=1", mounting(&["data"]));
    assert_eq!((world.selected("data"), world.line("pod.b")), (Some("n1"), "Binding 0/1".to_owned()));
    world.delete_pod("b");
    assert_eq!(world.selected("data"), Some("n1"));
    // Another one goes on with it.
    world.delete_pod("a");
    assert_eq!(world.selected("data"), Some("n1"));
    world.pass(10);
    assert_eq!((world.selected("data"), world.line("pod.c")), (Some("n1"), "Binding 0/1".to_owned()));
    world.delete_pod("c");
    assert_eq!(world.selected("data"), None);
    // kube-scheduler has selected this one.
    let foreign = || Some("n2".into());
    world.change_claim("data", |claim| claim.selected = foreign());
    world.pod_with("d", "cpu=1", mounting(&["data"]));
    assert_eq!(world.line("pod.d"), "Binding 0/1");
    world.delete_pod("d");
    assert_eq!(world.selected("data"), Some("n2"));
    // If it is removed, the Pod is placed again.
    world.pod_with("e", "cpu=1", mounting(&["data"]));
    world.provisioning_fails("data", "full");
    world.pass(2);
    assert_eq!(world.selected("data"), Some("n1"), "{}", world.told("pod.e"));
}

#[test]
fn a_job_whose_volume_another_one_got_is_placed_again() {
    let mut world = world();
    only_existing(&mut world);
    world.set(StorageObject::Volume(volume("any", 10)));
    for (name, size, host) in [("of-n1", 20, "n1"), ("of-n2", 30, "n2")] {
        let mut one = volume(name, size);
        one.affinity = Some(labelled("host", host));
        world.set(StorageObject::Volume(one));
    }
    let mut events = Vec::new();
    // The gang could have left the volume of n1 to the other job.
    for (pod, data, host) in [("p-0", "x", "n2"), ("p-1", "y", "n1"), ("q", "z", "n1")] {
        world.set(StorageObject::Claim(claim(data)));
        let pod = world.make_pod(pod, "cpu=1", |pod| {
            mounting(&[data])(pod);
            if data != "z" {
                in_group("g", "2")(pod);
            }
            let mut constraint = (*pod.constraint).clone();
            constraint.affinity = Some(labelled("host", host).to_vec());
            pod.constraint = Arc::new(constraint);
        });
        events.push(Event::Pod(Box::new(pod)));
    }
    world.step(events);
    let claimants =
        ["any", "of-n1"].map(|name| world.volume(name).claimant.as_ref().unwrap().name.to_string());
    assert_eq!(claimants, ["x", "y"]);
    assert_eq!((world.line("pod.q"), world.selected("z")), ("Pending 1/1".to_owned(), None));
    let told = world.told("pod.q");
    assert!(
        told.contains("PersistentVolumeClaim z on node n1: the free volumes were given to others"),
        "{told}"
    );
    world.pass(2);
    local(&mut world, "more", "n1");
    assert!(world.volume("more").claimant.is_some(), "{}", world.told("pod.q"));
}
