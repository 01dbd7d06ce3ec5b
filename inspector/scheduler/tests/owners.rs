//! Owners above owners: as many as there are, all of them count.

mod world;

use fluxion_scheduler::event::Event;
use fluxion_scheduler::model::{ControllerRef, Marks, OwnerDetail, OwnerSpec};
use fluxion_scheduler::state::{JobState, ReasonClass};
use world::World;

fn owner(name: &str, above: Option<&OwnerSpec>) -> OwnerSpec {
    OwnerSpec {
        uid: format!("uid-{name}").into(),
        namespace: "default".into(),
        api_version: "example.org/v1".into(),
        kind: "Sweep".into(),
        name: name.into(),
        created: 0,
        deleting: false,
        labels: Marks::new(),
        annotations: Marks::new(),
        controller: above.map(reference),
        scheduler: None,
        failure: None,
        detail: OwnerDetail::Other,
    }
}

fn reference(owner: &OwnerSpec) -> ControllerRef {
    ControllerRef {
        api_version: owner.api_version.clone(),
        kind: owner.kind.clone(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
    }
}

#[test]
fn what_goes_with_a_job_and_what_an_owner_says_is_not_cut_off() {
    const MANY: usize = 10_010;
    let mut world = World::default();
    let mut top = owner("top", None);
    let mut events = vec![Event::Owner(Box::new(top.clone()))];
    for number in 0..MANY {
        let below = owner(&format!("below-{number}"), Some(&top));
        let pod = world
            .make_pod(&format!("p-{number}"), "cpu=1000", |pod| pod.controller = Some(reference(&below)));
        events.extend([Event::Owner(Box::new(below)), Event::Pod(Box::new(pod))]);
    }
    world.step(events);
    let plan = world.state.cancel_plan(world.job("pod.p-0"));
    assert_eq!(plan.targets.len(), 1);
    assert_eq!(plan.also_deletes.len(), MANY - 1);
    top.annotations.insert("fluxion.flux-framework.org/duration".into(), "1h".into());
    world.step(vec![Event::Owner(Box::new(top))]);
    assert!(world.state.jobs().all(|job| job.duration == Some(3600)));
    assert_eq!(world.state.jobs().count(), MANY);
}

#[test]
fn owners_without_end_are_refused() {
    let mut world = World::default();
    world.node("n1", "cpu=8000");
    let mut first = owner("o-0", None);
    let mut chain = vec![first.clone()];
    for number in 1..40 {
        chain.push(owner(&format!("o-{number}"), chain.last()));
    }
    let events = chain.iter().map(|owner| Event::Owner(Box::new(owner.clone()))).collect();
    world.step(events);
    world.pod_with("near", "cpu=1000", |pod| pod.controller = Some(reference(&chain[20])));
    world.pod_with("far", "cpu=1000", |pod| pod.controller = Some(reference(&chain[39])));
    assert_eq!(world.state_of("pod.near"), JobState::Running);
    let refused = |world: &World, name: &str| {
        let reason = world.job(name).reason.clone().unwrap();
        assert_eq!(reason.class, ReasonClass::InvalidRequest, "{reason:?}");
        assert!(reason.text().contains("longer than 32"), "{reason:?}");
    };
    refused(&world, "pod.far");
    // The first is owned by the tenth: a circle.
    first.controller = Some(reference(&chain[10]));
    world.step(vec![Event::Owner(Box::new(first))]);
    world.pod_with("round", "cpu=1000", |pod| pod.controller = Some(reference(&chain[5])));
    refused(&world, "pod.round");
}

/// A gang must not start in part because one of its Pods was heard of before what asks for the gang.
#[test]
fn a_pod_waits_for_owners_of_observed_kinds() {
    let observed =
        |observed| Event::OwnersObserved { group: "example.org".into(), kind: "Sweep".into(), observed };
    let mut world = World::default();
    world.node("n1", "cpu=8000");
    let mut outer = owner("outer", None);
    outer.annotations.insert("fluxion.flux-framework.org/gang".into(), "true".into());
    let sets = vec![fluxion_scheduler::model::PodSet { count: 2, template: None }];
    outer.detail = OwnerDetail::Sets { sets: sets.into(), suspended: false, complete: false, failed: None };
    let inner = owner("inner", Some(&outer));
    world.step(vec![observed(true)]);
    world.pod_with("a", "cpu=1000", |pod| pod.controller = Some(reference(&inner)));
    assert!(world.told("sweep.example.org.inner").contains("inner has not been observed yet"));
    world.step(vec![Event::Owner(Box::new(inner.clone()))]);
    assert!(world.told("sweep.example.org.outer").contains("outer has not been observed yet"));
    assert_eq!(world.node_of("a"), None);
    world.step(vec![Event::Owner(Box::new(outer.clone()))]);
    assert_eq!(world.line("sweep.example.org.outer"), "Gathering 1/2");
    // While it is not told whether they are, a Pod is not held up.
    world.step(vec![Event::OwnerGone(outer.uid.clone()), Event::OwnerGone(inner.uid.clone())]);
    world.delete_pod("a");
    world.pod_with("b", "cpu=1000", |pod| pod.controller = Some(reference(&inner)));
    assert_eq!(world.node_of("b"), None);
    world.step(vec![observed(false)]);
    assert_eq!(world.node_of("b"), Some("n1"));
    // The same if only an owner further up is missing.
    world.step(vec![observed(true), Event::Owner(Box::new(inner.clone()))]);
    world.pod_with("c", "cpu=1000", |pod| pod.controller = Some(reference(&inner)));
    assert_eq!(world.node_of("c"), None);
    world.step(vec![observed(false)]);
    assert_eq!(world.node_of("c"), Some("n1"));
}

/// Controllers copy annotations to what they make: what their user made is the gang.
#[test]
fn of_several_owners_that_ask_for_a_gang_the_outermost_known_one_is_it() {
    let sets = |count| {
        let sets = vec![fluxion_scheduler::model::PodSet { count, template: None }];
        OwnerDetail::Sets { sets: sets.into(), suspended: false, complete: false, failed: None }
    };
    for (copied, asking, expected) in [(true, true, "outer"), (false, true, "outer"), (true, false, "inner")]
    {
        let mut world = World::default();
        world.node("n1", "cpu=8000");
        // Nobody knows how many Pods this one has.
        let mut cron = owner("cron", None);
        let mut outer = OwnerSpec { detail: sets(3), ..owner("outer", Some(&cron)) };
        let mut inner = OwnerSpec { detail: sets(2), ..owner("inner", Some(&outer)) };
        for (one, asks) in [(&mut cron, true), (&mut outer, asking), (&mut inner, copied)] {
            if asks {
                one.annotations.insert("fluxion.flux-framework.org/gang".into(), "true".into());
            }
        }
        let reference = reference(&inner);
        world.step([cron, outer, inner].map(|one| Event::Owner(Box::new(one))).into());
        for name in ["a", "b"] {
            world.pod_with(name, "cpu=1000", |pod| pod.controller = Some(reference.clone()));
        }
        let line = if expected == "outer" { "Gathering 2/3" } else { "Running 2/2" };
        assert_eq!(world.line(&format!("sweep.example.org.{expected}")), line, "{copied} {asking}");
    }
}
