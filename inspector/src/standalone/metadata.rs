//! Times and owners in metadata.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::object::Object;

/// UID of the controlling owner.
pub fn controller_uid(object: &Object) -> Option<Uid> {
    let owners = object.meta().owner_references.as_ref()?;
    owners.iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str().into())
}

/// Epoch seconds as a Kubernetes time; `None` if out of range.
pub fn time(seconds: i64) -> Option<Time> {
    Timestamp::from_second(seconds).ok().map(Time)
}

/// Epoch seconds of a time.
pub fn seconds(time: Option<&Time>) -> Option<i64> {
    time.map(|time| time.0.as_second())
}

/// Identity of an object: `metadata.uid`.
pub type Uid = Arc<str>;
