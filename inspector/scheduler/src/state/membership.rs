//! The job of a Pod, and how many members it requires, according to its group.

use crate::job::{GroupKey, ReasonClass};
use crate::model::{GroupSpec, ObjectRef, OwnerSpec, SharedStr};

/// The group information of a Pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Membership {
    pub key: GroupKey,
    pub size: Size,
    /// The object that gives the job its name.
    pub object: Option<ObjectRef>,
    /// The PodGroup whose condition and settings apply.
    pub group: Option<SharedStr>,
}

/// How many members are required, or why that is unknown.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Size {
    /// Specified by `what` (a label, an annotation or a field).
    Given {
        size: u32,
        what: &'static str,
    },
    /// All Pods of this owner (a UID), as many as it can still have at once.
    OwnerNeeds {
        owner: SharedStr,
    },
    /// A native gang created for this owner: its minCount, limited to what the owner can still have.
    GangOfOwner {
        size: u32,
        owner: SharedStr,
    },
    Unknown {
        class: ReasonClass,
        text: String,
    },
}

/// Maximum length of a chain of controllers; if it is longer or contains a cycle, nothing starts.
pub(super) const OWNERS_DEEP: usize = 32;

/// The kind in a job's name: lower case, with the API group for kinds that need it to be unambiguous.
pub(super) fn kind_name(api_version: &str, kind: &str) -> SharedStr {
    let kind = kind.to_lowercase();
    match api_version.split_once('/').map(|(group, _)| group) {
        None | Some("batch" | "apps" | "scheduling.k8s.io") => kind.into(),
        Some(group) => format!("{kind}.{group}").into(),
    }
}

/// Members reference a PodGroup only by name, so its key has no anchor: a group created after its Pods is the same
/// job.
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

/// The key of the job with the name of this owner.
pub(super) fn owner_key(owner: &OwnerSpec) -> GroupKey {
    GroupKey {
        namespace: owner.namespace.clone(),
        kind: kind_name(&owner.api_version, &owner.kind),
        name: owner.name.clone(),
        anchor: Some(owner.uid.clone()),
    }
}
