//! Taking events: objects into the tables, what Pods hold into the inventory, and which jobs have to be
//! looked at again.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::event::Event;
use crate::inventory::{Allocation, AllocationKind};
use crate::job::JobId;
use crate::marks;
use crate::model::{GroupApi, GroupSpec, OwnerSpec, PodSpec, SharedStr};
use crate::small_set::SmallSet;
use crate::state::State;
use crate::state::membership::owner_key;
use crate::state::pod::needs;

impl State {
    pub(super) fn apply(&mut self, event: Event) {
        match event {
            Event::Node(spec) => {
                if !self.inventory.has_node(&spec.name) {
                    self.dirty.extend(self.inventory.jobs_on(&spec.name).map(JobId));
                }
                self.inventory.set_node(*spec);
            }
            Event::NodeGone(name) => {
                self.dirty.extend(self.inventory.jobs_on(&name).map(JobId));
                self.inventory.remove_node(&name);
            }
            Event::Pod(pod) => self.pod_changed(*pod),
            Event::PodGone(uid) => self.pod_gone(&uid),
            Event::Group(group) => self.group_changed(*group),
            Event::GroupGone(uid) => self.group_gone(&uid),
            Event::Owner(owner) => self.owner_changed(*owner),
            Event::OwnerGone(uid) => self.owner_gone(&uid),
            Event::Synced => {
                if !self.ready {
                    self.synced_at = self.now;
                    // What fell due while another one led.
                    self.timers.extend(self.assumed.values().map(|assumed| (self.now, assumed.job)));
                }
                (self.ready, self.whole) = (true, true);
                // Only now is a node that wasn't heard of one that is gone.
                self.dirty.extend(self.active.values());
                self.pass.wanted = true;
            }
            Event::Paused => (self.ready, self.whole) = (false, true),
            Event::Bound { pod, outcome } => self.bind_answered(&pod, outcome),
            Event::Cancelled { job, by } => self.cancel_asked(&job, &by),
            Event::Remembered(what) => self.remember(*what),
            Event::Tick => {}
        }
    }

    fn pod_changed(&mut self, mut pod: PodSpec) {
        let old = self.pods.get(&pod.uid).cloned();
        if old.as_deref() == Some(&pod) {
            return;
        }
        if let Some(old) = &old {
            self.unlink_pod(old);
            // The tables go on referring to these.
            (pod.uid, pod.name) = (old.uid.clone(), old.name.clone());
        }
        let uid = pod.uid.clone();
        let node = self.node_of(&pod);
        let pod = Arc::new(pod);
        self.link_pod(&pod);
        self.unbindable.remove(&uid);
        self.pods.insert(uid.clone(), pod.clone());
        self.book(&pod);
        self.regroup.insert(uid.clone());
        if let Some(job) = self.job_of_pod.get(&uid).copied() {
            if pod.phase.ended() && old.is_some_and(|old| !old.phase.ended()) {
                self.note_loss(job, &pod, node);
            }
            self.dirty.insert(job);
        }
    }

    fn pod_gone(&mut self, uid: &SharedStr) {
        let Some(pod) = self.pods.remove(uid) else { return };
        self.unlink_pod(&pod);
        let node = self.node_of(&pod);
        self.inventory.release(uid);
        self.assumed.remove(uid);
        self.told.remove(uid);
        self.unbindable.remove(uid);
        self.regroup.remove(uid);
        self.set_membership(uid, None);
        if let Some(job) = self.job_of_pod.remove(uid) {
            if !pod.phase.ended() {
                self.note_loss(job, &pod, node);
            }
            self.leave(job, &pod);
        }
        self.let_go.remove(uid);
    }

    /// Enters what the Pod holds into the inventory.
    fn book(&mut self, pod: &Arc<PodSpec>) {
        if pod.phase.ended() {
            self.seen_bound(pod);
            self.assumed.remove(&pod.uid);
            self.inventory.release(&pod.uid);
            return;
        }
        let ours = self.is_ours(pod);
        let (node, kind) = match (&pod.node, &pod.nominated) {
            (Some(node), _) => (node, if ours { AllocationKind::Bound } else { AllocationKind::Foreign }),
            (None, Some(node)) if !ours => (node, AllocationKind::Nominated),
            _ => {
                if !self.assumed.contains_key(&pod.uid) {
                    self.inventory.release(&pod.uid);
                }
                return;
            }
        };
        self.seen_bound(pod);
        // The same after a restart, so that what is assumed is the same too.
        let recorded = pod.record.as_ref().map(|record| record.start);
        let from = recorded.or(pod.scheduled_at).unwrap_or(pod.created);
        let permanent = is_permanent(pod);
        let (until, end_assumed) = self.release_of_pod(pod, from, permanent);
        let hold = Allocation {
            needs: needs(pod),
            ports: pod.ports.clone(),
            from,
            until,
            end_assumed,
            kind,
            permanent,
            job: self.job_of_pod.get(&pod.uid).map(|job| job.0),
        };
        self.inventory.hold(pod.uid.clone(), node, hold);
    }

    fn link_pod(&mut self, pod: &PodSpec) {
        if let Some(controller) = &pod.controller {
            link(&mut self.pods_of_owner, controller.uid.clone(), &pod.uid);
        }
        for key in group_references(pod) {
            link(&mut self.pods_of_group, key, &pod.uid);
        }
    }

    fn unlink_pod(&mut self, pod: &PodSpec) {
        if let Some(controller) = &pod.controller {
            unlink(&mut self.pods_of_owner, &controller.uid, &pod.uid);
        }
        for key in group_references(pod) {
            unlink(&mut self.pods_of_group, &key, &pod.uid);
        }
    }

    fn group_changed(&mut self, group: GroupSpec) {
        if self.groups.get(&group.uid).map(Arc::as_ref) == Some(&group) {
            return;
        }
        let key = (group.api, group.namespace.clone(), group.name.clone());
        self.group_names.insert(key.clone(), group.uid.clone());
        if let Some(level) = &group.topology {
            let levels = self.inventory.levels().iter().chain([level]).cloned().collect::<Vec<_>>();
            self.inventory.set_levels(levels);
        }
        self.groups.insert(group.uid.clone(), Arc::new(group));
        self.regroup_named(&key);
    }

    fn group_gone(&mut self, uid: &SharedStr) {
        let Some(group) = self.groups.remove(uid) else { return };
        self.told_groups.remove(uid);
        self.told_status.remove(uid);
        let key = (group.api, group.namespace.clone(), group.name.clone());
        if self.group_names.get(&key) == Some(uid) {
            self.group_names.remove(&key);
        }
        self.regroup_named(&key);
    }

    fn regroup_named(&mut self, key: &(GroupApi, SharedStr, SharedStr)) {
        if let Some(pods) = self.pods_of_group.get(key) {
            self.regroup.extend(pods.iter().cloned());
            self.dirty.extend(pods.iter().filter_map(|pod| self.job_of_pod.get(pod)));
        }
    }

    fn owner_changed(&mut self, owner: OwnerSpec) {
        let old = self.owners.get(&owner.uid).cloned();
        if old.as_deref() == Some(&owner) {
            return;
        }
        if let Some(controller) = old.as_ref().and_then(|old| old.controller.as_ref()) {
            unlink(&mut self.owners_of_owner, &controller.uid, &owner.uid);
        }
        if let Some(controller) = &owner.controller {
            link(&mut self.owners_of_owner, controller.uid.clone(), &owner.uid);
        }
        let uid = owner.uid.clone();
        self.dirty.extend(self.active.get(&owner_key(&owner)));
        self.owners.insert(uid.clone(), Arc::new(owner));
        self.regroup_owned(&uid);
    }

    fn owner_gone(&mut self, uid: &SharedStr) {
        let Some(owner) = self.owners.remove(uid) else { return };
        if let Some(controller) = &owner.controller {
            unlink(&mut self.owners_of_owner, &controller.uid, uid);
        }
        self.dirty.extend(self.active.get(&owner_key(&owner)));
        self.regroup_owned(uid);
    }

    /// Everything below an owner: its settings reach Pods through the owners in between.
    fn regroup_owned(&mut self, uid: &SharedStr) {
        let mut open = vec![uid.clone()];
        let mut seen = OrdSet::new();
        while let Some(uid) = open.pop() {
            if seen.insert(uid.clone()).is_some() {
                continue;
            }
            if let Some(pods) = self.pods_of_owner.get(&uid) {
                self.regroup.extend(pods.iter().cloned());
            }
            open.extend(self.owners_of_owner.get(&uid).into_iter().flatten().cloned());
        }
    }
}

/// Pods that come with the node: an empty cluster has them too.
fn is_permanent(pod: &PodSpec) -> bool {
    let owned_by = |kind: &str| pod.controller.as_ref().is_some_and(|controller| &*controller.kind == kind);
    owned_by("DaemonSet") || owned_by("Node") || pod.annotations.contains_key("kubernetes.io/config.mirror")
}

fn group_references(pod: &PodSpec) -> impl Iterator<Item = (GroupApi, SharedStr, SharedStr)> {
    let native = pod.scheduling_group.clone().map(|name| (GroupApi::Native, name));
    let scheduler_plugins = marks::find(pod, &marks::SCHEDULER_PLUGINS_GROUP)
        .map(|(_, name)| (GroupApi::SchedulerPlugins, name.clone()));
    let namespace = pod.namespace.clone();
    native.into_iter().chain(scheduler_plugins).map(move |(api, name)| (api, namespace.clone(), name))
}

fn link<K: Ord + Clone>(map: &mut OrdMap<K, SmallSet<SharedStr>>, key: K, uid: &SharedStr) {
    map.entry(key).or_default().insert(uid.clone());
}

fn unlink<K: Ord + Clone>(map: &mut OrdMap<K, SmallSet<SharedStr>>, key: &K, uid: &SharedStr) {
    if let Some(set) = map.get_mut(key) {
        set.remove(uid);
        if set.is_empty() {
            map.remove(key);
        }
    }
}
