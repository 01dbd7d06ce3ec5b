//! Metadata of objects and lists, compatible with Kubernetes clients.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::words::Role;

/// Metadata of an object (a subset of Kubernetes' `ObjectMeta`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Sequence number of the snapshot in which the object last changed, as a decimal string.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// RFC 3339, UTC, whole seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Metadata of a list, including the snapshot it was taken from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ListMeta {
    /// Sequence number of the snapshot, as a decimal string; it only increases.
    pub resource_version: String,
    /// When the snapshot was taken (RFC 3339, UTC).
    pub observed_at: String,
    pub role: Role,
    /// Warning about the data, e.g. `not the leader: API server unreachable since …`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Pass this as `continue=` to get the next page; empty on the last page.
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

/// Resource names and amounts as Kubernetes quantities: cpu in milli-units if fractional (`2500m`, `4`), others
/// in bytes or units.
pub type Quantities = BTreeMap<String, String>;
