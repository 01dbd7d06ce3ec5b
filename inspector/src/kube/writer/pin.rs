//! Pins a Pod at our scheduling gate to its node and removes the gate, with its allocation record, in one write.
//!
//! Afterwards, neither the pin nor the gate can be changed, so a Pod that was changed in the meantime is read again.

use fluxion_scheduler::event::BindOutcome;
use fluxion_scheduler::model::{AllocationRecord, ObjectRef};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use serde_json::{Value, json};

use crate::failpoint;
use crate::kube::pin;
use crate::kube::translate::ALLOCATION;

use super::api::{Write, WriteError};
use super::bind::path;
use super::fence;

/// How often a Pod that is changed by others at the same time is read again.
const TRIES: u32 = 5;

/// Pins a Pod, in the term with this number, and determines the outcome; `Done` does not mean that it is bound.
pub(super) async fn pin(
    client: &Client,
    pod: &ObjectRef,
    node: &str,
    record: &AllocationRecord,
    term: u64,
) -> BindOutcome {
    for _ in 0..TRIES {
        let read =
            Write { method: "GET", path: path(pod), content_type: "application/json", body: Vec::new() };
        let found = match read.send(client).await {
            Ok(found) => found,
            Err(error) => return outcome(error),
        };
        let mut found: Pod = match serde_json::from_value(found) {
            Ok(found) => found,
            Err(error) => return BindOutcome::Refused(format!("the Pod can't be read: {error}").into()),
        };
        if let Some(outcome) = decided(&found, &pod.uid, node) {
            return outcome;
        }
        let patch = match patch(&mut found, node, record) {
            Ok(patch) => patch,
            Err(error) => return BindOutcome::Refused(format!("the Pod can't be patched: {error}").into()),
        };
        failpoint::reached("pin");
        let path = fence::path(&path(pod), term);
        let written = Write::patch(path, "application/merge-patch+json", &patch).send(client).await;
        failpoint::reached("pinned");
        match written {
            Ok(_) => return BindOutcome::Done,
            Err(WriteError::Conflict(_)) => {}
            Err(error) => return outcome(error),
        }
    }
    BindOutcome::Transient("the Pod is being changed by others".into())
}

fn outcome(error: WriteError) -> BindOutcome {
    match error {
        WriteError::Gone => BindOutcome::Gone("the Pod no longer exists".into()),
        WriteError::Refused(why) => BindOutcome::Refused(why.into()),
        WriteError::Conflict(why) | WriteError::Transient(why) => BindOutcome::Transient(why.into()),
        WriteError::Dropped => BindOutcome::Transient("the request was not sent".into()),
    }
}

/// The outcome, if the Pod can't or need not be pinned.
fn decided(found: &Pod, uid: &str, node: &str) -> Option<BindOutcome> {
    if found.metadata.uid.as_deref() != Some(uid) {
        return Some(BindOutcome::Gone("another Pod has the same name".into()));
    }
    let spec = found.spec.as_ref()?;
    if let Some(on) = spec.node_name.as_deref().filter(|on| !on.is_empty()) {
        let there = if on == node { BindOutcome::Done } else { BindOutcome::Elsewhere(on.into()) };
        return Some(there);
    }
    if found.metadata.deletion_timestamp.is_some() {
        return Some(BindOutcome::Gone("the Pod is being deleted".into()));
    }
    if pin::is_gated(spec) {
        return None;
    }
    // An earlier attempt, maybe of another inspector; otherwise, somebody else has removed the gate.
    let text = found.metadata.annotations.as_ref().and_then(|all| all.get(ALLOCATION));
    let record = text.and_then(|text| serde_json::from_str::<AllocationRecord>(text).ok());
    let pin = record.and_then(|record| record.pin).filter(|pin| pin::is_pinned(spec, &pin.node));
    Some(match pin {
        Some(pin) if *pin.node == *node => BindOutcome::Done,
        Some(pin) => BindOutcome::Elsewhere(pin.node),
        None => BindOutcome::Gone("its scheduling gate was removed by another client".into()),
    })
}

/// Fenced by UID and version.
fn patch(found: &mut Pod, node: &str, record: &AllocationRecord) -> Result<Value, serde_json::Error> {
    let record = serde_json::to_string(record)?;
    let spec = found.spec.get_or_insert_default();
    pin::pin(spec, node);
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required =
        affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    Ok(json!({
        "metadata": {
            "uid": found.metadata.uid,
            "resourceVersion": found.metadata.resource_version,
            "annotations": {ALLOCATION: record},
        },
        "spec": {
            "schedulingGates": spec.scheduling_gates,
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        },
    }))
}
