//! Pod conditions: why a Pod is not scheduled, what is reserved for its job, and that it is about to be evicted.

use fluxion_scheduler::model::{ObjectRef, ReservationRecord};
use fluxion_text::clean;
use kube::Client;
use serde_json::{Value, json};

use super::api::{Write, WriteError};
use super::{bind, fence};
use crate::kube::translate::reservation::{REASON, RESERVED, message};

/// Writes the condition. Because the patch contains the UID, it is rejected for another Pod of the same name. If the
/// condition was already False, its transition time is kept.
pub(super) async fn unscheduled(
    client: &Client,
    pod: &ObjectRef,
    reason: &str,
    message: &str,
    was_false: bool,
) -> Result<(), WriteError> {
    let mut condition =
        json!({"type": "PodScheduled", "status": "False", "reason": reason, "message": clean(message)});
    if !was_false {
        condition["lastTransitionTime"] = json!(now());
    }
    write(client, status_path(pod), pod, &condition).await.map(drop)
}

/// Sets the condition of a Pod about to be evicted, for the podFailurePolicy of Jobs, in the term with this number;
/// returns the Pod's version with it.
pub(super) async fn disrupted(
    client: &Client,
    pod: &ObjectRef,
    reason: &str,
    message: &str,
    term: u64,
) -> Result<Option<String>, WriteError> {
    let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": reason, "message": clean(message),
        "lastTransitionTime": now()});
    let written = write(client, fence::path(&status_path(pod), term), pod, &condition).await?;
    Ok(written.pointer("/metadata/resourceVersion").and_then(Value::as_str).map(str::to_owned))
}

/// Stores the reservation of the Pod's job in its condition, or removes that.
pub(super) async fn reserved(
    client: &Client,
    pod: &ObjectRef,
    reservation: Option<&ReservationRecord>,
) -> Result<(), WriteError> {
    let condition = match reservation.and_then(message) {
        Some(message) => json!({"type": RESERVED, "status": "True", "reason": REASON, "message": message,
            "lastTransitionTime": now()}),
        None => json!({"type": RESERVED, "$patch": "delete"}),
    };
    write(client, status_path(pod), pod, &condition).await.map(drop)
}

fn status_path(pod: &ObjectRef) -> String {
    format!("{}/status", bind::path(pod))
}

async fn write(
    client: &Client,
    path: String,
    pod: &ObjectRef,
    condition: &Value,
) -> Result<Value, WriteError> {
    let patch = json!({"metadata": {"uid": &*pod.uid}, "status": {"conditions": [condition]}});
    match Write::patch(path, "application/strategic-merge-patch+json", &patch).send(client).await {
        Err(WriteError::Refused(why)) if why.contains("metadata.uid") => Err(WriteError::Gone),
        written => written,
    }
}

fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
