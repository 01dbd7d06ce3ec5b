//! The status of PodGroups.

use fluxion_scheduler::event::GroupStatus;
use fluxion_scheduler::model::ObjectRef;
use kube::Client;
use serde_json::{Value, json};

use crate::kube::translate::group::INITIALLY_SCHEDULED;

use super::api::{Write, WriteError, segment};

/// Maximum number of attempts of a write that had a conflict.
const TRIES: u32 = 4;

/// Writes the condition of a scheduling.k8s.io PodGroup; once the gang has started, it never changes back.
pub(super) async fn scheduled(
    client: &Client,
    group: &ObjectRef,
    scheduled: bool,
    reason: &str,
    message: &str,
) -> Result<(), WriteError> {
    write(client, group, |found| native(found, scheduled, reason, message)).await
}

/// Writes the status of a scheduling.x-k8s.io PodGroup.
pub(super) async fn status(
    client: &Client,
    group: &ObjectRef,
    status: &GroupStatus,
) -> Result<(), WriteError> {
    write(client, group, |found| scheduler_plugins(found, status)).await
}

/// Applies `change` to the current status of the group; writes nothing if it returns none.
async fn write(
    client: &Client,
    group: &ObjectRef,
    change: impl Fn(&Value) -> Option<Value>,
) -> Result<(), WriteError> {
    let path = format!(
        "/apis/{}/namespaces/{}/podgroups/{}",
        group.api_version,
        segment(&group.namespace),
        segment(&group.name)
    );
    let mut tries = 0;
    loop {
        tries += 1;
        let read =
            Write { method: "GET", path: path.clone(), content_type: "application/json", body: Vec::new() };
        let found = read.send(client).await?;
        if found.pointer("/metadata/uid").and_then(Value::as_str) != Some(&*group.uid) {
            return Err(WriteError::Gone);
        }
        let Some(status) = change(&found) else { return Ok(()) };
        let version = found.pointer("/metadata/resourceVersion");
        let patch = json!({"metadata": {"uid": &*group.uid, "resourceVersion": version}, "status": status});
        let write = Write::patch(format!("{path}/status"), "application/merge-patch+json", &patch);
        match write.send(client).await {
            Ok(_) => return Ok(()),
            Err(WriteError::Conflict(_)) if tries < TRIES => {}
            Err(error) => return Err(error),
        }
    }
}

/// The status of a scheduling.k8s.io PodGroup with the condition; `None` if unchanged.
fn native(found: &Value, scheduled: bool, reason: &str, message: &str) -> Option<Value> {
    let message = fluxion_text::clean(message);
    let message = message.as_ref();
    let mut conditions =
        found.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let of_ours = |condition: &Value| condition["type"] == INITIALLY_SCHEDULED;
    let before = conditions.iter().position(of_ours).map(|place| conditions.remove(place));
    let status = if scheduled { "True" } else { "False" };
    let mut time = json!(jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    if let Some(before) = before {
        if before["status"] == "True" {
            return None;
        }
        if before["status"] == status {
            if before["reason"] == reason && before["message"] == message {
                return None;
            }
            time = before["lastTransitionTime"].clone();
        }
    }
    conditions
        .push(json!({"type": INITIALLY_SCHEDULED, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": time}));
    Some(json!({"conditions": conditions}))
}

/// The fields to change in the status of a scheduling.x-k8s.io PodGroup; `None` if unchanged.
fn scheduler_plugins(found: &Value, status: &GroupStatus) -> Option<Value> {
    let mut wanted = json!({"phase": status.phase, "scheduled": status.scheduled, "running": status.running,
        "succeeded": status.succeeded, "failed": status.failed});
    if let Some(owner) = &status.occupied_by {
        wanted["occupiedBy"] = json!(owner);
    }
    let is = found.get("status").unwrap_or(&Value::Null);
    // scheduler-plugins omits counts of 0.
    let same = |key: &str, value: &Value| is[key] == *value || (is[key].is_null() && *value == 0);
    let changed = wanted.as_object()?.iter().any(|(key, value)| !same(key, value));
    if !changed {
        return None;
    }
    if status.phase != "Pending" && is["scheduleStartTime"].is_null() {
        wanted["scheduleStartTime"] =
            json!(jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    }
    Some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(status: &str, reason: &str) -> Value {
        json!({"status": {"conditions": [{"type": "Other"}, {"type": INITIALLY_SCHEDULED, "status": status,
            "reason": reason, "message": "m", "lastTransitionTime": "then"}]}})
    }

    #[test]
    fn once_started_it_is_never_taken_back() {
        assert_eq!(native(&with("True", "Scheduled"), false, "Unschedulable", "m"), None);
    }

    #[test]
    fn others_conditions_stay_and_the_time_changes_with_the_status_only() {
        let same = native(&with("False", "Unschedulable"), false, "SchedulerError", "m").unwrap();
        assert_eq!(same["conditions"][0]["type"], "Other");
        assert_eq!(same["conditions"][1]["lastTransitionTime"], "then");
        let turned = native(&with("False", "Unschedulable"), true, "Scheduled", "m").unwrap();
        assert_ne!(turned["conditions"][1]["lastTransitionTime"], "then");
        assert_eq!(native(&with("False", "Unschedulable"), false, "Unschedulable", "m"), None);
    }

    #[test]
    fn a_group_of_the_crd_gets_its_status_while_it_gathers_and_after() {
        let gathering = GroupStatus {
            phase: "Pending",
            scheduled: 0,
            running: 0,
            succeeded: 0,
            failed: 0,
            occupied_by: Some("a/job".to_owned()),
        };
        let written = scheduler_plugins(&json!({}), &gathering).unwrap();
        assert_eq!((&written["phase"], &written["occupiedBy"]), (&json!("Pending"), &json!("a/job")));
        assert!(written["scheduleStartTime"].is_null());
        assert_eq!(
            scheduler_plugins(&json!({"status": {"phase": "Pending", "occupiedBy": "a/job"}}), &gathering),
            None
        );
        let scheduled = GroupStatus { phase: "Scheduled", scheduled: 3, running: 1, ..gathering };
        let written = scheduler_plugins(&json!({"status": {"phase": "Pending"}}), &scheduled).unwrap();
        assert_eq!((&written["phase"], &written["running"]), (&json!("Scheduled"), &json!(1)));
        assert!(written["scheduleStartTime"].is_string());
        let later = scheduler_plugins(&json!({"status": {"scheduleStartTime": "then"}}), &scheduled).unwrap();
        assert!(later["scheduleStartTime"].is_null(), "what is there stays");
    }
}
