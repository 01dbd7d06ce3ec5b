//! Releases a Pod: it gets the condition `DisruptionTarget`, so that a Job's podFailurePolicy can ignore it, and is
//! evicted, so that `PodDisruptionBudgets` are respected. It is deleted only if evictions are not supported.

use fluxion_scheduler::event::LET_GO;
use fluxion_scheduler::model::ObjectRef;
use kube::Client;
use serde_json::json;

use super::api::{Write, WriteError};
use super::{bind, condition, delete, fence};

/// How often a Pod that is changed by others at the same time is marked again.
const TRIES: u32 = 5;

/// In the term with this number; `job` is its job's ID in logs.
pub(super) async fn pod(
    client: &Client,
    pod: &ObjectRef,
    why: &str,
    job: Option<&str>,
    term: u64,
) -> Result<(), WriteError> {
    let mut done = attempt(client, pod, why, job, term).await;
    for _ in 1..TRIES {
        if !matches!(done, Err(WriteError::Conflict(_))) {
            break;
        }
        done = attempt(client, pod, why, job, term).await;
    }
    done
}

/// A conflict means that the Pod was changed after it had been marked.
async fn attempt(
    client: &Client,
    pod: &ObjectRef,
    why: &str,
    job: Option<&str>,
    term: u64,
) -> Result<(), WriteError> {
    let version = match condition::disrupted(client, pod, LET_GO, why, term).await {
        Ok(version) => version,
        Err(WriteError::Gone) => return Err(WriteError::Gone),
        // It counts as a failure of its Job, but a partially bound gang would occupy nodes forever.
        Err(error) => {
            tracing::warn!(job, namespace = %pod.namespace, pod = %pod.name, %error,
                "failed to set the DisruptionTarget condition of an evicted Pod");
            None
        }
    };
    let eviction = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": &*pod.name, "namespace": &*pod.namespace},
        "deleteOptions": {"preconditions": {"uid": &*pod.uid}},
    });
    let path = fence::path(&format!("{}/eviction", bind::path(pod)), term);
    match Write::json("POST", path, &eviction).send(client).await {
        Ok(_) => Ok(()),
        // The only possible conflict: a different UID.
        Err(WriteError::Conflict(_)) => Err(WriteError::Gone),
        // Forbidden, or not served. A PodDisruptionBudget results in 429, which is retried later. A deletion names no
        // term: the fence reads the term of its mark, which it requires by the version.
        Err(WriteError::Refused(_)) => delete::at_version(client, pod, version.as_deref()).await,
        Err(error) => Err(error),
    }
}
