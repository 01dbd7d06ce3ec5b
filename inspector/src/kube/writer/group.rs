//! What a PodGroup's status says about its gang.

use fluxion_core::model::ObjectRef;
use kube::Client;
use serde_json::{Value, json};

use crate::kube::translate::group::INITIALLY_SCHEDULED;

use super::api::{Write, WriteError, segment};

/// A write that lost against another one is made again on what is there then, so often.
const TRIES: u32 = 4;

/// Writes it into a group of either API; once the gang has started that is never taken back.
pub(super) async fn scheduled(
    client: &Client,
    group: &ObjectRef,
    scheduled: bool,
    reason: &str,
    message: &str,
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
        let status = if group.api_version.starts_with("scheduling.k8s.io/") {
            native(&found, scheduled, reason, message)
        } else {
            sigs(&found, scheduled)
        };
        let Some(status) = status else { return Ok(()) };
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

/// The status of a scheduling.k8s.io group with the condition in it; `None` when there is nothing to write.
fn native(found: &Value, scheduled: bool, reason: &str, message: &str) -> Option<Value> {
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

/// The status of a scheduling.x-k8s.io group: its phase, and how many Pods of it were placed at least.
fn sigs(found: &Value, scheduled: bool) -> Option<Value> {
    let phase = found.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    let started = ["Scheduled", "Running", "Finished", "Failed"].contains(&phase);
    if started || (!scheduled && phase == "Pending") {
        return None;
    }
    if !scheduled {
        return Some(json!({"phase": "Pending"}));
    }
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    Some(
        json!({"phase": "Scheduled", "scheduled": found.pointer("/spec/minMember"), "scheduleStartTime": now}),
    )
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
        assert_eq!(sigs(&json!({"status": {"phase": "Running"}}), false), None);
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
    fn a_group_of_the_crd_gets_its_phase() {
        let group = json!({"spec": {"minMember": 3}});
        let status = sigs(&group, true).unwrap();
        assert_eq!((&status["phase"], &status["scheduled"]), (&json!("Scheduled"), &json!(3)));
        assert_eq!(sigs(&group, false), Some(json!({"phase": "Pending"})));
    }
}
