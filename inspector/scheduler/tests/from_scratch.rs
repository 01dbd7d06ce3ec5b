//! Two engines get the same events. One of them is made to forget, before each step, whatever passes have found out, and
//! what each job was told: they want the same, and give the same reasons.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use fluxion_scheduler::model::Phase;
use fluxion_scheduler::placement::NodePolicy;
use fluxion_scheduler::queue::{Planning, QueueConfig, QueuePolicy};
use fluxion_scheduler::state::{Job, Settings};
use proptest::prelude::*;
use world::{World, in_group};

#[derive(Clone, Debug)]
enum Act {
    Arrive { queue: usize, priority: i32, members: u32, cpu: u64, limit: Option<i64> },
    Foreign { node: usize, cpu: u64 },
    End(prop::sample::Index),
    Delete(prop::sample::Index),
    Wait(i64),
    Node { node: usize, cpu: u64, cordoned: bool },
}

fn act() -> impl Strategy<Value = Act> {
    // Few different requests, so that jobs share what is known.
    let job = (0..2_usize, 0..2_i32, 1..4_u32, 1..4_u64, prop::option::weighted(0.7, 1..4_i64));
    let pick = any::<prop::sample::Index>;
    prop_oneof![
        8 => job.prop_map(|(queue, priority, members, cpu, limit)| {
            Act::Arrive { queue, priority, members, cpu, limit: limit.map(|limit| limit * 8) }
        }),
        2 => (0..5_usize, 1..5_u64).prop_map(|(node, cpu)| Act::Foreign { node, cpu }),
        6 => pick().prop_map(Act::End),
        2 => pick().prop_map(Act::Delete),
        3 => (1..12_i64).prop_map(Act::Wait),
        1 => (0..5_usize, 1..7_u64, prop::bool::weighted(0.3))
            .prop_map(|(node, cpu, cordoned)| Act::Node { node, cpu, cordoned }),
    ]
}

fn queue() -> impl Strategy<Value = QueueConfig> {
    let policies =
        [QueuePolicy::Fcfs, QueuePolicy::Easy, QueuePolicy::Conservative, QueuePolicy::Hybrid].to_vec();
    let depths = (prop_oneof![2..9_usize, Just(10_000)], 1..4_usize);
    (prop::sample::select(policies), depths, any::<(bool, bool)>(), prop::option::weighted(0.7, 1..20_i64))
        .prop_map(|(policy, (queue_depth, reservation_depth), (high, replan), assumed)| QueueConfig {
            policy,
            queue_depth,
            reservation_depth,
            planning: if replan { Planning::Replan } else { Planning::Compress },
            assumed_duration: assumed,
            node_policy: if high { NodePolicy::High } else { NodePolicy::Low },
            ..QueueConfig::default()
        })
}

/// Plays an act; numbers pick one of what there is.
fn play(world: &mut World, act: &Act, number: usize) {
    let names = |world: &World, ours: bool| -> Vec<String> {
        let pods = world.pods.values().filter(|pod| !pod.phase.ended());
        let some = pods.filter(|pod| !ours || pod.node.is_some());
        some.map(|pod| pod.name.to_string()).collect()
    };
    match act {
        Act::Arrive { queue, priority, members, cpu, limit } => {
            let name = format!("j{number:03}");
            for member in 0..*members {
                world.pod_with(&format!("{name}-{member}"), &format!("cpu={cpu}"), |pod| {
                    in_group(&name, &members.to_string())(pod);
                    pod.priority = *priority;
                    let note = |key: &str| format!("fluxion.flux-framework.org/{key}").into();
                    pod.annotations.insert(note("queue"), format!("q{queue}").into());
                    if let Some(limit) = limit {
                        pod.annotations.insert(note("duration"), format!("{limit}s").into());
                    }
                });
            }
        }
        Act::Foreign { node, cpu } => {
            world.pod_with(&format!("f{number:03}"), &format!("cpu={cpu}"), |pod| {
                pod.scheduler_name = "default-scheduler".into();
                pod.node = Some(format!("n{node}").into());
                pod.phase = Phase::Running;
            });
        }
        Act::End(pick) => {
            let names = names(world, true);
            if !names.is_empty() {
                world.end_pod(&names[pick.index(names.len())], Phase::Succeeded);
            }
        }
        Act::Delete(pick) => {
            let names = names(world, false);
            if !names.is_empty() {
                world.delete_pod(&names[pick.index(names.len())]);
            }
        }
        Act::Wait(seconds) => world.pass(*seconds),
        Act::Node { node, cpu, cordoned } => {
            let amounts = format!("cpu={cpu} pods=1000");
            world.node_with(&format!("n{node}"), &amounts, |spec| spec.unschedulable = *cordoned);
        }
    }
}

/// What everybody sees of a job.
fn seen(job: &Job) -> String {
    format!("{:?} {:?} {:?} {:?} {:?}", job.key, job.state, job.reason, job.reservation, job.waits_for)
}

/// More with the environment variable `PROPTEST_CASES`.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(64)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_passes_remember_changes_no_answer(
        nodes in prop::collection::vec(1..7_u64, 1..5),
        queues in prop::collection::vec(queue(), 1..3),
        unschedulable_max in prop_oneof![Just(100_usize), 0..3_usize],
        acts in prop::collection::vec(act(), 1..40),
    ) {
        let mut queues = queues;
        for (at, queue) in queues.iter_mut().enumerate() {
            queue.name = format!("q{at}").into();
        }
        let settings = Settings { queues, unschedulable_max, ..Settings::default() };
        let mut worlds = [World::new(settings.clone()), World::new(settings)];
        for world in &mut worlds {
            for (at, cores) in nodes.iter().enumerate() {
                world.node(&format!("n{at}"), &format!("cpu={cores} pods=1000"));
            }
        }
        let [remembers, forgets] = &mut worlds;
        for (number, act) in acts.iter().enumerate() {
            play(remembers, act, number);
            forgets.state.forget_findings();
            play(forgets, act, number);
            let all = |world: &World| world.state.jobs().map(seen).collect::<Vec<String>>();
            prop_assert_eq!(all(remembers), all(forgets), "after {:?}", act);
            let effects = |world: &mut World| {
                std::mem::take(&mut world.effects).iter().map(|effect| format!("{effect:?}")).collect::<Vec<_>>()
            };
            prop_assert_eq!(effects(remembers), effects(forgets), "after {:?}", act);
            prop_assert_eq!(remembers.state.next_wake(), forgets.state.next_wake());
        }
    }
}
