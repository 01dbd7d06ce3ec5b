//! Random lives of a cluster whose Pods have volumes, under an easy and a conservative queue: Pods are bound when all
//! their volumes are there and accessible, never beyond limits, and nothing is left behind.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::collections::BTreeSet;
use std::sync::Arc;

use fluxion_scheduler::constraint::volumes::{
    Claim, PersistentVolume, StorageClass, StorageKey, StorageObject,
};
use fluxion_scheduler::constraint::{Expression, Operator, PodSelector, PodTerm, PodTerms};
use fluxion_scheduler::event::Effect;
use fluxion_scheduler::model::{Phase, PodSpec, SharedStr};
use fluxion_scheduler::queue::{QueueConfig, QueuePolicy};
use fluxion_scheduler::state::{JobState, Settings};
use proptest::prelude::*;
use world::storage::{claim, labelled, limit, mounting, volume, waits};
use world::{World, in_group};

const DRIVER: &str = "csi.example";
/// A bound claim that only one Pod may use at a time.
const EXCLUSIVE: &str = "exclusive";
const NODES: [(&str, &str); 4] = [("n1", "a"), ("n2", "a"), ("n3", "b"), ("n4", "b")];

/// What the members of a gang mount.
#[derive(Clone, Copy, Debug)]
enum Mounts {
    /// A claim each, for which a volume is provisioned.
    New,
    /// A claim each, which gets an existing volume.
    Static,
    /// One such claim for all of them.
    Shared {
        existing: bool,
    },
    Exclusive,
    Nothing,
}

#[derive(Clone, Debug)]
enum Act {
    Gang {
        size: u8,
        cpu: u8,
        mounts: Mounts,
        apart: bool,
        limit: Option<u8>,
    },
    Foreign {
        node: u8,
    },
    Volume {
        size: u8,
        place: u8,
    },
    /// The controllers of one claim get on: a volume for the whole zone of the selected node, or only for the node.
    Serve {
        pick: u8,
        local: bool,
    },
    Fail(u8),
    End(u8),
    Delete(u8),
    Terminate(u8),
    Wait(u8),
    Restart,
}

fn acts() -> impl Strategy<Value = Act> {
    let mounts = prop_oneof![
        3 => Just(Mounts::New),
        3 => Just(Mounts::Static),
        2 => any::<bool>().prop_map(|existing| Mounts::Shared { existing }),
        1 => Just(Mounts::Exclusive),
        1 => Just(Mounts::Nothing),
    ];
    let gang = (1..4_u8, 0..4_u8, mounts, prop::bool::weighted(0.2), prop::option::of(1..200_u8));
    prop_oneof![
        6 => gang.prop_map(|(size, cpu, mounts, apart, limit)| Act::Gang { size, cpu, mounts, apart, limit }),
        1 => (0..4_u8).prop_map(|node| Act::Foreign { node }),
        4 => (5..20_u8, 0..8_u8).prop_map(|(size, place)| Act::Volume { size, place }),
        8 => (any::<u8>(), any::<bool>()).prop_map(|(pick, local)| Act::Serve { pick, local }),
        1 => any::<u8>().prop_map(Act::Fail),
        2 => any::<u8>().prop_map(Act::End),
        3 => any::<u8>().prop_map(Act::Delete),
        1 => any::<u8>().prop_map(Act::Terminate),
        2 => (1..120_u8).prop_map(Act::Wait),
        1 => Just(Act::Restart),
    ]
}

struct Life {
    world: World,
    /// Names that were given.
    number: usize,
    /// Number of effects that were looked at.
    seen: usize,
}

impl Life {
    fn new(policy: QueuePolicy, limits: [Option<u8>; 4]) -> Self {
        let queue = QueueConfig { policy, ..QueueConfig::default() };
        let mut world =
            World::new(Settings { queues: vec![queue], bind_deadline: 100, ..Settings::default() });
        for ((name, zone), most) in NODES.into_iter().zip(limits) {
            world.node_with(name, "cpu=4000", |node| {
                node.labels.insert("zone".into(), zone.into());
                node.labels.insert("host".into(), name.into());
            });
            if let Some(most) = most {
                world.set(limit(name, u32::from(most)));
            }
        }
        world.set(StorageObject::Class(waits("wait")));
        let provisioner = "kubernetes.io/no-provisioner".into();
        world.set(StorageObject::Class(StorageClass { provisioner, ..waits("static") }));
        let exclusive =
            Claim { modes: ["ReadWriteOncePod".into()].into(), class: "static".into(), ..claim(EXCLUSIVE) };
        world.set(StorageObject::Claim(exclusive.clone()));
        world.bind_claim(
            &exclusive,
            PersistentVolume { class: "static".into(), ..volume("pv-exclusive", 10) },
        );
        Self { world, number: 0, seen: 0 }
    }

    fn gang(&mut self, size: u8, cpu: u8, mounts: Mounts, (apart, limit): (bool, Option<u8>)) {
        let group = format!("g{}", self.number);
        let app = group.clone();
        for index in 0..size {
            let name = format!("{group}-{index}");
            let (claimed, existing) = match mounts {
                Mounts::New => (name.clone(), false),
                Mounts::Static => (name.clone(), true),
                Mounts::Shared { existing } => (format!("{group}-shared"), existing),
                Mounts::Exclusive => (EXCLUSIVE.to_owned(), true),
                Mounts::Nothing => (String::new(), false),
            };
            let key = StorageKey::Claim(("default".into(), claimed.as_str().into()));
            if !claimed.is_empty() && !self.world.storage.contains_key(&key) {
                let class = if existing { "static" } else { "wait" };
                self.world.set(StorageObject::Claim(Claim { class: class.into(), ..claim(&claimed) }));
            }
            self.world.pod_with(&name, &format!("cpu={}", u32::from(cpu) * 1000), |pod| {
                if !claimed.is_empty() {
                    mounting(&[&claimed])(pod);
                }
                in_group(&group, &size.to_string())(pod);
                pod.active_deadline = limit.map(i64::from);
                pod.labels.insert("app".into(), app.as_str().into());
                pod.terms = apart.then(|| Arc::new(keeps_apart(&app)));
            });
        }
    }

    fn play(&mut self, act: &Act) {
        self.number += 1;
        match *act {
            Act::Gang { size, cpu, mounts, apart, limit } => self.gang(size, cpu, mounts, (apart, limit)),
            Act::Foreign { node } => {
                self.world.pod_with(&format!("f{}", self.number), "cpu=1000", |pod| {
                    mounting(&[EXCLUSIVE])(pod);
                    pod.scheduler_name = "default-scheduler".into();
                    pod.node = Some(NODES[usize::from(node)].0.into());
                    pod.phase = Phase::Running;
                });
            }
            Act::Volume { size, place } => {
                let affinity = match place {
                    0..4 => Some(labelled("host", NODES[usize::from(place)].0)),
                    4 | 5 => Some(labelled("zone", if place == 4 { "a" } else { "b" })),
                    _ => None,
                };
                let free = volume(&format!("free-{}", self.number), u64::from(size));
                let free = PersistentVolume { class: "static".into(), affinity, ..free };
                self.world.set(StorageObject::Volume(free));
            }
            Act::Serve { pick, local } => self.serve(usize::from(pick), local),
            Act::Fail(pick) => {
                let selected: Vec<Claim> = self
                    .claims()
                    .filter(|claim| claim.selected.is_some() && claim.bound().is_none())
                    .collect();
                if let Some(claim) = selected.get(usize::from(pick) % selected.len().max(1)) {
                    self.world.provisioning_fails(&claim.name, "no space left");
                }
            }
            Act::End(pick) => {
                if let Some(name) = self.pick(pick) {
                    self.world.end_pod(&name, Phase::Succeeded);
                }
            }
            Act::Delete(pick) => {
                if let Some(name) = self.pick(pick) {
                    self.world.delete_pod(&name);
                }
            }
            Act::Terminate(pick) => {
                if let Some(name) = self.pick(pick) {
                    self.world.change_pod(&name, |pod| pod.deleting = true);
                }
            }
            Act::Wait(seconds) => self.world.pass(i64::from(seconds)),
            Act::Restart => self.world.restart(),
        }
    }

    fn pick(&self, pick: u8) -> Option<String> {
        let live: Vec<_> = self.world.pods.values().filter(|pod| !pod.phase.ended()).collect();
        live.get(usize::from(pick) % live.len().max(1)).map(|pod| pod.name.to_string())
    }

    fn claims(&self) -> impl Iterator<Item = Claim> {
        self.world.storage.values().filter_map(|object| match object {
            StorageObject::Claim(claim) => Some(claim.clone()),
            _ => None,
        })
    }

    fn volumes(&self) -> impl Iterator<Item = &PersistentVolume> {
        self.world.storage.values().filter_map(|object| match object {
            StorageObject::Volume(volume) => Some(volume),
            _ => None,
        })
    }

    /// The claims for which something was chosen, and the volume if it exists.
    fn begun(&self) -> Vec<(Claim, Option<PersistentVolume>)> {
        let waiting = self.claims().filter(|claim| claim.bound().is_none());
        let begun = waiting.filter_map(|claim| {
            let is_its = |volume: &&PersistentVolume| {
                volume.claimant.as_ref().is_some_and(|claimant| claimant.is(&claim))
            };
            let reserved = self.volumes().find(is_its).cloned();
            (reserved.is_some() || claim.selected.is_some()).then_some((claim, reserved))
        });
        begun.collect()
    }

    /// What the provisioner and the controller of `PersistentVolumes` do for one claim.
    fn serve(&mut self, pick: usize, local: bool) {
        let begun = self.begun();
        let Some((claim, reserved)) = begun.get(pick % begun.len().max(1)) else { return };
        match (reserved, &claim.selected) {
            (Some(volume), _) => self.world.bind_claim(claim, volume.clone()),
            (None, Some(node)) => {
                let zone = NODES.iter().find(|(name, _)| **name == **node).unwrap().1;
                let place = if local { ("host", &**node) } else { ("zone", zone) };
                self.world.provision(&claim.name, place);
            }
            (None, None) => {}
        }
    }

    /// The claims of Pods on nodes.
    fn mounted(&self) -> Vec<(&PodSpec, &SharedStr, Claim)> {
        let live = self.world.pods.values().filter(|pod| !pod.phase.ended());
        let placed = live.filter_map(|pod| Some((pod, pod.node.as_ref()?)));
        let claims = placed.flat_map(|(pod, node)| {
            let claims = pod.volumes.iter().flat_map(|volumes| &volumes.claims);
            claims.map(move |one| (pod, node, self.world.claim(&one.name).clone()))
        });
        claims.collect()
    }

    /// What the engine has bound since the last time: everything it needed was there.
    fn check(&mut self) -> Result<(), TestCaseError> {
        let bound: BTreeSet<SharedStr> = self.world.effects[self.seen..]
            .iter()
            .filter_map(|effect| match effect {
                Effect::Bind { pod, .. } => Some(pod.uid.clone()),
                _ => None,
            })
            .collect();
        self.seen = self.world.effects.len();
        let mounted = self.mounted();
        for (pod, node, claim) in mounted.iter().filter(|(pod, ..)| bound.contains(&pod.uid)) {
            let told = format!("{} on {node} with {}", pod.name, claim.name);
            prop_assert!(claim.bound().is_some(), "{told}, which has no volume");
            let volume = self.world.volume(claim.bound().unwrap());
            prop_assert!(is_accessible(volume, node), "{told}, to which {} is not accessible", volume.name);
            let others = mounted.iter().filter(|(other, ..)| other.uid != pod.uid);
            let users = others.filter(|(.., other)| other.name == claim.name).count();
            prop_assert!(!claim.exclusive() || users == 0, "{told}, which {users} others use");
            let on_node = mounted.iter().filter(|(_, on, _)| on == node);
            let handles: BTreeSet<_> =
                on_node.filter_map(|(.., claim)| self.world.volume(claim.bound()?).csi.clone()).collect();
            let Some(StorageObject::Node(drivers)) =
                self.world.storage.get(&StorageKey::Node((*node).clone()))
            else {
                continue;
            };
            let most = drivers.limits[DRIVER] as usize;
            prop_assert!(handles.len() <= most, "{told}: {} volumes, at most {most}", handles.len());
        }
        for job in self.world.state.jobs().filter(|job| job.state.waiting()) {
            let members = job.pods.iter().filter_map(|uid| self.world.pods.get(uid));
            let held =
                members.filter(|pod| pod.node.is_some() && !pod.phase.ended() && !pod.deleting).count();
            prop_assert_eq!(held, 0, "{} waits and holds nodes", job.key.display());
        }
        Ok(())
    }

    /// Everything that was begun comes to its end.
    fn comes_to_rest(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..200 {
            self.serve(0, false);
            self.world.pass(2);
            self.check()?;
        }
        let stuck = self.world.state.jobs().filter(|job| job.state == JobState::Binding);
        let stuck: Vec<String> = stuck.map(|job| job.key.display()).collect();
        prop_assert!(stuck.is_empty(), "still not bound: {stuck:?}");
        Ok(())
    }

    /// Without Pods, nothing is held or reserved.
    fn nothing_is_left(&mut self) -> Result<(), TestCaseError> {
        for name in self.world.pods.values().map(|pod| pod.name.to_string()).collect::<Vec<_>>() {
            self.world.delete_pod(&name);
        }
        self.world.pass(1000);
        for (claim, reserved) in self.begun() {
            let reserved = reserved.map(|volume| volume.name);
            prop_assert!(false, "{} still has {:?} or {:?}", claim.name, claim.selected, reserved);
        }
        for node in self.world.state.inventory().nodes() {
            prop_assert!(node.allocated.is_empty(), "{} still holds {}", node.spec.name, node.allocated);
        }
        Ok(())
    }
}

fn keeps_apart(app: &str) -> PodTerms {
    let expression = Expression { key: "app".into(), operator: Operator::In, values: vec![app.into()] };
    let namespaces = ["default".into()].into();
    let selector = PodSelector { namespaces, namespace_selector: None, labels: Some(vec![expression]) };
    let term = Arc::new(PodTerm { selector, topology: "host".into() });
    PodTerms { anti_affinity: vec![term], ..PodTerms::default() }
}

fn is_accessible(volume: &PersistentVolume, node: &str) -> bool {
    let zone = NODES.iter().find(|(name, _)| *name == node).unwrap().1;
    let expressions = volume.affinity.iter().flat_map(|terms| terms.iter()).flat_map(|term| &term.labels);
    expressions.into_iter().all(|one| {
        let value = if one.key.as_ref() == "host" { node } else { zone };
        one.values.iter().any(|wanted| **wanted == *value)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn pods_are_bound_where_their_volumes_are_and_nothing_is_left_behind(
        acts in prop::collection::vec(acts(), 1..60),
        conservative in any::<bool>(),
        limits in prop::array::uniform4(prop::option::of(0..4_u8)),
    ) {
        let policy = if conservative { QueuePolicy::Conservative } else { QueuePolicy::Easy };
        let mut life = Life::new(policy, limits);
        for act in &acts {
            life.play(act);
            life.check()?;
        }
        life.comes_to_rest()?;
        life.nothing_is_left()?;
    }
}
