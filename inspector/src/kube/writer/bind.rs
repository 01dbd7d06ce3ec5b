//! Bindings: sets the node of the Pod with this UID, and its allocation record in the same write.

use fluxion_scheduler::event::BindOutcome;
use fluxion_scheduler::model::{AllocationRecord, ObjectRef};
use kube::Client;
use serde_json::{Value, json};

use crate::kube::translate::ALLOCATION;

use super::api::{Write, WriteError, segment};
use super::fence;

/// Binds a Pod, in the term with this number, and determines the outcome.
pub(super) async fn bind(
    client: &Client,
    pod: &ObjectRef,
    node: &str,
    record: &AllocationRecord,
    term: u64,
) -> BindOutcome {
    let record = match serde_json::to_string(record) {
        Ok(record) => record,
        Err(error) => return BindOutcome::Refused(format!("invalid allocation record: {error}").into()),
    };
    let body = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": &*pod.name, "namespace": &*pod.namespace, "uid": &*pod.uid,
            "annotations": {ALLOCATION: record}},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let path = fence::path(&format!("{}/binding", path(pod)), term);
    match Write::json("POST", path, &body).send(client).await {
        Ok(_) => BindOutcome::Done,
        Err(WriteError::Gone) => BindOutcome::Gone("the Pod no longer exists".into()),
        // Conflicts only differ in their message: the Pod shows what happened.
        Err(WriteError::Conflict(why)) => look(client, pod, node, &why).await,
        Err(WriteError::Refused(why)) => BindOutcome::Refused(why.into()),
        Err(WriteError::Transient(why)) => BindOutcome::Transient(why.into()),
        Err(WriteError::Dropped) => BindOutcome::Transient("the request was not sent".into()),
    }
}

/// The label of an outcome in metrics.
pub(super) fn word(outcome: &BindOutcome) -> &'static str {
    match outcome {
        BindOutcome::Done => "done",
        BindOutcome::Gone(_) => "gone",
        BindOutcome::Elsewhere(_) => "elsewhere",
        BindOutcome::Transient(_) => "transient",
        BindOutcome::Refused(_) => "refused",
    }
}

pub(super) fn path(pod: &ObjectRef) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", segment(&pod.namespace), segment(&pod.name))
}

/// Reads the Pod after a conflict.
async fn look(client: &Client, pod: &ObjectRef, node: &str, why: &str) -> BindOutcome {
    let read = Write { method: "GET", path: path(pod), content_type: "application/json", body: Vec::new() };
    match read.send(client).await {
        Ok(found) => judge(&found, &pod.uid, node, why),
        Err(WriteError::Gone) => BindOutcome::Gone("the Pod no longer exists".into()),
        // Its state is unknown: retry.
        Err(_) => BindOutcome::Transient(why.into()),
    }
}

/// The outcome according to a Pod that could not be bound.
fn judge(found: &Value, uid: &str, node: &str, why: &str) -> BindOutcome {
    let at = |path: &str| found.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty());
    if at("/metadata/uid") != Some(uid) {
        return BindOutcome::Gone("another Pod has the same name".into());
    }
    match at("/spec/nodeName") {
        Some(on) if on == node => BindOutcome::Done,
        Some(on) => BindOutcome::Elsewhere(on.into()),
        None if at("/metadata/deletionTimestamp").is_some() => {
            BindOutcome::Gone("the Pod is being deleted".into())
        }
        None if found.pointer("/spec/schedulingGates/0").is_some() => BindOutcome::Refused(why.into()),
        None => BindOutcome::Transient(why.into()),
    }
}
