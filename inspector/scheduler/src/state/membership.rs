//! Which job a Pod belongs to, and how many members that job wants: what its group says.

use crate::job::{GroupKey, ReasonClass};
use crate::model::{ControllerRef, GroupSpec, ObjectRef, OwnerSpec, SharedStr};

/// What one Pod says about its group.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Membership {
    pub key: GroupKey,
    pub size: Size,
    /// The object the job is named after.
    pub object: Option<ObjectRef>,
    /// The PodGroup whose condition and settings count.
    pub group: Option<SharedStr>,
}

/// How many members are wanted, or why that can't be said.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Size {
    /// Named by `what` (a mark or a field).
    Given {
        size: u32,
        what: &'static str,
    },
    /// All Pods of this owner (a uid), as many as it can still have at once.
    OwnerNeeds {
        owner: SharedStr,
    },
    /// A native gang made for this owner: its minCount, but no more than the owner can still have.
    GangOfOwner {
        size: u32,
        owner: SharedStr,
    },
    Unknown {
        class: ReasonClass,
        text: String,
    },
}

/// So many controllers may stand above one another; where there are more, or they go in a circle, nothing starts.
pub(super) const OWNERS_DEEP: usize = 32;

/// Kinds of controllers that are watched: a Pod of one waits until the controller was seen.
pub(super) fn watched(controller: &ControllerRef) -> bool {
    matches!(
        (&*controller.api_version, &*controller.kind),
        ("batch/v1", "Job") | ("apps/v1", "ReplicaSet" | "StatefulSet")
    )
}

/// The kind in a job's name: lower case, with the API group for kinds that need it to be told apart.
pub(super) fn kind_name(api_version: &str, kind: &str) -> SharedStr {
    let kind = kind.to_lowercase();
    match api_version.split_once('/').map(|(group, _)| group) {
        None | Some("batch" | "apps" | "scheduling.k8s.io") => kind.into(),
        Some(group) => format!("{kind}.{group}").into(),
    }
}

/// Members name a PodGroup by its name only, so its key has no anchor: a group that appears after its Pods
/// is the same job.
pub(super) fn group_membership(group: &GroupSpec, size: Size) -> Membership {
    let object = group.object();
    Membership {
        key: GroupKey {
            namespace: group.namespace.clone(),
            kind: kind_name(&group.api_version, "PodGroup"),
            name: group.name.clone(),
            anchor: None,
        },
        size,
        object: Some(object),
        group: Some(group.uid.clone()),
    }
}

/// The key of the job that is named after this owner.
pub(super) fn owner_key(owner: &OwnerSpec) -> GroupKey {
    GroupKey {
        namespace: owner.namespace.clone(),
        kind: kind_name(&owner.api_version, &owner.kind),
        name: owner.name.clone(),
        anchor: Some(owner.uid.clone()),
    }
}
