//! The job of a Pod, and how many members the job requires.
//!
//! Groups are determined in a fixed order: native PodGroup, scheduling.x-k8s.io PodGroup, labels and annotations of
//! existing schedulers, our own, the owner, the Pod alone.

use std::sync::LazyLock;

use crate::job::{GroupKey, ReasonClass};
use crate::marks;
use crate::model::{
    ControllerRef, GroupApi, GroupSpec, ObjectRef, OwnerDetail, OwnerSpec, PodSpec, SharedStr,
};
use crate::state::State;
use crate::state::membership::{Membership, OWNERS_DEEP, Size, group_membership, kind_name, owner_key};

/// Strings common to all Pods, stored once.
static POD: LazyLock<[SharedStr; 3]> = LazyLock::new(|| ["pod", "Pod", "v1"].map(SharedStr::from));

impl State {
    /// The job of the Pod.
    pub(super) fn membership(&self, pod: &PodSpec) -> Membership {
        self.by_native_group(pod)
            .or_else(|| self.by_sigs_group(pod))
            .or_else(|| self.by_marks(pod))
            .or_else(|| self.by_owner(pod))
            .unwrap_or_else(|| alone(pod))
    }

    fn by_native_group(&self, pod: &PodSpec) -> Option<Membership> {
        let name = pod.scheduling_group.as_ref()?;
        let Some(group) = self.delivered.group_named(GroupApi::Native, &pod.namespace, name) else {
            let missing = missing_group(pod, "podgroup".into(), name, "PodGroup");
            // When a group is deleted, its Pods remain in their job.
            let known = self.belonging.membership(&pod.uid);
            return Some(match known.filter(|old| old.object.is_some() && old.key != missing.key) {
                Some(old) if old.key.anchor.as_ref() == Some(&pod.uid) => (**old).clone(),
                Some(old) => Membership { key: old.key.clone(), object: old.object.clone(), ..missing },
                None => missing,
            });
        };
        let min = group.min_count?;
        let owner = group
            .controller
            .as_ref()
            .filter(|controller| controller.kind.as_ref() == "Job")
            .and_then(|controller| self.delivered.owner(&controller.uid));
        let size = self.checked_size(min, "minCount");
        Some(match owner {
            Some(owner) => Membership {
                key: owner_key(owner),
                size: match size {
                    Size::Given { size, .. } => Size::GangOfOwner { size, owner: owner.uid.clone() },
                    other => other,
                },
                object: Some(owner.object()),
                group: Some(group.uid.clone()),
            },
            None => group_membership(group, size),
        })
    }

    fn by_sigs_group(&self, pod: &PodSpec) -> Option<Membership> {
        let (_, name) = marks::find(pod, &marks::SCHEDULER_PLUGINS_GROUP)?;
        if let Some(group) = self.delivered.group_named(GroupApi::SchedulerPlugins, &pod.namespace, name) {
            let size = self.checked_size(group.min_count.unwrap_or(1), "minMember");
            return Some(group_membership(group, size));
        }
        let kind = kind_name("scheduling.x-k8s.io/v1alpha1", "PodGroup");
        let Some((key, text)) = marks::find(pod, &marks::SCHEDULER_PLUGINS_SIZE) else {
            return Some(missing_group(pod, kind, name, "scheduling.x-k8s.io PodGroup"));
        };
        let size = match marks::size(key, text, self.settings.group_size_max) {
            Ok(size) => Size::Given { size, what: key },
            Err(text) => Size::Unknown { class: ReasonClass::InvalidRequest, text },
        };
        Some(Membership { key: named(pod, kind, name), size, object: None, group: None })
    }

    fn by_marks(&self, pod: &PodSpec) -> Option<Membership> {
        marks::FAMILIES.iter().find_map(|family| {
            let name = marks::find(pod, family.names);
            let size = marks::find(pod, family.sizes);
            let invalid = |text: String| Size::Unknown { class: ReasonClass::InvalidRequest, text };
            let (name, size) = match (name, size) {
                (None, None) => return None,
                (Some((key, name)), _) if name.is_empty() => {
                    return Some(Membership {
                        size: invalid(format!("{key} is empty: it must contain the group's name")),
                        ..alone(pod)
                    });
                }
                (None, Some((key, _))) => {
                    let text = format!(
                        "{key} sets a size, but {} with the group's name is missing",
                        family.names[0]
                    );
                    return Some(Membership { size: invalid(text), ..alone(pod) });
                }
                (Some((key, name)), None) => {
                    (name, invalid(format!("{key} names a group, but {} is missing", family.sizes[0])))
                }
                (Some((_, name)), Some((key, text))) => (
                    name,
                    match marks::size(key, text, self.settings.group_size_max) {
                        Ok(size) => Size::Given { size, what: key },
                        Err(text) => invalid(text),
                    },
                ),
            };
            Some(Membership { key: named(pod, "group".into(), name), size, object: None, group: None })
        })
    }

    fn by_owner(&self, pod: &PodSpec) -> Option<Membership> {
        let controller = pod.controller.as_ref()?;
        let Some(owner) = self.delivered.owner(&controller.uid) else {
            if !self.delivered.observes(controller) || pod.node.is_some() || pod.phase.ended() {
                return None;
            }
            return Some(unseen_owner(pod, controller));
        };
        let above = self.controllers_of(owner);
        let top = above.last().copied().unwrap_or(owner).controller.as_ref();
        if let Some(unseen) = top.filter(|unseen| {
            self.delivered.observes(unseen)
                && !self.delivered.has_owner(&unseen.uid)
                && pod.node.is_none()
                && !pod.phase.ended()
        }) {
            return Some(unseen_owner(pod, unseen));
        }
        let chain: Vec<&OwnerSpec> = std::iter::once(owner.as_ref()).chain(above).collect();
        let by_pod = || marks::wants_gang(&pod.annotations);
        let asking = marks::wants_gang(&owner.annotations).and_then(|_| gang_of(&chain, by_pod));
        let asking = match asking {
            Ok(asking) => asking?,
            Err(text) => {
                let size = Size::Unknown { class: ReasonClass::InvalidRequest, text };
                return Some(Membership { size, ..alone(pod) });
            }
        };
        Some(Membership {
            key: owner_key(asking),
            size: Size::OwnerNeeds { owner: asking.uid.clone() },
            object: Some(asking.object()),
            group: None,
        })
    }

    /// The controllers of an owner, nearest first. Bounded, because references may form a cycle.
    pub(super) fn controllers_of(&self, owner: &OwnerSpec) -> Vec<&OwnerSpec> {
        let mut above: Vec<&OwnerSpec> = Vec::new();
        let mut next = owner.controller.as_ref();
        while let Some(found) = next.and_then(|controller| self.delivered.owner(&controller.uid)) {
            if above.len() == OWNERS_DEEP {
                break;
            }
            above.push(found);
            next = found.controller.as_ref();
        }
        above
    }

    /// How many Pods this owner can still have at once; `Err` says why that is unknown.
    pub(super) fn owner_needs(&self, owner: &SharedStr) -> Result<u32, String> {
        let Some(owner) = self.delivered.owner(owner) else { return Err("its owner was deleted".to_owned()) };
        let described = self
            .described_by(owner)
            .ok_or_else(|| format!("the number of Pods of {} {} is not known yet", owner.kind, owner.name))?;
        let count = match &described.detail {
            OwnerDetail::Job { parallelism, completions, succeeded, failed_indexes, gang, .. } => {
                let over = succeeded.saturating_add(*failed_indexes);
                let left = completions.map_or(i64::MAX, |all| all.saturating_sub(over).max(0));
                let wanted = gang.flatten().unwrap_or(*parallelism).min(*parallelism);
                wanted.min(left)
            }
            OwnerDetail::StatefulSet { replicas, ordered: true } if *replicas > 1 => {
                return Err(format!(
                    "StatefulSet {} creates its Pods one at a time (podManagementPolicy OrderedReady), so the gang can never be complete: set podManagementPolicy: Parallel",
                    described.name
                ));
            }
            OwnerDetail::StatefulSet { replicas, .. } | OwnerDetail::Replicas { replicas } => *replicas,
            OwnerDetail::Sets { sets, .. } => sets.iter().fold(0, |sum, set| set.count.saturating_add(sum)),
            OwnerDetail::Other | OwnerDetail::Delegating { .. } => {
                return Err(format!(
                    "the number of Pods of {} {} is unknown: label them with fluxion.flux-framework.org/group and \
                     group-size instead",
                    owner.kind, owner.name
                ));
            }
        };
        match u32::try_from(count) {
            Ok(count) if count <= self.settings.group_size_max => Ok(count),
            _ => Err(format!(
                "{} {} requires {count} Pods at once, but the limit is {}",
                owner.kind, owner.name, self.settings.group_size_max
            )),
        }
    }

    fn checked_size(&self, size: i64, what: &'static str) -> Size {
        match u32::try_from(size) {
            Ok(size) if (1..=self.settings.group_size_max).contains(&size) => Size::Given { size, what },
            _ => Size::Unknown {
                class: ReasonClass::InvalidRequest,
                text: format!(
                    "invalid {what} {size}: must be an integer between 1 and {}",
                    self.settings.group_size_max
                ),
            },
        }
    }
}

/// The owner whose Pods are a gang, in a chain of controllers, nearest first: what is queued as a whole, else the one that
/// asks for it. Of several, the outermost one: controllers copy annotations to what they make. `by_pod`: whether the Pods
/// ask for it on behalf of the nearest one.
pub(super) fn gang_of<'a>(
    chain: &[&'a OwnerSpec],
    by_pod: impl FnOnce() -> Result<bool, String>,
) -> Result<Option<&'a OwnerSpec>, String> {
    if let Some(whole) = chain.iter().rev().find(|one| one.admitted_whole()) {
        return Ok(Some(*whole));
    }
    let native = |one: &&&OwnerSpec| matches!(one.detail, OwnerDetail::Job { gang: Some(_), .. });
    let mut asking = chain.first().filter(native).copied();
    if asking.is_none() && by_pod()? {
        asking = chain.first().copied();
    }
    for one in chain {
        let known = !matches!(one.detail, OwnerDetail::Other);
        match marks::wants_gang(&one.annotations) {
            Ok(true) if known || asking.is_none() => asking = Some(*one),
            Err(text) if asking.is_none() => return Err(text),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(asking)
}

fn alone(pod: &PodSpec) -> Membership {
    Membership {
        key: GroupKey {
            namespace: pod.namespace.clone(),
            kind: POD[0].clone(),
            name: pod.name.clone(),
            anchor: Some(pod.uid.clone()),
        },
        size: Size::Given { size: 1, what: "pod" },
        object: Some(pod.object()),
        group: None,
    }
}

fn named(pod: &PodSpec, kind: SharedStr, name: &SharedStr) -> GroupKey {
    GroupKey { namespace: pod.namespace.clone(), kind, name: name.clone(), anchor: None }
}

fn missing_group(pod: &PodSpec, kind: SharedStr, name: &SharedStr, what: &str) -> Membership {
    let text = format!("{what} {} not found", marks::shorten(name));
    Membership {
        key: named(pod, kind, name),
        size: Size::Unknown { class: ReasonClass::GroupNotFound, text },
        object: None,
        group: None,
    }
}

/// Its owner has not been observed yet, so it waits.
fn unseen_owner(pod: &PodSpec, owner: &ControllerRef) -> Membership {
    let text = format!("{} {} has not been observed yet", owner.kind, owner.name);
    Membership {
        key: GroupKey {
            namespace: pod.namespace.clone(),
            kind: kind_name(&owner.api_version, &owner.kind),
            name: owner.name.clone(),
            anchor: Some(owner.uid.clone()),
        },
        size: Size::Unknown { class: ReasonClass::GroupNotFound, text },
        object: None,
        group: None,
    }
}

impl PodSpec {
    /// Reference to this Pod in the API server.
    pub fn object(&self) -> ObjectRef {
        ObjectRef {
            namespace: self.namespace.clone(),
            kind: POD[1].clone(),
            api_version: POD[2].clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }
}

impl GroupSpec {
    /// Reference to this PodGroup in the API server.
    pub fn object(&self) -> ObjectRef {
        ObjectRef {
            namespace: self.namespace.clone(),
            kind: "PodGroup".into(),
            api_version: self.api_version.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }
}

impl OwnerSpec {
    /// Reference to this owner in the API server.
    pub fn object(&self) -> ObjectRef {
        ObjectRef {
            namespace: self.namespace.clone(),
            kind: self.kind.clone(),
            api_version: self.api_version.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }
}
