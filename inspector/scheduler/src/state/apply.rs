//! Processes events: stores objects, records allocations in the inventory, and determines which jobs have to be
//! evaluated again.

use std::sync::Arc;

use crate::event::Event;
use crate::inventory::{Allocation, AllocationKind};
use crate::job::JobId;
use crate::model::{GroupSpec, OwnerSpec, PodSpec, SharedStr};
use crate::state::State;
use crate::state::delivered::GroupName;
use crate::state::membership::owner_key;
use crate::state::pod::needs;

impl State {
    pub(super) fn apply(&mut self, event: Event) {
        match event {
            Event::Node(spec) => {
                if !self.inventory.has_node(&spec.name) {
                    self.work.dirty.extend(self.inventory.jobs_on(&spec.name).map(JobId));
                }
                self.inventory.set_node(*spec);
            }
            Event::NodeGone(name) => {
                self.work.dirty.extend(self.inventory.jobs_on(&name).map(JobId));
                self.inventory.remove_node(&name);
            }
            Event::Pod(pod) => self.pod_changed(*pod),
            Event::PodGone(uid) => self.pod_gone(&uid),
            Event::Group(group) => self.group_changed(*group),
            Event::GroupGone(uid) => self.group_gone(&uid),
            Event::Owner(owner) => self.owner_changed(*owner),
            Event::OwnerGone(uid) => self.owner_gone(&uid),
            Event::OwnersObserved { group, kind, observed } => {
                self.work.regroup.extend(self.delivered.observe(group, kind, observed));
            }
            Event::CreationFailed { namespace, owner, why, at } => {
                self.creation_failed(namespace, owner, &why, at);
            }
            Event::Namespace { name, labels } => self.namespace_changed(&name, Some(labels)),
            Event::NamespaceGone(name) => self.namespace_changed(&name, None),
            Event::Synced => {
                if !self.ready {
                    self.synced_at = self.now;
                    // Another inspector may have kept others in the meantime.
                    self.expect_stored();
                    // What became due while another inspector was the leader.
                    for assumed in self.bindings.all_assumed() {
                        self.waiting.look_at(self.now, assumed.job);
                    }
                }
                (self.ready, self.whole) = (true, true);
                // Only now is a node that was not received known to be deleted.
                self.work.dirty.extend(self.belonging.all_active());
                self.pass.wanted = true;
            }
            Event::Paused => (self.ready, self.whole) = (false, true),
            Event::Bound { pod, outcome } => self.bind_answered(&pod, outcome),
            Event::Storage(object) => self.storage_set(*object),
            Event::StorageGone(key) => self.storage_gone(&key),
            Event::StorageWritten { object, outcome } => self.storage_answered(&object, &outcome),
            Event::Resumed { object, outcome } => self.resume_answered(&object, outcome),
            Event::Cancelled { job, by } => self.cancel_asked(&job, &by),
            Event::CancelStarted { job, by } => {
                self.record_cancel(&job, &by);
            }
            Event::CancelFailed { job, by } => self.cancel_failed(&job, &by),
            Event::Remembered(what) => self.remember(*what),
            Event::Tick => {}
        }
    }

    fn pod_changed(&mut self, mut pod: PodSpec) {
        let old = self.delivered.pod(&pod.uid).cloned();
        if old.as_deref() == Some(&pod) {
            return;
        }
        if let Some(old) = &old {
            // The tables keep referring to these.
            (pod.uid, pod.name) = (old.uid.clone(), old.name.clone());
        }
        let uid = pod.uid.clone();
        let node = self.node_of(&pod);
        let pod = Arc::new(pod);
        if let Some(old) = &old {
            self.note_removed_gate(old, &pod);
        }
        self.note_terms(old.as_deref(), Some(&pod));
        self.note_mounts(old.as_deref(), Some(&pod));
        self.bindings.seen(&uid);
        self.delivered.put_pod(pod.clone());
        self.book(&pod);
        self.work.regroup.insert(uid.clone());
        if old.is_none()
            && let Some(controller) = &pod.controller
        {
            self.note_created(&controller.uid);
        }
        if let Some(job) = self.belonging.job_of(&uid) {
            if pod.phase.ended() && old.is_some_and(|old| !old.phase.ended()) {
                self.note_loss(job, &pod, node);
            }
            self.work.dirty.insert(job);
        }
    }

    fn pod_gone(&mut self, uid: &SharedStr) {
        let Some(pod) = self.delivered.take_pod(uid) else { return };
        let node = self.node_of(&pod);
        self.note_terms(Some(&pod), None);
        self.note_mounts(Some(&pod), None);
        self.inventory.release(uid);
        self.drop_assumed(uid);
        self.bindings.seen(uid);
        self.announced.forget_pod(uid);
        self.work.regroup.remove(uid);
        self.set_membership(uid, None);
        if let Some(job) = self.belonging.unassign(uid) {
            if !pod.phase.ended() {
                self.note_loss(job, &pod, node);
            }
            self.leave(job, &pod);
        }
        self.bindings.forget(uid);
    }

    /// Records the Pod's allocation in the inventory.
    fn book(&mut self, pod: &Arc<PodSpec>) {
        if pod.phase.ended() {
            self.seen_bound(pod);
            self.drop_assumed(&pod.uid);
            self.inventory.release(&pod.uid);
            return;
        }
        let ours = self.is_ours(pod);
        let (node, kind) = match (&pod.node, &pod.nominated) {
            (Some(node), _) => (node, if ours { AllocationKind::Bound } else { AllocationKind::Foreign }),
            (None, Some(node)) if !ours => (node, AllocationKind::Nominated),
            _ => {
                if !self.bindings.is_assumed(&pod.uid) {
                    self.inventory.release(&pod.uid);
                }
                return;
            }
        };
        self.seen_bound(pod);
        // The same after a restart, so that assumed ends are the same too.
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
            job: self.belonging.job_of(&pod.uid).map(|job| job.0),
            peer: Some(Arc::new(pod.peer())),
        };
        self.inventory.hold(pod.uid.clone(), node, hold);
    }

    fn group_changed(&mut self, group: GroupSpec) {
        if self.delivered.group(&group.uid).map(Arc::as_ref) == Some(&group) {
            return;
        }
        if let Some(level) = &group.topology {
            let levels = self.inventory.levels().iter().chain([level]).cloned().collect::<Vec<_>>();
            self.inventory.set_levels(levels);
        }
        let name = self.delivered.put_group(group);
        self.regroup_named(&name);
    }

    fn group_gone(&mut self, uid: &SharedStr) {
        let Some(name) = self.delivered.take_group(uid) else { return };
        self.announced.forget_group(uid);
        self.regroup_named(&name);
    }

    fn regroup_named(&mut self, name: &GroupName) {
        for pod in self.delivered.pods_of_group(name) {
            self.work.regroup.insert(pod.clone());
            self.work.dirty.extend(self.belonging.job_of(pod));
        }
    }

    fn owner_changed(&mut self, owner: OwnerSpec) {
        if self.delivered.owner(&owner.uid).map(Arc::as_ref) == Some(&owner) {
            return;
        }
        let uid = owner.uid.clone();
        self.work.dirty.extend(self.belonging.active(&owner_key(&owner)));
        self.delivered.put_owner(owner);
        self.note_queued(&uid);
        self.look_at_owner(&uid);
        // Its settings apply to Pods through the owners in between.
        self.work.regroup.extend(self.delivered.pods_below(&uid));
    }

    fn owner_gone(&mut self, uid: &SharedStr) {
        let below = self.delivered.pods_below(uid);
        self.owner_has_gone(uid);
        self.note_queued(uid);
        let Some(owner) = self.delivered.take_owner(uid) else { return };
        self.work.dirty.extend(self.belonging.active(&owner_key(&owner)));
        self.work.regroup.extend(below);
    }
}

/// Pods that always run on the node: they also exist in an empty cluster.
fn is_permanent(pod: &PodSpec) -> bool {
    let owned_by = |kind: &str| pod.controller.as_ref().is_some_and(|controller| &*controller.kind == kind);
    owned_by("DaemonSet") || owned_by("Node") || pod.annotations.contains_key("kubernetes.io/config.mirror")
}
