//! Deletes an object, but no other object of the same name.

use fluxion_scheduler::model::ObjectRef;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;
use serde_json::json;

use super::api::{Write, WriteError, segment};
use crate::deletion::{Deletion, DeletionError};
use crate::plural::plural;

/// Deletes objects for users, outside the order of the engine's effects.
pub struct Deleter {
    client: Client,
}

impl Deleter {
    /// With the permissions of this client.
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

impl std::fmt::Debug for Deleter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Deleter").finish_non_exhaustive()
    }
}

impl Deletion for Deleter {
    fn delete<'a>(&'a self, target: &'a ObjectRef) -> BoxFuture<'a, Result<(), DeletionError>> {
        async move {
            match object(&self.client, target).await {
                Ok(()) | Err(WriteError::Gone) => Ok(()),
                Err(WriteError::Transient(why)) => Err(DeletionError::Unavailable(why)),
                Err(error) => Err(DeletionError::Refused(error.to_string())),
            }
        }
        .boxed()
    }
}

pub(super) async fn object(client: &Client, object: &ObjectRef) -> Result<(), WriteError> {
    at_version(client, object, None).await
}

/// The same, but only at this version, if any: otherwise, it is a conflict.
pub(super) async fn at_version(
    client: &Client,
    object: &ObjectRef,
    version: Option<&str>,
) -> Result<(), WriteError> {
    let mut preconditions = json!({"uid": &*object.uid});
    if let Some(version) = version {
        preconditions["resourceVersion"] = json!(version);
    }
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
        "preconditions": preconditions});
    match Write::json("DELETE", path(object), &options).send(client).await {
        Ok(_) => Ok(()),
        Err(WriteError::Conflict(why)) if why.contains("ResourceVersion in ") => {
            Err(WriteError::Conflict(why))
        }
        // The only other precondition: the UID.
        Err(WriteError::Conflict(_)) => Err(WriteError::Gone),
        Err(error) => Err(error),
    }
}

fn path(object: &ObjectRef) -> String {
    let root = if object.api_version.contains('/') { "apis" } else { "api" };
    let api_version: Vec<_> = object.api_version.split('/').map(segment).collect();
    format!(
        "/{root}/{}/namespaces/{}/{}/{}",
        api_version.join("/"),
        segment(&object.namespace),
        plural(&segment(&object.kind)),
        segment(&object.name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_core_and_other_kinds() {
        let at = |api_version: &str, kind: &str| {
            let (namespace, name, uid) = ("a".into(), "x".into(), "u".into());
            path(&ObjectRef { namespace, kind: kind.into(), api_version: api_version.into(), name, uid })
        };
        assert_eq!(at("v1", "Pod"), "/api/v1/namespaces/a/pods/x");
        assert_eq!(at("batch/v1", "Job"), "/apis/batch/v1/namespaces/a/jobs/x");
    }
}
