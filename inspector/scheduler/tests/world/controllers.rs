//! Controllers around the engine, as kube-controller-manager has them: they make Pods, make them again after a
//! delay, count what succeeded and what failed for good, suspend, and drain nodes.

use std::collections::{BTreeMap, BTreeSet};

use fluxion_scheduler::event::Event;
use fluxion_scheduler::model::{ControllerRef, OwnerDetail, Phase, PodSpec, SharedStr};

use super::World;

/// What makes a gang's members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Maker {
    /// An Indexed Job: `parallelism` at a time until `completions` have succeeded or failed for good.
    Job { completions: u32, parallelism: u32 },
    /// A native PodGroup over Pods that somebody makes again under the same name.
    Group { minimum: u32 },
}

/// One gang and its controller's own memory.
#[derive(Clone, Debug)]
pub struct Gang {
    pub name: String,
    pub maker: Maker,
    /// Of each member, in milli-units.
    pub cpu: u64,
    /// Seconds from a member's end to its replacement.
    pub delay: i64,
    pub suspended: bool,
    pub going: bool,
    succeeded: BTreeSet<u32>,
    failed: BTreeSet<u32>,
    /// Index to the time at which its next Pod may be made.
    due: BTreeMap<u32, i64>,
    made: u32,
    controller: Option<ControllerRef>,
}

impl Gang {
    /// How many members must be there together, as its makers say it.
    pub fn minimum(&self) -> u32 {
        match self.maker {
            Maker::Job { parallelism, .. } => parallelism,
            Maker::Group { minimum } => minimum,
        }
    }

    /// How many members can still be made, those that are there included; `None` when there is no end.
    pub fn creatable(&self) -> Option<u32> {
        let Maker::Job { completions, .. } = self.maker else { return None };
        Some(completions - u32::try_from(self.succeeded.len() + self.failed.len()).unwrap())
    }

    /// Whether the Pod is a member.
    pub fn has(&self, pod: &PodSpec) -> bool {
        pod.name.strip_prefix(&*self.name).is_some_and(|rest| rest.starts_with('-'))
    }
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Controllers {
    pub gangs: BTreeMap<String, Gang>,
}

impl Controllers {
    /// Makes the gang's objects and its first Pods.
    pub fn start(&mut self, world: &mut World, name: &str, maker: Maker, cpu: u64, delay: i64) {
        let controller = match maker {
            Maker::Job { completions, parallelism } => {
                Some(world.job_object(name, parallelism.into(), completions.into(), true))
            }
            Maker::Group { minimum } => {
                world.group(name, Some(minimum.into()), None);
                None
            }
        };
        let gang = Gang {
            name: name.to_owned(),
            maker,
            cpu,
            delay,
            suspended: false,
            going: false,
            succeeded: BTreeSet::new(),
            failed: BTreeSet::new(),
            due: BTreeMap::new(),
            made: 0,
            controller,
        };
        self.gangs.insert(name.to_owned(), gang);
        self.reconcile(world);
    }

    /// Does what is due now; whether anything was done.
    pub fn reconcile(&mut self, world: &mut World) -> bool {
        let mut done = false;
        for name in self.gangs.keys().cloned().collect::<Vec<_>>() {
            while let Some(index) = self.next(world, &name) {
                self.make(world, &name, index);
                done = true;
            }
        }
        done
    }

    /// When something is due next.
    pub fn next_due(&self) -> Option<i64> {
        let open = self.gangs.values().filter(|gang| !gang.suspended && !gang.going);
        open.flat_map(|gang| gang.due.values().copied()).min()
    }

    /// The next index that needs a Pod now.
    fn next(&self, world: &World, name: &str) -> Option<u32> {
        let gang = &self.gangs[name];
        if gang.suspended || gang.going {
            return None;
        }
        let live: BTreeSet<u32> = world
            .pods
            .values()
            .filter(|pod| gang.has(pod) && !pod.phase.ended() && !pod.deleting)
            .filter_map(index_of)
            .collect();
        let (all, at_once) = match gang.maker {
            Maker::Job { completions, parallelism } => (completions, parallelism),
            Maker::Group { minimum } => (minimum, minimum),
        };
        // One that is to be made again keeps its turn.
        let turns = (0..all).filter(|index| !gang.succeeded.contains(index) && !gang.failed.contains(index));
        let wanted: Vec<u32> = turns.take(at_once as usize).collect();
        let due = |index: &u32| gang.due.get(index).is_none_or(|at| *at <= world.now);
        wanted.into_iter().find(|index| !live.contains(index) && due(index))
    }

    fn make(&mut self, world: &mut World, name: &str, index: u32) {
        let gang = self.gangs.get_mut(name).unwrap();
        gang.due.remove(&index);
        let number = gang.made;
        gang.made += 1;
        let (controller, cpu) = (gang.controller.clone(), gang.cpu);
        let native = matches!(gang.maker, Maker::Group { .. });
        let pod = world.make_pod(&format!("{name}-{index}-{number}"), &format!("cpu={cpu}"), |pod| {
            pod.controller = controller;
            pod.scheduling_group = native.then(|| name.into());
        });
        world.step(vec![Event::Pod(Box::new(pod))]);
    }

    /// A Pod ends; its controller hears of it in the same moment.
    pub fn end(&mut self, world: &mut World, pod: &SharedStr, phase: Phase, for_good: bool) {
        let known = world.pods.get_mut(pod).unwrap();
        known.phase = phase;
        let known = known.clone();
        let mut events = vec![Event::Pod(Box::new(known.clone()))];
        events.extend(self.hear(world, &known, for_good));
        world.step(events);
    }

    /// A Pod is told to go; it still holds its share.
    pub fn terminate(&mut self, world: &mut World, pod: &SharedStr) {
        let known = world.pods.get_mut(pod).unwrap();
        known.deleting = true;
        let known = known.clone();
        self.delay(world.now, &known);
        world.step(vec![Event::Pod(Box::new(known))]);
    }

    /// A Pod's object goes.
    pub fn delete(&mut self, world: &mut World, pod: &SharedStr) {
        let known = world.pods.remove(pod).unwrap();
        if !known.phase.ended() && !known.deleting {
            self.delay(world.now, &known);
        }
        world.step(vec![Event::PodGone(pod.clone())]);
    }

    /// The owner of the gang is suspended, and its Pods go; or it is resumed.
    pub fn suspend(&mut self, world: &mut World, name: &str, suspend: bool) {
        let Some(gang) = self.gangs.get_mut(name) else { return };
        if gang.controller.is_none() || gang.going || gang.suspended == suspend {
            return;
        }
        gang.suspended = suspend;
        gang.due.clear();
        world.change_owner(name, |owner| {
            let OwnerDetail::Job { suspended, .. } = &mut owner.detail else { panic!("a Job") };
            *suspended = suspend;
        });
        if suspend {
            self.remove_members(world, name);
        }
    }

    /// The objects that made the gang go, then its Pods.
    pub fn remove(&mut self, world: &mut World, name: &str) {
        let Some(gang) = self.gangs.get_mut(name).filter(|gang| !gang.going) else { return };
        gang.going = true;
        if gang.controller.is_some() {
            world.change_owner(name, |owner| owner.deleting = true);
        } else {
            let group = world.groups.values_mut().find(|group| &*group.name == name).unwrap();
            group.deleting = true;
            let group = group.clone();
            world.step(vec![Event::Group(Box::new(group))]);
        }
        self.remove_members(world, name);
        let owner: SharedStr = format!("job-{name}").as_str().into();
        if world.owners.remove(&owner).is_some() {
            world.step(vec![Event::OwnerGone(owner)]);
        }
        let group: SharedStr = format!("pg-{name}").as_str().into();
        if world.groups.remove(&group).is_some() {
            world.step(vec![Event::GroupGone(group)]);
        }
    }

    /// Cordons the node and evicts what is on it.
    pub fn drain(&mut self, world: &mut World, node: &str) {
        let Some(spec) = world.nodes.get_mut(node) else { return };
        spec.unschedulable = true;
        let spec = spec.clone();
        world.step(vec![Event::Node(Box::new(spec))]);
        let on_it = |pod: &&PodSpec| pod.node.as_deref() == Some(node) && !pod.phase.ended();
        let uids: Vec<SharedStr> = world.pods.values().filter(on_it).map(|pod| pod.uid.clone()).collect();
        for uid in &uids {
            if !world.pods[uid].deleting {
                self.terminate(world, uid);
            }
        }
        for uid in &uids {
            self.delete(world, uid);
        }
    }

    fn remove_members(&mut self, world: &mut World, name: &str) {
        let gang = &self.gangs[name];
        let uids: Vec<SharedStr> = world
            .pods
            .values()
            .filter(|pod| gang.has(pod) && !pod.phase.ended())
            .map(|pod| pod.uid.clone())
            .collect();
        for uid in uids {
            self.delete(world, &uid);
        }
        self.gangs.get_mut(name).unwrap().due.clear();
    }

    /// What follows from a Pod's end for its owner.
    fn hear(&mut self, world: &mut World, pod: &PodSpec, for_good: bool) -> Option<Event> {
        let gang = self.gangs.values_mut().find(|gang| gang.has(pod))?;
        let index = index_of(pod)?;
        let bare = gang.controller.is_none();
        if pod.phase == Phase::Failed && (bare || !for_good) {
            self.delay(world.now, pod);
            return None;
        }
        if bare {
            // Nobody makes again what has done its work.
            gang.succeeded.insert(index);
            return None;
        }
        // Of two Pods of one index, an old one that was going and its replacement, the first to end decides.
        if gang.succeeded.contains(&index) || gang.failed.contains(&index) {
            return None;
        }
        if pod.phase == Phase::Succeeded {
            gang.succeeded.insert(index);
        } else {
            gang.failed.insert(index);
        }
        let (done, lost) = (gang.succeeded.len(), gang.failed.len());
        let owner = world.owners.values_mut().find(|owner| *owner.name == *gang.name)?;
        let OwnerDetail::Job { succeeded, failed_indexes, complete, failed, .. } = &mut owner.detail else {
            panic!("a Job")
        };
        (*succeeded, *failed_indexes) = (i64::try_from(done).unwrap(), i64::try_from(lost).unwrap());
        if gang.creatable() == Some(0) {
            if lost == 0 { *complete = true } else { *failed = Some("FailedIndexes".into()) }
        }
        Some(Event::Owner(Box::new(owner.clone())))
    }

    /// A member is gone for now: its index waits for the delay.
    fn delay(&mut self, now: i64, pod: &PodSpec) {
        if let Some(gang) = self.gangs.values_mut().find(|gang| gang.has(pod))
            && let Some(index) = index_of(pod)
        {
            gang.due.insert(index, now + gang.delay);
        }
    }
}

/// `NAME-INDEX-NUMBER`.
fn index_of(pod: &PodSpec) -> Option<u32> {
    pod.name.rsplit('-').nth(1)?.parse().ok()
}
