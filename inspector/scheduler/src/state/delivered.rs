//! The latest Pods, groups and owners received, and the references between them.

use std::collections::BTreeSet;
use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use crate::marks;
use crate::model::{ControllerRef, GroupApi, GroupSpec, OwnerSpec, PodSpec, SharedStr};
use crate::small_set::SmallSet;

/// API, namespace and name of a PodGroup.
pub(super) type GroupName = (GroupApi, SharedStr, SharedStr);

/// See the module documentation. Objects are identified by UID.
#[derive(Clone, Debug, Default)]
pub(super) struct Delivered {
    pods: OrdMap<SharedStr, Arc<PodSpec>>,
    groups: OrdMap<SharedStr, Arc<GroupSpec>>,
    group_names: OrdMap<GroupName, SharedStr>,
    owners: OrdMap<SharedStr, Arc<OwnerSpec>>,
    /// API groups and kinds of observed owners, besides those that are built in.
    observed: OrdSet<(SharedStr, SharedStr)>,
    /// Controllers to the Pods they own directly.
    pods_of_owner: OrdMap<SharedStr, SmallSet<SharedStr>>,
    /// Controllers to the owners they own directly.
    owners_of_owner: OrdMap<SharedStr, SmallSet<SharedStr>>,
    /// PodGroups, existing or not, to the Pods that reference them.
    pods_of_group: OrdMap<GroupName, SmallSet<SharedStr>>,
}

impl Delivered {
    pub(super) fn pod(&self, uid: &str) -> Option<&Arc<PodSpec>> {
        self.pods.get(uid)
    }

    pub(super) fn owner(&self, uid: &str) -> Option<&Arc<OwnerSpec>> {
        self.owners.get(uid)
    }

    pub(super) fn has_owner(&self, uid: &str) -> bool {
        self.owners.contains_key(uid)
    }

    /// Whether controllers of this kind are observed, so that this one will be if it exists.
    pub(super) fn observes(&self, controller: &ControllerRef) -> bool {
        let (version, kind) = (&*controller.api_version, &*controller.kind);
        matches!(
            (version, kind),
            ("batch/v1", "Job") | ("apps/v1", "ReplicaSet" | "StatefulSet" | "Deployment")
        ) || version.split_once('/').is_some_and(|(group, _)| {
            self.observed.iter().any(|(of, observed)| (&**of, &**observed) == (group, kind))
        })
    }

    /// Notes whether owners of a kind are observed; the Pods that need not wait for one any more. From when they are, they
    /// have been listed: nobody else has to wait.
    pub(super) fn observe(&mut self, group: SharedStr, kind: SharedStr, observed: bool) -> Vec<SharedStr> {
        let entry = (group, kind);
        if observed {
            self.observed.insert(entry);
            return Vec::new();
        }
        if self.observed.remove(&entry).is_none() {
            return Vec::new();
        }
        let (group, kind) = entry;
        let unseen = |controller: &Option<ControllerRef>| {
            controller.as_ref().is_some_and(|one| {
                one.kind == kind
                    && one.api_version.split_once('/').is_some_and(|(of, _)| *of == *group)
                    && !self.has_owner(&one.uid)
            })
        };
        let pods = self.pods.values().filter(|pod| unseen(&pod.controller)).map(|pod| pod.uid.clone());
        let owners = self.owners.values().filter(|owner| unseen(&owner.controller));
        pods.chain(owners.flat_map(|owner| self.pods_below(&owner.uid))).collect()
    }

    pub(super) fn group(&self, uid: &str) -> Option<&Arc<GroupSpec>> {
        self.groups.get(uid)
    }

    pub(super) fn group_named(
        &self,
        api: GroupApi,
        namespace: &SharedStr,
        name: &SharedStr,
    ) -> Option<&Arc<GroupSpec>> {
        self.groups.get(self.group_names.get(&(api, namespace.clone(), name.clone()))?)
    }

    /// The Pods that an owner owns directly.
    pub(super) fn pods_of_owner(&self, uid: &SharedStr) -> impl Iterator<Item = &SharedStr> {
        self.pods_of_owner.get(uid).into_iter().flat_map(SmallSet::iter)
    }

    /// The owners that an owner owns directly.
    pub(super) fn owners_of_owner(&self, uid: &SharedStr) -> impl Iterator<Item = &SharedStr> {
        self.owners_of_owner.get(uid).into_iter().flat_map(SmallSet::iter)
    }

    /// The Pods that reference a PodGroup.
    pub(super) fn pods_of_group(&self, name: &GroupName) -> impl Iterator<Item = &SharedStr> {
        self.pods_of_group.get(name).into_iter().flat_map(SmallSet::iter)
    }

    /// The owner and all owners below it, by UID.
    fn with_owners_below<'a>(&'a self, uid: &'a SharedStr) -> BTreeSet<&'a SharedStr> {
        let mut open = vec![uid];
        let mut seen = BTreeSet::new();
        while let Some(uid) = open.pop() {
            if seen.insert(uid) {
                open.extend(self.owners_of_owner(uid));
            }
        }
        seen
    }

    /// The owners below an owner.
    pub(super) fn owners_below<'a>(&'a self, uid: &'a SharedStr) -> impl Iterator<Item = &'a Arc<OwnerSpec>> {
        let below = self.with_owners_below(uid).into_iter();
        below.filter(move |one| *one != uid).filter_map(|uid| self.owner(uid))
    }

    /// The Pods of an owner and of all owners below it.
    pub(super) fn pods_below(&self, uid: &SharedStr) -> Vec<SharedStr> {
        self.with_owners_below(uid).into_iter().flat_map(|uid| self.pods_of_owner(uid).cloned()).collect()
    }

    /// Adds or replaces a Pod.
    pub(super) fn put_pod(&mut self, pod: Arc<PodSpec>) {
        self.take_pod(&pod.uid);
        if let Some(controller) = &pod.controller {
            link(&mut self.pods_of_owner, controller.uid.clone(), &pod.uid);
        }
        for name in group_references(&pod) {
            link(&mut self.pods_of_group, name, &pod.uid);
        }
        self.pods.insert(pod.uid.clone(), pod);
    }

    pub(super) fn take_pod(&mut self, uid: &SharedStr) -> Option<Arc<PodSpec>> {
        let pod = self.pods.remove(uid)?;
        if let Some(controller) = &pod.controller {
            unlink(&mut self.pods_of_owner, &controller.uid, uid);
        }
        for name in group_references(&pod) {
            unlink(&mut self.pods_of_group, &name, uid);
        }
        Some(pod)
    }

    /// Adds a group; returns the name by which Pods reference it.
    pub(super) fn put_group(&mut self, group: GroupSpec) -> GroupName {
        let name = name_of(&group);
        self.group_names.insert(name.clone(), group.uid.clone());
        self.groups.insert(group.uid.clone(), Arc::new(group));
        name
    }

    /// Removes a group; returns the name by which Pods reference it.
    pub(super) fn take_group(&mut self, uid: &SharedStr) -> Option<GroupName> {
        let name = name_of(&*self.groups.remove(uid)?);
        if self.group_names.get(&name) == Some(uid) {
            self.group_names.remove(&name);
        }
        Some(name)
    }

    /// Adds or replaces an owner.
    pub(super) fn put_owner(&mut self, owner: OwnerSpec) {
        self.take_owner(&owner.uid);
        if let Some(controller) = &owner.controller {
            link(&mut self.owners_of_owner, controller.uid.clone(), &owner.uid);
        }
        self.owners.insert(owner.uid.clone(), Arc::new(owner));
    }

    pub(super) fn take_owner(&mut self, uid: &SharedStr) -> Option<Arc<OwnerSpec>> {
        let owner = self.owners.remove(uid)?;
        if let Some(controller) = &owner.controller {
            unlink(&mut self.owners_of_owner, &controller.uid, uid);
        }
        Some(owner)
    }
}

fn name_of(group: &GroupSpec) -> GroupName {
    (group.api, group.namespace.clone(), group.name.clone())
}

fn group_references(pod: &PodSpec) -> impl Iterator<Item = GroupName> {
    let native = pod.scheduling_group.clone().map(|name| (GroupApi::Native, name));
    let label = marks::find(pod, &marks::SCHEDULER_PLUGINS_GROUP);
    let plugins = label.map(|(_, name)| (GroupApi::SchedulerPlugins, name.clone()));
    let namespace = pod.namespace.clone();
    native.into_iter().chain(plugins).map(move |(api, name)| (api, namespace.clone(), name))
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
