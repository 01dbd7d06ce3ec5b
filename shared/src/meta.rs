//! Metadata of objects and lists, as Kubernetes clients read it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::words::Role;

/// Metadata of one object (the part of Kubernetes' `ObjectMeta` that we serve).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The sequence of the snapshot this object was last changed in: a decimal string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// RFC 3339, UTC, whole seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Metadata of a list; every list says which snapshot it was taken from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ListMeta {
    /// The sequence of the snapshot: a decimal string that only grows.
    pub resource_version: String,
    /// When the snapshot was taken (RFC 3339, UTC).
    pub observed_at: String,
    pub role: Role,
    /// What has to be known about the data beside its age, e.g. `not the leader: API server unreachable since …`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Hand this back as `continue=` to get the next page; empty on the last one.
    #[serde(rename = "continue", skip_serializing_if = "String::is_empty")]
    pub continue_: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_item_count: Option<u64>,
}

/// A list of objects of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct List<T> {
    pub api_version: String,
    pub kind: String,
    pub metadata: ListMeta,
    pub items: Vec<T>,
}

/// One event of a watch: `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatchEvent<T> {
    #[serde(rename = "type")]
    pub type_: String,
    pub object: T,
}

/// Resource name to amount, as Kubernetes writes it: cpu in milli where fractional (`2500m`, `4`), all else
/// in bytes or pieces.
pub type Quantities = BTreeMap<String, String>;
