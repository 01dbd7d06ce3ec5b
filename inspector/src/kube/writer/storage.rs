//! Writes to claims and volumes, in the term with a given number: for which node a volume is provisioned, and for which
//! claim one is reserved.

use fluxion_scheduler::event::BindOutcome;
use fluxion_scheduler::marks::SELECTED_AT;
use fluxion_scheduler::model::ObjectRef;
use kube::Client;
use serde_json::{Value, json};

use super::api::{Write, WriteError, segment};
use super::fence;
use crate::failpoint;
use crate::kube::translate::storage::SELECTED_NODE;

const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

fn claim_path(claim: &ObjectRef, term: u64) -> String {
    let (namespace, name) = (segment(&claim.namespace), segment(&claim.name));
    fence::path(&format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}"), term)
}

fn volume_path(volume: &ObjectRef, term: u64) -> String {
    fence::path(&format!("/api/v1/persistentvolumes/{}", segment(&volume.name)), term)
}

/// Asks for a volume for this node; `at` tells the next inspector since when.
pub(super) async fn select(
    client: &Client,
    claim: &ObjectRef,
    node: &str,
    at: i64,
    term: u64,
) -> Result<(), WriteError> {
    let patch = json!({"metadata": {
        "uid": &*claim.uid,
        "annotations": {SELECTED_NODE: node, SELECTED_AT: at.to_string()},
    }});
    failpoint::reached("select");
    let written = Write::patch(claim_path(claim, term), MERGE, &patch).send(client).await;
    failpoint::reached("selected");
    same_object(written)
}

/// No longer asks for it, unless another node was selected or the claim is another one.
pub(super) async fn deselect(
    client: &Client,
    claim: &ObjectRef,
    node: &str,
    term: u64,
) -> Result<(), WriteError> {
    let of = |key: &str| format!("/metadata/annotations/{}", key.replace('~', "~0").replace('/', "~1"));
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": &*claim.uid},
        {"op": "test", "path": of(SELECTED_NODE), "value": node},
        {"op": "remove", "path": of(SELECTED_NODE)},
        {"op": "remove", "path": of(SELECTED_AT)},
    ]);
    unless_changed(Write::patch(claim_path(claim, term), JSON_PATCH, &patch).send(client).await)
}

/// Reserves a volume that nobody has claimed at this version.
pub(super) async fn reserve(
    client: &Client,
    volume: &ObjectRef,
    version: &str,
    claim: &ObjectRef,
    term: u64,
) -> Result<(), WriteError> {
    let patch = json!({
        "metadata": {
            "uid": &*volume.uid,
            "resourceVersion": version,
            "annotations": {BOUND_BY_CONTROLLER: "yes"},
        },
        "spec": {"claimRef": {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "namespace": &*claim.namespace, "name": &*claim.name, "uid": &*claim.uid,
        }},
    });
    failpoint::reached("select");
    let written = Write::patch(volume_path(volume, term), MERGE, &patch).send(client).await;
    failpoint::reached("selected");
    match written {
        Err(WriteError::Conflict(_)) => {
            Err(WriteError::Refused("the PersistentVolume was changed by others".to_owned()))
        }
        other => same_object(other),
    }
}

/// No longer reserves it, unless it is bound or reserved for another claim.
pub(super) async fn free(
    client: &Client,
    volume: &ObjectRef,
    claim: &ObjectRef,
    term: u64,
) -> Result<(), WriteError> {
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": &*volume.uid},
        {"op": "test", "path": "/spec/claimRef/uid", "value": &*claim.uid},
        {"op": "test", "path": "/status/phase", "value": "Available"},
        {"op": "remove", "path": "/spec/claimRef"},
    ]);
    unless_changed(Write::patch(volume_path(volume, term), JSON_PATCH, &patch).send(client).await)
}

/// Another object of the same name is none.
fn same_object(written: Result<Value, WriteError>) -> Result<(), WriteError> {
    match written {
        Ok(_) => Ok(()),
        Err(WriteError::Conflict(_)) => Err(WriteError::Gone),
        Err(WriteError::Refused(why)) if why.contains("metadata.uid") => Err(WriteError::Gone),
        Err(error) => Err(error),
    }
}

/// A test that fails means that there is nothing to undo.
fn unless_changed(written: Result<Value, WriteError>) -> Result<(), WriteError> {
    match written {
        Ok(_) | Err(WriteError::Refused(_) | WriteError::Conflict(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// What the engine is told.
pub(super) fn outcome(done: &Result<(), WriteError>) -> BindOutcome {
    match done {
        Ok(()) => BindOutcome::Done,
        Err(WriteError::Gone) => BindOutcome::Gone("the object no longer exists".into()),
        Err(WriteError::Refused(why)) => BindOutcome::Refused(why.as_str().into()),
        Err(error) => BindOutcome::Transient(error.to_string().into()),
    }
}
