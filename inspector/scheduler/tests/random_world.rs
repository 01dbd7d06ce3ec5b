//! Random lives of a cluster: whatever happens in whatever order, the books are right, no gang is started in
//! part, and a new engine that is told the same cluster says the same of it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::collections::BTreeMap;

use fluxion_scheduler::event::{BindOutcome, Event};
use fluxion_scheduler::model::{Phase, PodSpec};
use fluxion_scheduler::state::JobState;
use proptest::prelude::*;
use world::{World, in_group};

#[derive(Clone, Debug)]
enum Act {
    Node {
        name: u8,
        cpu: u16,
        ready: bool,
        cordoned: bool,
    },
    NodeGone(u8),
    Gang {
        name: u8,
        size: u8,
        cpu: u16,
        limit: Option<u16>,
        priority: i8,
    },
    Single {
        name: u8,
        cpu: u16,
        limit: Option<u16>,
    },
    Foreign {
        name: u8,
        node: u8,
        cpu: u16,
    },
    End {
        pick: u16,
        failed: bool,
    },
    Delete {
        pick: u16,
    },
    Terminate {
        pick: u16,
    },
    Wait(u16),
    Restart,
    BindTrouble(u8),
    /// Whether kube-scheduler runs; when it starts, it binds what was pinned meanwhile.
    KubeScheduler(bool),
    /// Somebody removes our gate.
    Lift {
        pick: u16,
    },
}

fn acts() -> impl Strategy<Value = Act> {
    let limit = || prop::option::of(1_u16..500);
    prop_oneof![
        3 => (0_u8..6, 0_u16..9, prop::bool::weighted(0.9), prop::bool::weighted(0.1))
            .prop_map(|(name, cpu, ready, cordoned)| Act::Node { name, cpu, ready, cordoned }),
        1 => (0_u8..6).prop_map(Act::NodeGone),
        5 => (0_u8..40, 1_u8..5, 0_u16..5, limit(), -2_i8..3)
            .prop_map(|(name, size, cpu, limit, priority)| Act::Gang { name, size, cpu, limit, priority }),
        4 => (0_u8..60, 0_u16..5, limit()).prop_map(|(name, cpu, limit)| Act::Single { name, cpu, limit }),
        2 => (0_u8..40, 0_u8..6, 0_u16..5).prop_map(|(name, node, cpu)| Act::Foreign { name, node, cpu }),
        4 => (any::<u16>(), any::<bool>()).prop_map(|(pick, failed)| Act::End { pick, failed }),
        3 => any::<u16>().prop_map(|pick| Act::Delete { pick }),
        1 => any::<u16>().prop_map(|pick| Act::Terminate { pick }),
        2 => (1_u16..400).prop_map(Act::Wait),
        1 => Just(Act::Restart),
        1 => (0_u8..4).prop_map(Act::BindTrouble),
        1 => any::<bool>().prop_map(Act::KubeScheduler),
        1 => any::<u16>().prop_map(|pick| Act::Lift { pick }),
    ]
}

fn pick(world: &World, pick: u16) -> Option<String> {
    let live: Vec<_> = world.pods.values().filter(|pod| !pod.phase.ended()).collect();
    (!live.is_empty()).then(|| live[usize::from(pick) % live.len()].name.to_string())
}

/// Every third Pod or gang comes through the gate.
fn at_the_gate(name: u8, pod: &mut PodSpec) {
    if name.is_multiple_of(3) {
        world::gated(pod);
    }
}

fn play(world: &mut World, act: Act) {
    match act {
        Act::Node { name, cpu, ready, cordoned } => {
            world.node_with(&format!("n{name}"), &format!("cpu={}", u32::from(cpu) * 1000), |node| {
                node.ready = ready;
                node.unschedulable = cordoned;
            });
        }
        Act::NodeGone(name) => {
            let name = format!("n{name}");
            if world.nodes.remove(name.as_str()).is_some() {
                world.step(vec![Event::NodeGone(name.as_str().into())]);
            }
        }
        Act::Gang { name, size, cpu, limit, priority } => {
            for index in 0..size {
                let pod = format!("g{name}-{index}");
                if world.pods.values().any(|known| *known.name == *pod) {
                    return;
                }
                world.pod_with(&pod, &format!("cpu={}", u32::from(cpu) * 1000), |pod| {
                    in_group(&format!("g{name}"), &size.to_string())(pod);
                    pod.active_deadline = limit.map(i64::from);
                    pod.priority = i32::from(priority);
                    at_the_gate(name, pod);
                });
            }
        }
        Act::Single { name, cpu, limit } => {
            let pod = format!("s{name}");
            if world.pods.values().all(|known| *known.name != *pod) {
                world.pod_with(&pod, &format!("cpu={}", u32::from(cpu) * 1000), |pod| {
                    pod.active_deadline = limit.map(i64::from);
                    at_the_gate(name, pod);
                });
            }
        }
        Act::Foreign { name, node, cpu } => {
            let pod = format!("f{name}");
            if world.pods.values().all(|known| *known.name != *pod) {
                world.pod_with(&pod, &format!("cpu={}", u32::from(cpu) * 1000), |pod| {
                    pod.scheduler_name = "default-scheduler".into();
                    pod.node = Some(format!("n{node}").into());
                    pod.phase = Phase::Running;
                });
            }
        }
        Act::End { pick: which, failed } => {
            if let Some(name) = pick(world, which) {
                world.end_pod(&name, if failed { Phase::Failed } else { Phase::Succeeded });
            }
        }
        Act::Delete { pick: which } => {
            if let Some(name) = pick(world, which) {
                world.delete_pod(&name);
            }
        }
        Act::Terminate { pick: which } => {
            if let Some(name) = pick(world, which) {
                world.change_pod(&name, |pod| pod.deleting = true);
            }
        }
        Act::Wait(seconds) => world.pass(i64::from(seconds)),
        Act::Restart => world.restart(),
        Act::KubeScheduler(runs) => {
            world.kube_scheduler = runs;
            if runs {
                world.bind_pinned();
            }
        }
        Act::Lift { pick: which } => {
            if let Some(name) = pick(world, which) {
                world.change_pod(&name, |pod| pod.gates.clear());
            }
        }
        Act::BindTrouble(kind) => {
            world.bind = match kind {
                0 => |pod, _| (pod.name.ends_with('0')).then(|| BindOutcome::Transient("busy".into())),
                1 => |pod, _| (pod.name.ends_with('1')).then(|| BindOutcome::Refused("no".into())),
                _ => |_, _| None,
            };
        }
    }
}

/// Waiting gangs hold nothing; what runs fits.
fn no_gang_in_part(world: &World) {
    for job in world.state.jobs() {
        let members: Vec<_> = job.pods.iter().filter_map(|uid| world.pods.get(uid)).collect();
        // Those of its last start may still be terminating.
        let held =
            members.iter().filter(|pod| pod.node.is_some() && !pod.phase.ended() && !pod.deleting).count();
        if job.state.waiting() {
            assert_eq!(held, 0, "{} waits and holds nodes", job.key.display());
        }
    }
    for node in world.state.inventory().nodes() {
        let mut ours: BTreeMap<_, u64> = BTreeMap::new();
        for pod in world.pods.values() {
            if pod.node.as_ref() == Some(&node.spec.name) && !pod.phase.ended() {
                *ours.entry("cpu").or_default() += pod.needs.as_ref().unwrap().get("cpu");
            }
        }
        let used = ours.get("cpu").copied().unwrap_or(0);
        assert!(
            used <= node.spec.allocatable.get("cpu") || node.deficit.get("cpu") > 0,
            "{}",
            node.spec.name
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_life_keeps_the_books_right(acts in prop::collection::vec(acts(), 1..80)) {
        let mut world = World::default();
        for act in acts {
            play(&mut world, act);
            no_gang_in_part(&world);
        }
        world.bind = |_, _| None;
        world.kube_scheduler = true;
        world.bind_pinned();
        world.pass(1000);
        no_gang_in_part(&world);

        // Told the same cluster, a new engine holds the same.
        let before: Vec<_> = world.state.inventory().nodes().collect();
        world.restart();
        let twice: Vec<_> = world.state.inventory().nodes().collect();
        for (old, new) in before.iter().zip(&twice) {
            prop_assert_eq!(&old.allocated, &new.allocated);
            prop_assert_eq!(&old.free, &new.free);
        }

        // When all Pods are gone, every node is as new.
        for name in world.pods.values().map(|pod| pod.name.to_string()).collect::<Vec<_>>() {
            world.delete_pod(&name);
        }
        for node in world.state.inventory().nodes() {
            prop_assert!(node.allocated.is_empty(), "{} still holds {}", node.spec.name, node.allocated);
            prop_assert_eq!(node.free, node.spec.allocatable.clone());
        }
        for job in world.state.jobs() {
            prop_assert!(job.state.ended(), "{} is {}", job.key.display(), job.state.as_str());
            prop_assert!(matches!(job.state, JobState::Completed | JobState::Failed | JobState::Cancelled));
        }
    }
}
