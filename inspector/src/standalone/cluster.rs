//! The cluster that is not there: objects, controllers and virtual kubelets, stepped by hand.
//!
//! Whoever owns it tells it what is wanted and what time it is; what changed comes back, to be written down and
//! told to the engine. Nothing in here waits, writes or decides about placement.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fluxion_core::event::{BindOutcome, GroupStatus, LET_GO};
use fluxion_core::model::{AllocationRecord, ObjectRef};
use k8s_openapi::api::core::v1::Pod;

use super::controllers::{Wish, job, replicas};
use super::kubelet::{self, Step};
use super::object::Object;
use super::store::{Change, Store, StoreError, Uid, controller_uid};
use crate::kube::translate::ALLOCATION;

/// See the module.
#[derive(Debug)]
pub struct Cluster {
    store: Store,
    /// When something happens by itself, and to whom.
    timers: BTreeSet<(i64, Uid)>,
    timer_of: BTreeMap<Uid, i64>,
    /// Scheduler names that are ours.
    ours: Vec<Arc<str>>,
    /// Seconds that ended Jobs and Pods are kept.
    keep_ended: i64,
    /// Changed since the last [`Cluster::settle`], and already looked at by the controllers.
    settled: BTreeMap<Uid, Change>,
}

impl Cluster {
    /// An empty one.
    pub fn new(ours: Vec<Arc<str>>, keep_ended: i64) -> Self {
        Self {
            store: Store::default(),
            timers: BTreeSet::new(),
            timer_of: BTreeMap::new(),
            ours,
            keep_ended,
            settled: BTreeMap::new(),
        }
    }

    /// Puts back what a journal kept. Timers that were due meanwhile fire at the next [`Cluster::settle`].
    pub fn restore(&mut self, objects: Vec<Object>) {
        let mut uids = Vec::with_capacity(objects.len());
        for object in objects {
            uids.push(Uid::from(object.uid()));
            self.store.restore(object);
        }
        for uid in &uids {
            self.set_timer(uid);
        }
    }

    /// The objects.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Takes a new object in.
    pub fn create(&mut self, object: Object, now: i64) -> Result<Uid, StoreError> {
        self.store.create(object, now, &self.ours)
    }

    /// Checks an object as far as that does not depend on others.
    pub fn check(&self, object: &Object, now: i64) -> Result<(), StoreError> {
        Store::check(object, now, &self.ours)
    }

    /// Replaces what a Node says, keeping its identity.
    pub fn replace_node(&mut self, uid: &str, mut new: Object, now: i64) -> Result<(), StoreError> {
        self.check(&new, now)?;
        self.store.update(uid, |object| {
            let old = object.meta();
            let (uid, created) = (old.uid.clone(), old.creation_timestamp.clone());
            new.meta_mut().uid = uid;
            new.meta_mut().creation_timestamp = created;
            *object = new;
        });
        Ok(())
    }

    /// Deletes an object and what it owns, as with propagation in the background.
    pub fn delete(&mut self, uid: &str, now: i64) {
        self.store.delete(uid, now);
    }

    /// Puts a Pod on a node, as the API server does with a Binding.
    pub fn bind(&mut self, pod: &ObjectRef, node: &str, record: &AllocationRecord, now: i64) -> BindOutcome {
        let Some(Object::Pod(known)) = self.store.get(&pod.uid) else {
            return BindOutcome::Gone("there is no such Pod any more".into());
        };
        if known.metadata.deletion_timestamp.is_some() {
            return BindOutcome::Gone("the Pod is being deleted".into());
        }
        match known.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) {
            Some(there) if there == node => return BindOutcome::Done,
            Some(there) => return BindOutcome::Elsewhere(there.into()),
            None => {}
        }
        let record = match serde_json::to_string(record) {
            Ok(record) => record,
            Err(error) => return BindOutcome::Refused(format!("its allocation record: {error}").into()),
        };
        self.store.update(&pod.uid, |object| {
            let Object::Pod(pod) = object else { return };
            pod.metadata.annotations.get_or_insert_default().insert(ALLOCATION.to_owned(), record);
            pod.spec.get_or_insert_default().node_name = Some(node.to_owned());
            let status = pod.status.get_or_insert_default();
            kubelet::set_condition(status, "PodScheduled", true, None, now);
        });
        BindOutcome::Done
    }

    /// Writes PodScheduled=False on a Pod that waits.
    pub fn unscheduled(&mut self, pod: &ObjectRef, reason: &str, message: &str, now: i64) {
        self.store.update(&pod.uid, |object| {
            let Object::Pod(pod) = object else { return };
            if pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none()) {
                let status = pod.status.get_or_insert_default();
                kubelet::set_condition(status, "PodScheduled", false, Some((reason, message)), now);
            }
        });
    }

    /// Marks a Pod as disrupted and deletes it, as the API server does with an eviction.
    pub fn evict(&mut self, pod: &ObjectRef, why: &str, now: i64) {
        self.store.update(&pod.uid, |object| {
            let Object::Pod(pod) = object else { return };
            let status = pod.status.get_or_insert_default();
            kubelet::set_condition(status, "DisruptionTarget", true, Some((LET_GO, why)), now);
        });
        self.store.delete(&pod.uid, now);
    }

    /// Writes on a PodGroup whether its gang was scheduled.
    pub fn group_scheduled(&mut self, group: &ObjectRef, scheduled: bool, why: (&str, &str), now: i64) {
        self.store.update(&group.uid, |object| {
            let Object::PodGroup(group) = object else { return };
            super::feed::set_group_scheduled(group, scheduled, why, now);
        });
    }

    /// Writes the status of a PodGroup of scheduling.x-k8s.io.
    pub fn group_status(&mut self, group: &ObjectRef, status: &GroupStatus, now: i64) {
        self.store.update(&group.uid, |object| {
            let Object::PodGroup(group) = object else { return };
            super::feed::set_group_status(group, status, now);
        });
    }

    /// When something happens by itself next (epoch seconds).
    pub fn next_due(&self) -> Option<i64> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// Lets everything happen that follows from what was done and is due by `now`; what changed since the last
    /// call comes back, each object once, in order of uid.
    pub fn settle(&mut self, now: i64) -> Vec<Change> {
        let mut at = i64::MIN;
        loop {
            let controllers = self.notice();
            if controllers.is_empty() {
                let Some(due) = self.next_due().filter(|due| *due <= now) else { break };
                // What was due while nobody looked happens at its own time, one thing after the other.
                at = at.max(due);
                self.fire(due, at);
            } else {
                let at = if at == i64::MIN { now } else { at };
                for uid in &controllers {
                    self.reconcile(uid, at);
                }
            }
        }
        std::mem::take(&mut self.settled).into_values().collect()
    }

    /// Sets the timers of what changed, and names the controllers that have to look at it.
    fn notice(&mut self) -> BTreeSet<Uid> {
        let mut controllers = BTreeSet::new();
        for change in self.store.take_changes() {
            let (uid, object) = match &change {
                Change::Set(uid) => (uid.clone(), self.store.get(uid)),
                Change::Gone(object) => (Uid::from(object.uid()), Some(&**object)),
            };
            let Some(object) = object else { continue };
            controllers.extend(controller_uid(object));
            if !matches!(
                object,
                Object::Pod(_) | Object::Node(_) | Object::PodGroup(_) | Object::PriorityClass(_)
            ) {
                controllers.insert(uid.clone());
            }
            self.set_timer(&uid);
            self.settled.insert(uid, change);
        }
        controllers
    }

    fn set_timer(&mut self, uid: &Uid) {
        if let Some(due) = self.timer_of.remove(uid) {
            self.timers.remove(&(due, uid.clone()));
        }
        let due = self.store.get(uid).and_then(|object| match object {
            Object::Pod(pod) => {
                let controller = self.store.controller_of(object);
                kubelet::next(pod, controller, self.keep_ended).map(|(due, _)| due)
            }
            Object::Job(job) => job::due(job, self.keep_ended),
            _ => None,
        });
        if let Some(due) = due {
            self.timers.insert((due, uid.clone()));
            self.timer_of.insert(uid.clone(), due);
        }
    }

    /// Everything that is due at `due` happens, at the time `at`.
    fn fire(&mut self, due: i64, at: i64) {
        while let Some((first, uid)) = self.timers.first().cloned().filter(|(first, _)| *first <= due) {
            self.timers.remove(&(first, uid.clone()));
            self.timer_of.remove(&uid);
            match self.store.get(&uid) {
                Some(object @ Object::Pod(pod)) => {
                    let controller = self.store.controller_of(object);
                    match kubelet::next(pod, controller, self.keep_ended) {
                        Some((_, Step::Remove)) => self.store.remove(&uid),
                        Some((_, step)) => self.store.update(&uid, |object| {
                            let Object::Pod(pod) = object else { return };
                            kubelet::apply(step, pod, at);
                        }),
                        None => {}
                    }
                }
                Some(Object::Job(job)) => {
                    if job.status.as_ref().and_then(job::ended_since).is_some() {
                        self.store.delete(&uid, at);
                    } else {
                        self.reconcile(&uid, at);
                    }
                }
                _ => {}
            }
        }
    }

    fn reconcile(&mut self, uid: &Uid, at: i64) {
        let Some(owner) = self.store.get(uid) else { return };
        if owner.meta().deletion_timestamp.is_some() {
            return;
        }
        let pods: Vec<&Pod> = self
            .store
            .owned_by(uid)
            .filter_map(|object| if let Object::Pod(pod) = object { Some(&**pod) } else { None })
            .collect();
        let wish = match owner {
            Object::Job(job) => job::reconcile(job, &pods, at),
            Object::ReplicaSet(set) => replicas::replica_set(set, &pods),
            Object::StatefulSet(set) => replicas::stateful_set(set, &pods),
            Object::Deployment(deployment) => {
                replicas::deployment(deployment, self.store.owned_by(uid).count())
            }
            _ => Wish::default(),
        };
        for object in wish.create {
            if let Err(error) = self.create(object, at) {
                tracing::warn!(owner = %super::store::called_of(&self.store, uid), %error, "no Pod made");
                break;
            }
        }
        wish.delete.iter().for_each(|pod| self.store.delete(pod, at));
        if let Some(new) = wish.owner {
            self.store.update(uid, |object| *object = new);
        }
    }
}

#[cfg(test)]
mod tests;
