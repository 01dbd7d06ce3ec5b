//! The virtual cluster: objects, controllers and kubelets, advanced explicitly.
//!
//! Its owner passes in requests and the time; changes are returned, to be written to the journal and sent to the
//! engine. Nothing in here waits, writes to disk or affects placement.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fluxion_scheduler::event::{BindOutcome, GroupStatus, LET_GO};
use fluxion_scheduler::marks::{ADMISSION, RESUMED};
use fluxion_scheduler::model::{AllocationRecord, ObjectRef, ReservationRecord};

use super::controllers::{Actions, job, replicas};
use super::kubelet::{self, Step};
use super::metadata::Uid;
use super::object::Object;
use super::packed::Packed;
use super::store::{Change, Store, StoreError};
use crate::kube::pin;
use crate::kube::translate::{ALLOCATION, reservation};

/// [`Cluster::settle`] stops after this many changes, so that each transaction is small.
pub const CHANGES_MAX: usize = 4096;

/// See the module documentation.
#[derive(Debug)]
pub struct Cluster {
    store: Store,
    /// Timers, and the objects that they are for.
    timers: BTreeSet<(i64, Uid)>,
    timer_of: BTreeMap<Uid, i64>,
    /// Our scheduler names.
    ours: Vec<Arc<str>>,
    /// Seconds that finished Jobs and Pods are kept.
    keep_ended: i64,
    /// Changes since the last [`Cluster::settle`].
    settled: BTreeMap<Uid, Change>,
    /// Controllers that have to be reconciled.
    open: BTreeSet<Uid>,
    /// The time reached by a series of calls that stopped early.
    at: Option<i64>,
}

impl Cluster {
    /// An empty cluster.
    pub fn new(ours: Vec<Arc<str>>, keep_ended: i64) -> Self {
        Self {
            store: Store::default(),
            timers: BTreeSet::new(),
            timer_of: BTreeMap::new(),
            ours,
            keep_ended,
            settled: BTreeMap::new(),
            open: BTreeSet::new(),
            at: None,
        }
    }

    /// Restores an object from the journal; [`Cluster::restored`] completes this.
    pub fn restore(&mut self, object: Object) {
        self.store.restore(object);
    }

    /// All objects have been restored. Timers that have become due fire at the next [`Cluster::settle`].
    pub fn restored(&mut self) {
        let uids: Vec<Uid> = self.store.uids().cloned().collect();
        for uid in &uids {
            self.set_timer(uid);
        }
    }

    /// The objects.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Creates an object.
    pub fn create(&mut self, object: Object, now: i64) -> Result<Uid, StoreError> {
        self.store.create(object, now, &self.ours)
    }

    /// Validates an object, except for checks that depend on others.
    pub fn check(&self, object: &Object, now: i64) -> Result<(), StoreError> {
        Store::check(object, now, &self.ours)
    }

    /// Updates a Node, preserving its identity.
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

    /// Deletes an object and its dependents, as with background propagation.
    pub fn delete(&mut self, uid: &str, now: i64) {
        self.store.delete(uid, now);
    }

    /// Binds a Pod to a node, like the API server for a Binding.
    pub fn bind(&mut self, pod: &ObjectRef, node: &str, record: &AllocationRecord, now: i64) -> BindOutcome {
        let Some(Object::Pod(known)) = self.store.get(&pod.uid).map(Cow::into_owned) else {
            return BindOutcome::Gone("the Pod no longer exists".into());
        };
        if known.metadata.deletion_timestamp.is_some() {
            return BindOutcome::Gone("the Pod is being deleted".into());
        }
        match known.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) {
            Some(there) if there == node => return BindOutcome::Done,
            Some(there) => return BindOutcome::Elsewhere(there.into()),
            None => {}
        }
        let pinned = record.pin.is_some();
        let record = match serde_json::to_string(record) {
            Ok(record) => record,
            Err(error) => return BindOutcome::Refused(format!("invalid allocation record: {error}").into()),
        };
        self.store.update(&pod.uid, |object| {
            let Object::Pod(pod) = object else { return };
            pod.metadata.annotations.get_or_insert_default().insert(ALLOCATION.to_owned(), record);
            let spec = pod.spec.get_or_insert_default();
            if pinned {
                // Both steps at once: there is no kube-scheduler.
                pin::pin(spec, node);
            }
            spec.node_name = Some(node.to_owned());
            let status = pod.status.get_or_insert_default();
            kubelet::set_condition(status, "PodScheduled", true, None, now);
        });
        BindOutcome::Done
    }

    /// Resumes a suspended Job.
    pub fn resume(&mut self, job: &ObjectRef) {
        self.store.update(&job.uid, |object| {
            let Object::Job(job) = object else { return };
            job.metadata.annotations.get_or_insert_default().insert(ADMISSION.to_owned(), RESUMED.to_owned());
            job.spec.get_or_insert_default().suspend = Some(false);
        });
    }

    /// Sets PodScheduled=False on a waiting Pod.
    pub fn unscheduled(&mut self, pod: &ObjectRef, reason: &str, message: &str, now: i64) {
        self.store.update(&pod.uid, |object| {
            let Object::Pod(pod) = object else { return };
            if pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none()) {
                let status = pod.status.get_or_insert_default();
                kubelet::set_condition(status, "PodScheduled", false, Some((reason, message)), now);
            }
        });
    }

    /// Stores the reservation of a waiting Pod's job in its status, or removes that.
    pub fn reserved(&mut self, pod: &ObjectRef, reservation: Option<&ReservationRecord>, now: i64) {
        self.store.update(&pod.uid, |object| {
            let Object::Pod(pod) = object else { return };
            let status = pod.status.get_or_insert_default();
            match reservation.and_then(reservation::message) {
                Some(message) => {
                    let why = Some((reservation::REASON, message.as_str()));
                    kubelet::set_condition(status, reservation::RESERVED, true, why, now);
                }
                None => status
                    .conditions
                    .get_or_insert_default()
                    .retain(|condition| condition.type_ != reservation::RESERVED),
            }
        });
    }

    /// Marks a Pod as disrupted and deletes it, like the API server for an eviction.
    pub fn evict(&mut self, pod: &ObjectRef, why: &str, now: i64) {
        self.store.update(&pod.uid, |object| {
            let Object::Pod(pod) = object else { return };
            let status = pod.status.get_or_insert_default();
            kubelet::set_condition(status, "DisruptionTarget", true, Some((LET_GO, why)), now);
        });
        self.store.delete(&pod.uid, now);
    }

    /// Sets the condition of a PodGroup.
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

    /// When the next timer is due (epoch seconds).
    pub fn next_due(&self) -> Option<i64> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// Processes everything that follows from changes and timers due by `now`: completely, or up to about
    /// [`CHANGES_MAX`] changes (then [`Cluster::unfinished`] requires another call). Returns the changes, each object
    /// once, ordered by UID.
    pub fn settle(&mut self, now: i64) -> Vec<Change> {
        loop {
            self.notice();
            if self.settled.len() >= CHANGES_MAX {
                break;
            }
            if let Some(uid) = self.open.pop_first() {
                let at = self.at.unwrap_or(now);
                self.reconcile(&uid, at);
            } else if let Some(due) = self.next_due().filter(|due| *due <= now) {
                // Overdue timers fire at their own time, one after the other.
                let at = self.at.map_or(due, |at| at.max(due));
                self.at = Some(at);
                self.fire(due, at);
            } else {
                self.at = None;
                break;
            }
        }
        std::mem::take(&mut self.settled).into_values().collect()
    }

    /// Whether [`Cluster::settle`] has more to do by `now`.
    pub fn unfinished(&self, now: i64) -> bool {
        !self.open.is_empty() || self.store.changed() > 0 || self.next_due().is_some_and(|due| due <= now)
    }

    /// Number of changes not returned yet.
    pub fn changed(&self) -> usize {
        self.store.changed() + self.settled.len()
    }

    /// Sets the timers of changed objects, and schedules their controllers.
    fn notice(&mut self) {
        for change in self.store.take_changes() {
            let uid = match &change {
                Change::Set(uid) => {
                    let Some(packed) = self.store.packed(uid) else { continue };
                    self.open.extend(packed.owner());
                    let controls = |object: &Object| {
                        !matches!(object, Object::Node(_) | Object::PodGroup(_) | Object::PriorityClass(_))
                    };
                    if packed.whole().is_some_and(controls) {
                        self.open.insert(uid.clone());
                    }
                    uid.clone()
                }
                Change::Gone(packed) => {
                    let uid =
                        packed.brief().map_or_else(|| packed.open().uid().into(), |pod| pod.uid.clone());
                    self.open.extend(packed.owner());
                    uid
                }
            };
            self.set_timer(&uid);
            self.settled.insert(uid, change);
        }
    }

    fn set_timer(&mut self, uid: &Uid) {
        if let Some(due) = self.timer_of.remove(uid) {
            self.timers.remove(&(due, uid.clone()));
        }
        let due = self.store.get(uid).and_then(|object| match &*object {
            Object::Pod(pod) => {
                let controller = self.store.controller_of(&object);
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

    /// Fires the timers due at `due`, at the time `at`; at most as many as are processed in one call.
    fn fire(&mut self, due: i64, at: i64) {
        while self.store.changed() < CHANGES_MAX
            && let Some((first, uid)) = self.timers.first().cloned().filter(|(first, _)| *first <= due)
        {
            self.timers.remove(&(first, uid.clone()));
            self.timer_of.remove(&uid);
            let Some(object) = self.store.get(&uid) else { continue };
            match &*object {
                Object::Pod(pod) => {
                    let controller = self.store.controller_of(&object);
                    match kubelet::next(pod, controller, self.keep_ended) {
                        Some((_, Step::Remove)) => self.store.remove(&uid),
                        Some((_, step)) => self.store.update(&uid, |object| {
                            let Object::Pod(pod) = object else { return };
                            kubelet::apply(step, pod, at);
                        }),
                        None => {}
                    }
                }
                Object::Job(job) => {
                    if job.status.as_ref().and_then(job::ended_since).is_some() {
                        self.store.delete(&uid, at);
                    } else {
                        self.open.insert(uid);
                    }
                }
                _ => {}
            }
        }
    }

    fn reconcile(&mut self, uid: &Uid, at: i64) {
        let Some(owner) = self.store.packed(uid).and_then(Packed::whole) else { return };
        if owner.meta().deletion_timestamp.is_some() {
            return;
        }
        let actions = match owner {
            Object::Job(job) => job::reconcile(job, self.store.pods_of(uid), at),
            Object::ReplicaSet(set) => replicas::replica_set(set, self.store.pods_of(uid)),
            Object::StatefulSet(set) => replicas::stateful_set(set, self.store.pods_of(uid)),
            Object::Deployment(deployment) => replicas::deployment(deployment, self.store.owned_by(uid)),
            _ => Actions::default(),
        };
        for object in actions.create {
            if let Err(error) = self.create(object, at) {
                tracing::warn!(owner = %super::store::called_of(&self.store, uid), %error, "failed to create a Pod");
                break;
            }
        }
        actions.delete.iter().for_each(|pod| self.store.delete(pod, at));
        if let Some(new) = actions.owner {
            self.store.update(uid, |object| *object = new);
        }
    }
}

#[cfg(test)]
mod tests;
