//! Converts changes of objects to events for the engine.

use fluxion_scheduler::event::{Event, GroupStatus};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::metadata::time;
use super::object::Object;
use super::store::{Change, Store};
use crate::kube::translate::{Unreadable, group, node, owner, pod};

/// The event for a change; `None` for objects that the engine doesn't use.
pub fn event(store: &Store, change: &Change) -> Option<Event> {
    match change {
        Change::Set(uid) => of(&*store.get(uid)?),
        Change::Gone(packed) => gone(&packed.open()),
    }
}

/// The event for an existing object.
pub fn of(object: &Object) -> Option<Event> {
    let translated = match object {
        Object::Node(object) => node::translate(object).map(|node| Event::Node(Box::new(node))),
        Object::Pod(object) => pod::translate(object).map(|pod| Event::Pod(Box::new(pod))),
        Object::Job(object) => owner::job(object).map(|owner| Event::Owner(Box::new(owner))),
        Object::Deployment(object) => owner::deployment(object).map(|owner| Event::Owner(Box::new(owner))),
        Object::ReplicaSet(object) => owner::replica_set(object).map(|owner| Event::Owner(Box::new(owner))),
        Object::StatefulSet(object) => owner::stateful_set(object).map(|owner| Event::Owner(Box::new(owner))),
        Object::PodGroup(object) => pod_group(object)?.map(|group| Event::Group(Box::new(group))),
        Object::PriorityClass(_) => return None,
    };
    match translated {
        Ok(event) => Some(event),
        Err(error) => {
            tracing::warn!(object = %super::store::called(object), %error, "ignoring an invalid object");
            None
        }
    }
}

fn pod_group(group: &DynamicObject) -> Option<Result<fluxion_scheduler::model::GroupSpec, Unreadable>> {
    if !is_native(group) {
        return Some(group::scheduler_plugins(group));
    }
    // Validated on admission.
    let typed: PodGroup = serde_json::from_value(serde_json::to_value(group).ok()?).ok()?;
    Some(group::native(&typed))
}

fn is_native(group: &DynamicObject) -> bool {
    group.types.as_ref().is_some_and(|types| types.api_version.starts_with("scheduling.k8s.io/"))
}

fn gone(object: &Object) -> Option<Event> {
    let uid = object.uid().into();
    Some(match object {
        Object::Node(_) => Event::NodeGone(object.name().into()),
        Object::Pod(_) => Event::PodGone(uid),
        Object::PodGroup(_) => Event::GroupGone(uid),
        Object::Job(_) | Object::Deployment(_) | Object::ReplicaSet(_) | Object::StatefulSet(_) => {
            Event::OwnerGone(uid)
        }
        Object::PriorityClass(_) => return None,
    })
}

/// Writes the status of a PodGroup of scheduling.x-k8s.io.
pub fn set_group_status(group: &mut DynamicObject, status: &GroupStatus, now: i64) {
    if !group.data.is_object() {
        return;
    }
    let mut new = json!({"phase": status.phase, "scheduled": status.scheduled, "running": status.running,
        "succeeded": status.succeeded, "failed": status.failed});
    if let Some(owner) = &status.occupied_by {
        new["occupiedBy"] = json!(owner);
    }
    let started = match &group.data["status"]["scheduleStartTime"] {
        Value::Null if status.phase == "Pending" => Value::Null,
        Value::Null => time(now).and_then(|time| serde_json::to_value(time).ok()).unwrap_or_default(),
        known => known.clone(),
    };
    if !started.is_null() {
        new["scheduleStartTime"] = started;
    }
    group.data["status"] = new;
}

/// Writes the condition of a native PodGroup.
pub fn set_group_scheduled(group: &mut DynamicObject, scheduled: bool, why: (&str, &str), now: i64) {
    if !group.data.is_object() {
        return;
    }
    let status = if scheduled { "True" } else { "False" };
    let (reason, message) = why;
    let conditions = &mut group.data["status"]["conditions"];
    let list = match conditions {
        Value::Array(list) => list,
        other => {
            *other = Value::Array(Vec::new());
            let Value::Array(list) = other else { return };
            list
        }
    };
    let found = list.iter().position(|condition| condition["type"] == group::INITIALLY_SCHEDULED);
    // Once true, it stays true: a started gang stays started.
    if found.is_some_and(|place| list[place]["status"] == "True") {
        return;
    }
    let since = time(now).and_then(|time| serde_json::to_value(time).ok()).unwrap_or_default();
    let since = match found {
        Some(place) if list[place]["status"] == status => list[place]["lastTransitionTime"].clone(),
        _ => since,
    };
    let condition = json!({"type": group::INITIALLY_SCHEDULED, "status": status, "reason": reason,
        "message": message, "lastTransitionTime": since});
    match found {
        Some(place) => list[place] = condition,
        None => list.push(condition),
    }
}
