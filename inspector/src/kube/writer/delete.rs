//! Deleting a Pod, and no other of its name.

use fluxion_core::model::ObjectRef;
use kube::Client;
use serde_json::json;

use super::api::{Write, WriteError};
use super::bind;

pub(super) async fn pod(client: &Client, pod: &ObjectRef) -> Result<(), WriteError> {
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": &*pod.uid}});
    match Write::json("DELETE", bind::path(pod), &options).send(client).await {
        Ok(_) => Ok(()),
        // The only conflict there can be: the uid is another one's.
        Err(WriteError::Conflict(_)) => Err(WriteError::Gone),
        Err(error) => Err(error),
    }
}
