//! PodScheduled=False and why.

use fluxion_core::model::ObjectRef;
use fluxion_text::clean;
use kube::Client;
use serde_json::json;

use super::api::{Write, WriteError};
use super::bind;

/// Writes the condition. The uid in the patch is the fence: another Pod of the name refuses it. When the condition
/// was False before, it has not changed over now, and keeps its time.
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
        condition["lastTransitionTime"] =
            json!(jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    }
    let patch = json!({"metadata": {"uid": &*pod.uid}, "status": {"conditions": [condition]}});
    let path = format!("{}/status", bind::path(pod));
    match Write::patch(path, "application/strategic-merge-patch+json", &patch).send(client).await {
        Ok(_) => Ok(()),
        Err(WriteError::Refused(why)) if why.contains("metadata.uid") => Err(WriteError::Gone),
        Err(error) => Err(error),
    }
}
