//! Random lives of gangs with controllers that make their members again: what a gang is owed after its start is
//! kept for it, nobody else gets it, and one that lost everybody starts whole or not at all.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use fluxion_scheduler::event::Event;
use fluxion_scheduler::model::{Phase, PodSpec, SharedStr};
use proptest::prelude::*;
use world::World;
use world::controllers::{Controllers, Maker};
use world::owed::Owed;

#[derive(Clone, Debug)]
enum Act {
    Node { name: u8, cpu: u16, ready: bool, cordoned: bool },
    NodeGone(u8),
    Drain(u8),
    Job { name: u8, completions: u8, parallelism: u8, cpu: u16, delay: i64 },
    Group { name: u8, minimum: u8, cpu: u16, delay: i64 },
    Single { name: u8, cpu: u16 },
    Foreign { name: u8, node: u8, cpu: u16 },
    End { pick: u16, phase: Phase, for_good: bool },
    Terminate { pick: u16 },
    Delete { pick: u16 },
    Suspend { name: u8, suspend: bool },
    Remove(u8),
    Wait(i64),
    Restart,
}

const NODES: u8 = 4;
const GANGS: u8 = 5;

fn acts() -> impl Strategy<Value = Act> {
    let delay = || prop_oneof![4 => Just(10_i64), 2 => Just(0_i64), 1 => Just(900_i64)];
    let phase = prop_oneof![Just(Phase::Succeeded), Just(Phase::Failed)];
    prop_oneof![
        2 => (0..NODES, 1_u16..7, prop::bool::weighted(0.9), prop::bool::weighted(0.1))
            .prop_map(|(name, cpu, ready, cordoned)| Act::Node { name, cpu, ready, cordoned }),
        1 => (0..NODES).prop_map(Act::NodeGone),
        2 => (0..NODES).prop_map(Act::Drain),
        4 => (0..GANGS, 1_u8..7, 1_u8..4, 0_u16..4, delay()).prop_map(
            |(name, completions, parallelism, cpu, delay)| Act::Job { name, completions, parallelism, cpu, delay }),
        3 => (0..GANGS, 1_u8..4, 0_u16..4, delay())
            .prop_map(|(name, minimum, cpu, delay)| Act::Group { name, minimum, cpu, delay }),
        6 => (0_u8..60, 0_u16..4).prop_map(|(name, cpu)| Act::Single { name, cpu }),
        1 => (0_u8..40, 0..NODES, 0_u16..4).prop_map(|(name, node, cpu)| Act::Foreign { name, node, cpu }),
        7 => (any::<u16>(), phase, prop::bool::weighted(0.2))
            .prop_map(|(pick, phase, for_good)| Act::End { pick, phase, for_good }),
        2 => any::<u16>().prop_map(|pick| Act::Terminate { pick }),
        3 => any::<u16>().prop_map(|pick| Act::Delete { pick }),
        1 => (0..GANGS, any::<bool>()).prop_map(|(name, suspend)| Act::Suspend { name, suspend }),
        1 => (0..GANGS).prop_map(Act::Remove),
        5 => (1_i64..40).prop_map(Act::Wait),
        1 => (400_i64..1000).prop_map(Act::Wait),
        1 => Just(Act::Restart),
    ]
}

/// A cluster with its controllers, and the books of what is owed.
struct Life {
    world: World,
    controllers: Controllers,
    owed: Owed,
    told: Vec<String>,
}

impl Life {
    fn new() -> Self {
        let mut world = World { moments: Some(Vec::new()), ..World::default() };
        for name in 0..NODES {
            world.node(&format!("n{name}"), "cpu=4000");
        }
        Self { world, controllers: Controllers::default(), owed: Owed::default(), told: Vec::new() }
    }

    /// Lets time pass; the controllers do what becomes due.
    fn wait(&mut self, seconds: i64) {
        let until = self.world.now + seconds;
        while let Some(due) = self.controllers.next_due().filter(|due| *due <= until) {
            self.world.pass((due - self.world.now).max(0));
            if !self.controllers.reconcile(&mut self.world) {
                // It is another's turn first: nothing comes of it by waiting.
                break;
            }
        }
        let rest = until - self.world.now;
        self.world.pass(rest);
    }

    fn pick(&self, pick: u16) -> Option<SharedStr> {
        let live: Vec<&PodSpec> = self.world.pods.values().filter(|pod| !pod.phase.ended()).collect();
        (!live.is_empty()).then(|| live[usize::from(pick) % live.len()].uid.clone())
    }

    fn play(&mut self, act: &Act) {
        self.told.push(format!("{act:?}"));
        let Self { world, controllers, .. } = self;
        match *act {
            Act::Node { name, cpu, ready, cordoned } => {
                world.node_with(&format!("n{name}"), &format!("cpu={}", u32::from(cpu) * 1000), |node| {
                    node.ready = ready;
                    node.unschedulable = cordoned;
                });
            }
            Act::NodeGone(name) => {
                let name: SharedStr = format!("n{name}").as_str().into();
                if world.nodes.remove(&name).is_some() {
                    world.step(vec![Event::NodeGone(name)]);
                }
            }
            Act::Drain(name) => controllers.drain(world, &format!("n{name}")),
            Act::Job { name, completions, parallelism, cpu, delay } => {
                let maker = Maker::Job { completions: completions.into(), parallelism: parallelism.into() };
                self.gang(name, maker, cpu, delay);
            }
            Act::Group { name, minimum, cpu, delay } => {
                self.gang(name, Maker::Group { minimum: minimum.into() }, cpu, delay);
            }
            Act::Single { name, cpu } => {
                let pod = format!("s{name}");
                if world.pods.values().all(|known| *known.name != *pod) {
                    world.pod(&pod, &format!("cpu={}", u32::from(cpu) * 1000));
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
            Act::End { pick, phase, for_good } => {
                // Only what runs can end.
                let running = self.pick(pick).filter(|uid| self.world.pods[uid].node.is_some());
                if let Some(uid) = running {
                    self.controllers.end(&mut self.world, &uid, phase, for_good);
                }
            }
            Act::Terminate { pick } => {
                if let Some(uid) = self.pick(pick).filter(|uid| !self.world.pods[uid].deleting) {
                    self.controllers.terminate(&mut self.world, &uid);
                }
            }
            Act::Delete { pick } => {
                if let Some(uid) = self.pick(pick) {
                    self.controllers.delete(&mut self.world, &uid);
                }
            }
            Act::Suspend { name, suspend } => controllers.suspend(world, &format!("g{name}"), suspend),
            Act::Remove(name) => controllers.remove(world, &format!("g{name}")),
            Act::Wait(seconds) => self.wait(seconds),
            Act::Restart => world.restart(),
        }
        self.controllers.reconcile(&mut self.world);
    }

    fn gang(&mut self, name: u8, maker: Maker, cpu: u16, delay: i64) {
        let name = format!("g{name}");
        if !self.controllers.gangs.contains_key(&name) {
            self.controllers.start(&mut self.world, &name, maker, u64::from(cpu) * 1000, delay);
        }
    }

    /// Compares everything that happened since with what is owed.
    fn check(&mut self) -> Result<(), TestCaseError> {
        for moment in self.world.moments.replace(Vec::new()).unwrap_or_default() {
            let wrong = self.owed.see(&moment);
            prop_assert!(
                wrong.is_empty(),
                "{}\nafter {}\n{}",
                wrong.join("\n"),
                self.told.join("\n      "),
                self.owed.tell(&moment)
            );
        }
        Ok(())
    }

    /// Without gangs nothing is kept: the first single Pod in the queue waits only where it does not fit.
    fn nothing_is_left(&mut self) -> Result<(), TestCaseError> {
        for name in self.controllers.gangs.keys().cloned().collect::<Vec<_>>() {
            self.controllers.remove(&mut self.world, &name);
        }
        self.world.pass(1000);
        self.check()?;
        let state = &self.world.state;
        let waiting = |pod: &&PodSpec| pod.node.is_none() && !pod.phase.ended() && !pod.deleting;
        let first =
            self.world.pods.values().filter(waiting).min_by_key(|pod| (pod.created, pod.name.clone()));
        let Some(first) = first else { return Ok(()) };
        let needs = first.needs.as_ref().unwrap();
        for node in state.inventory().nodes() {
            let open = node.spec.ready && !node.spec.unschedulable;
            let fits = needs.iter().all(|(name, amount)| amount == 0 || node.free.get(name) >= amount);
            prop_assert!(!(open && fits), "{} waits and fits {}", first.name, node.spec.name);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_started_gang_gets_what_it_is_owed(acts in prop::collection::vec(acts(), 1..90)) {
        let mut life = Life::new();
        for act in acts {
            life.play(&act);
            life.check()?;
        }
        life.nothing_is_left()?;
    }
}
