//! A pass that is cut into slices, with whatever its own bindings bring between them, ends as one that is not.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::collections::BTreeMap;

use fluxion_scheduler::event::Event;
use fluxion_scheduler::model::{Phase, PodSpec};
use fluxion_scheduler::placement::NodePolicy;
use fluxion_scheduler::queue::{QueueConfig, QueuePolicy};
use fluxion_scheduler::state::{Job, JobState, ReasonClass, Settings};
use proptest::prelude::*;
use world::{World, in_group, resources};

#[derive(Clone, Debug)]
enum Act {
    Node {
        name: u8,
        cpu: u16,
        cordoned: bool,
    },
    NodeGone(u8),
    Gang {
        size: u8,
        surplus: u8,
        cpu: u16,
        queue: u8,
        limit: Option<u16>,
        /// Number of gangs that come together.
        copies: u8,
    },
    End(u16),
    Delete(u16),
    /// In place.
    Resize(u16, u16),
    Wait(u16),
}

fn acts() -> impl Strategy<Value = Act> {
    let limit = || prop::option::weighted(0.7, 1_u16..300);
    prop_oneof![
        2 => (0_u8..6, 1_u16..9, prop::bool::weighted(0.1))
            .prop_map(|(name, cpu, cordoned)| Act::Node { name, cpu, cordoned }),
        1 => (0_u8..6).prop_map(Act::NodeGone),
        8 => (1_u8..4, 0_u8..2, 1_u16..6, 0_u8..3, limit()).prop_map(
            |(size, surplus, cpu, queue, limit)| Act::Gang { size, surplus, cpu, queue, limit, copies: 1 }
        ),
        3 => any::<u16>().prop_map(Act::End),
        1 => any::<u16>().prop_map(Act::Delete),
        2 => (any::<u16>(), 1_u16..6).prop_map(|(pick, cpu)| Act::Resize(pick, cpu)),
        2 => (1_u16..200).prop_map(Act::Wait),
    ]
}

fn settings(queues: &[(usize, usize)], visits_per_step: u64) -> Settings {
    let policies = [QueuePolicy::Easy, QueuePolicy::Fcfs, QueuePolicy::Conservative, QueuePolicy::Hybrid];
    let queue = |(at, (policy, depth)): (usize, &(usize, usize))| QueueConfig {
        name: format!("q{at}").into(),
        policy: policies[*policy],
        queue_depth: *depth,
        reservation_depth: 2,
        node_policy: if at == 1 { NodePolicy::High } else { NodePolicy::Low },
        ..QueueConfig::default()
    };
    Settings {
        queues: queues.iter().enumerate().map(queue).collect(),
        visits_per_step,
        ..Settings::default()
    }
}

fn pick(world: &World, pick: u16, wanted: impl Fn(&&PodSpec) -> bool) -> Option<String> {
    let live: Vec<_> = world.pods.values().filter(|pod| !pod.phase.ended()).filter(wanted).collect();
    (!live.is_empty()).then(|| live[usize::from(pick) % live.len()].name.to_string())
}

fn play(world: &mut World, number: usize, act: &Act) {
    match act {
        Act::Node { name, cpu, cordoned } => {
            let amounts = format!("cpu={cpu}000");
            world.node_with(&format!("n{name}"), &amounts, |node| node.unschedulable = *cordoned);
        }
        Act::NodeGone(name) => {
            let name = format!("n{name}");
            if world.nodes.remove(name.as_str()).is_some() {
                world.step(vec![Event::NodeGone(name.as_str().into())]);
            }
        }
        Act::Gang { size, surplus, cpu, queue, limit, copies } => {
            let mut events = Vec::new();
            let queues = world.state.queues().len();
            let members = (0..*copies).flat_map(|copy| (0..size + surplus).map(move |index| (copy, index)));
            for (copy, index) in members {
                let name = if copy == 0 { format!("g{number}") } else { format!("g{number}.{copy}") };
                let amounts = format!("cpu={}000", if index < *size { *cpu } else { cpu + 2 });
                let pod = world.make_pod(&format!("{name}-{index}"), &amounts, |pod| {
                    in_group(&name, &size.to_string())(pod);
                    let queue = usize::from(*queue) % queues;
                    pod.annotations
                        .insert("fluxion.flux-framework.org/queue".into(), format!("q{queue}").into());
                    pod.active_deadline = limit.map(i64::from);
                });
                events.push(Event::Pod(Box::new(pod)));
            }
            world.step(events);
        }
        Act::End(at) => {
            if let Some(name) = pick(world, *at, |pod| pod.node.is_some()) {
                world.end_pod(&name, Phase::Succeeded);
            }
        }
        Act::Delete(at) => {
            if let Some(name) = pick(world, *at, |_| true) {
                world.delete_pod(&name);
            }
        }
        Act::Resize(at, cpu) => {
            if let Some(name) = pick(world, *at, |pod| pod.node.is_some()) {
                let needs = resources(&format!("cpu={cpu}000 pods=1"));
                world.change_pod(&name, |pod| pod.needs = Ok(needs.into()));
            }
        }
        Act::Wait(seconds) => world.at(i64::from(*seconds)),
    }
}

/// Where everything is, and what every job that waits was promised or why it waits. Texts may be from the middle of a
/// pass.
fn shown(world: &World) -> BTreeMap<String, String> {
    let pods = world.pods.values().map(|pod| (pod.name.to_string(), format!("{:?}", pod.node)));
    let jobs = world.state.jobs().filter(|job| !job.state.ended()).map(|job| {
        let promised = &job.reservation;
        let class = job.reason.as_ref().map(|reason| reason.class);
        let told = format!("{} {promised:?} {class:?}", job.state.as_str());
        (job.key.display(), if job.state.waiting() { told } else { job.state.as_str().to_owned() })
    });
    pods.chain(jobs).collect()
}

/// Whether it is nodes that are down which keep a job out, or somebody on the others, may change with each that starts.
fn class(class: ReasonClass) -> ReasonClass {
    if class == ReasonClass::NodesDown { ReasonClass::Busy } else { class }
}

/// Why each job waits.
fn reasons(world: &World) -> BTreeMap<String, (JobState, Option<ReasonClass>)> {
    let waiting = world.state.jobs().filter(|job| job.state.waiting());
    let reason = |job: &Job| job.reason.as_ref().map(|reason| class(reason.class));
    waiting.map(|job| (job.key.display(), (job.state, reason(job)))).collect()
}

fn restarted(world: &World) -> World {
    let mut again = World::new(world.state.settings().clone());
    again.now = world.now;
    (again.pods, again.nodes) = (world.pods.clone(), world.nodes.clone());
    again.restart();
    again
}

#[test]
fn who_started_last_is_in_the_way_of_those_before_it_as_after_a_restart() {
    for visits in [1, 5_000_000] {
        for queue in [0, 1] {
            let mut world = World::new(settings(&[(0, 5), (0, 5), (0, 5)], visits));
            for node in ["n0", "n1", "n2"] {
                world.node(node, "cpu=6000");
            }
            let gang = |size, cpu, queue| Act::Gang { size, surplus: 0, cpu, queue, limit: None, copies: 1 };
            for (number, act) in [gang(3, 5, 0), gang(2, 3, 0), gang(3, 1, 0)].iter().enumerate() {
                play(&mut world, number, act);
            }
            let reason = |world: &World| reasons(world)["group/g2"].1;
            assert_eq!(reason(&world), Some(ReasonClass::QueueOrder), "it would delay the second");
            play(&mut world, 3, &gang(1, 1, queue));
            assert_eq!(world.bound("g3"), 1);
            assert_eq!(reason(&world), Some(ReasonClass::Busy), "the node that nobody was promised is full");
            assert_eq!(reasons(&restarted(&world)), reasons(&world));
        }
    }
}

/// A conservative queue keeps the nodes that it planned for `g2`, though they could be others by now, and so those of which one
/// is free are not for `g3`, which has no time limit. Planned again, `g2` would leave that node alone.
#[test]
fn a_kept_reservation_survives_a_restart_with_its_nodes() {
    for stored in [true, false] {
        let mut world = World::new(settings(&[(2, 2), (0, 1), (0, 2)], 5_000_000));
        for node in ["n0", "n1", "n2"] {
            world.node(node, "cpu=6000");
        }
        let gangs = [(3, 0, 5, Some(10)), (1, 0, 1, None), (2, 0, 4, None), (1, 1, 3, None)];
        for (number, (size, surplus, cpu, limit)) in gangs.into_iter().enumerate() {
            play(&mut world, number, &Act::Gang { size, surplus, cpu, queue: 0, limit, copies: 1 });
        }
        play(&mut world, gangs.len(), &Act::End(14233));
        let told = shown(&world);
        if !stored {
            world.pods.values_mut().for_each(|pod| pod.reserved = None);
        }
        let again = restarted(&world);
        assert_eq!(world.state_of("group.g3"), JobState::Reserved);
        assert_eq!(again.state_of("group.g3"), if stored { JobState::Reserved } else { JobState::Running });
        assert_eq!(shown(&again) == told, stored);
        for world in [&world, &again] {
            assert_eq!(world.job("group.g2").reservation.as_ref().unwrap().start - world.now, 10);
        }
    }
}

#[test]
fn more_that_come_last_than_fit_in_a_step_leave_reservations_as_they_are() {
    let mut starts = Vec::new();
    for visits in [1, 5_000_000] {
        let mut world = World::new(settings(&[(2, 9)], visits));
        world.node("n0", "cpu=6000");
        let gang = |copies| Act::Gang { size: 1, surplus: 0, cpu: 6, queue: 0, limit: Some(100), copies };
        for (number, copies) in [1, 1, 2].into_iter().enumerate() {
            world.at(10);
            play(&mut world, number, &gang(copies));
        }
        let start =
            |name: &str| world.job(name).reservation.as_ref().map(|promised| promised.start - world.now);
        starts.push(["group.g1", "group.g2", "group.g2.1"].map(start));
    }
    assert_eq!(starts, [[Some(80), Some(180), Some(280)]; 2]);
}

#[test]
fn a_reopened_pass_counts_only_those_who_have_come_since() {
    let mut world = World::new(settings(&[(0, 9)], 5_000_000));
    world.node("n0", "cpu=6000");
    for number in 0..4 {
        let gang = Act::Gang { size: 1, surplus: 0, cpu: 6, queue: 0, limit: Some(100), copies: 1 };
        play(&mut world, number, &gang);
    }
    let report = world.state.last_pass("q0");
    assert_eq!((report.tried, report.tried_since, report.started), (3, 1, 0));
}

/// More with the environment variable `PROPTEST_CASES`.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn slices_end_where_a_whole_pass_ends(
        queues in prop::collection::vec((0_usize..4, 1_usize..9), 3),
        acts in prop::collection::vec(acts(), 5..40),
        visits in prop_oneof![Just(1_u64), 2_u64..40],
    ) {
        let mut whole = World::new(settings(&queues, 5_000_000));
        let mut sliced = World::new(settings(&queues, visits));
        for world in [&mut whole, &mut sliced] {
            for node in 0..3 {
                world.node(&format!("n{node}"), "cpu=6000");
            }
        }
        for (number, act) in acts.iter().enumerate() {
            play(&mut whole, number, act);
            play(&mut sliced, number, act);
            prop_assert_eq!(shown(&sliced), shown(&whole), "after {:?}", act);
        }
    }

    #[test]
    fn a_restart_gives_the_reasons_that_were_given(
        queues in prop::collection::vec((0_usize..4, 1_usize..9), 3),
        acts in prop::collection::vec(acts(), 5..20),
    ) {
        let mut world = World::new(settings(&queues, 5_000_000));
        for node in 0..3 {
            world.node(&format!("n{node}"), "cpu=6000");
        }
        for (number, act) in acts.iter().enumerate() {
            play(&mut world, number, act);
        }
        prop_assert_eq!(reasons(&restarted(&world)), reasons(&world));
    }

    #[test]
    fn a_restart_leaves_every_kept_reservation_as_it_is(
        depth in 1_usize..9,
        acts in prop::collection::vec(acts(), 5..30),
    ) {
        let mut world = World::new(settings(&[(2, depth)], 5_000_000));
        for node in 0..3 {
            world.node(&format!("n{node}"), "cpu=6000");
        }
        for (number, act) in acts.iter().enumerate() {
            play(&mut world, number, act);
            let mut reservations = world.state.jobs().filter_map(|job| job.reservation.as_ref());
            // One whose time has come without a start is planned again, at once or by the next pass.
            let compared = number % 5 == 4 || number + 1 == acts.len();
            if compared && reservations.all(|planned| planned.start > world.now) {
                prop_assert_eq!(shown(&restarted(&world)), shown(&world), "after {:?}", act);
            }
        }
    }

    #[test]
    fn what_is_decided_for_those_who_come_last_is_what_a_new_pass_decides(
        queue in (0_usize..4, 1_usize..9),
        acts in prop::collection::vec(acts(), 5..40),
    ) {
        let mut world = World::new(settings(&[queue], 5_000_000));
        for node in 0..3 {
            world.node(&format!("n{node}"), "cpu=6000");
        }
        let nodes = |world: &World| world.pods.values().filter(|pod| pod.node.is_some()).count();
        for (number, act) in acts.iter().enumerate() {
            if matches!(act, Act::Gang { .. }) {
                world.at(1);
            }
            let before = nodes(&world);
            play(&mut world, number, act);
            if matches!(act, Act::Gang { .. }) && nodes(&world) == before {
                let decided = shown(&world);
                // It considers all jobs again.
                world.step(vec![Event::Synced]);
                prop_assert_eq!(shown(&world), decided, "after {:?}", act);
            }
        }
    }
}
