//! Converts API objects to the engine's types.
//!
//! Nothing is decided in here, and no conversion fails because of a single field: what can't be interpreted is either
//! part of the result (an invalid quantity) or gets the most restrictive meaning (an unknown operator matches
//! nothing), and is listed in the object's `problems`. Only an object without a name or UID is rejected.

use std::collections::BTreeMap;

pub use fluxion_scheduler::marks::ALLOCATION;
use fluxion_scheduler::marks::PREFIXES;
use fluxion_scheduler::model::{ControllerRef, Marks, SharedStr};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};

pub mod affinity;
mod end;
pub mod failures;
pub mod group;
pub mod namespace;
pub mod node;
pub mod owner;
mod peers;
pub mod pod;
pub mod requests;
pub mod reservation;
pub(in crate::kube) mod sets;
pub mod storage;
mod template;

/// An object that the engine can't use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("metadata.{0} is missing")]
pub struct Unreadable(pub &'static str);

/// Metadata common to all objects.
struct Meta {
    uid: SharedStr,
    namespace: SharedStr,
    name: SharedStr,
    created: i64,
    deleting: bool,
    deletes_at: Option<i64>,
    controller: Option<ControllerRef>,
}

impl Meta {
    fn read(meta: &ObjectMeta) -> Result<Self, Unreadable> {
        let there = |value: &Option<String>, what| match value.as_deref() {
            None | Some("") => Err(Unreadable(what)),
            Some(value) => Ok(SharedStr::from(value)),
        };
        Ok(Self {
            uid: there(&meta.uid, "uid")?,
            namespace: meta.namespace.as_deref().unwrap_or_default().into(),
            name: there(&meta.name, "name")?,
            created: seconds(meta.creation_timestamp.as_ref()).unwrap_or(0),
            deleting: meta.deletion_timestamp.is_some(),
            deletes_at: seconds(meta.deletion_timestamp.as_ref()),
            controller: controller(meta.owner_references.as_deref()),
        })
    }
}

fn controller(owners: Option<&[OwnerReference]>) -> Option<ControllerRef> {
    let owner = owners?.iter().find(|owner| owner.controller == Some(true))?;
    Some(ControllerRef {
        api_version: owner.api_version.as_str().into(),
        kind: owner.kind.as_str().into(),
        name: owner.name.as_str().into(),
        uid: owner.uid.as_str().into(),
    })
}

/// Untrusted text, shortened for use in a message.
fn short(text: &str) -> String {
    if text.chars().count() <= 64 { text.to_owned() } else { text.chars().take(63).chain(['…']).collect() }
}

/// Whole epoch seconds.
fn seconds(time: Option<&Time>) -> Option<i64> {
    time.map(|time| time.0.as_second())
}

fn labels<M: FromIterator<(SharedStr, SharedStr)>>(map: Option<&BTreeMap<String, String>>) -> M {
    marks(map, |_| true)
}

/// Only the annotations used by the engine: others may be large and change for unrelated reasons.
fn annotations(map: Option<&BTreeMap<String, String>>) -> Marks {
    const OTHERS: [&str; 3] =
        ["scheduling.x-k8s.io/", "pod-group.scheduling.sigs.k8s.io", "kubernetes.io/config.mirror"];
    let read = |key: &str| PREFIXES.iter().chain(&OTHERS).any(|start| key.starts_with(start));
    marks(map, |key| key != ALLOCATION && read(key))
}

fn marks<M: FromIterator<(SharedStr, SharedStr)>>(
    map: Option<&BTreeMap<String, String>>,
    keep: impl Fn(&str) -> bool,
) -> M {
    map.into_iter()
        .flatten()
        .filter(|(key, _)| keep(key))
        .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
        .collect()
}
