//! An empty cluster again, so that the next case finds nothing of the last.

use std::time::Duration;

use anyhow::{Result, bail};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PropagationPolicy};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use crate::apply::Applier;
use crate::wait;

/// Kinds whose objects go, owners before what they own.
const KINDS: [(&str, &str, &str); 9] = [
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "StatefulSet"),
    ("apps", "v1", "ReplicaSet"),
    ("apps", "v1", "DaemonSet"),
    ("batch", "v1", "Job"),
    ("", "v1", "Pod"),
    ("scheduling.k8s.io", "v1beta1", "PodGroup"),
    ("node.k8s.io", "v1", "RuntimeClass"),
    ("", "v1", "Node"),
];

/// Deletes what the case made (kind, namespace and name), all nodes, all workloads and the priority classes that
/// are not the system's.
pub(super) async fn clean(applier: &Applier, made: &[(GroupVersionKind, String, String)]) -> Result<()> {
    // The last first, but what decides about requests before everything: it could forbid the rest.
    let (admission, others): (Vec<_>, Vec<_>) =
        made.iter().rev().partition(|(kind, ..)| kind.group == "admissionregistration.k8s.io");
    for (kind, namespace, name) in admission.into_iter().chain(others) {
        if of_itself(kind) {
            continue;
        }
        if applier.get(kind, namespace, name).await?.is_some() {
            applier.delete(kind, namespace, name).await?;
        }
    }
    for (group, version, kind) in KINDS {
        remove_all(applier, &GroupVersionKind::gvk(group, version, kind), |_| true).await?;
    }
    let classes = GroupVersionKind::gvk("scheduling.k8s.io", "v1", "PriorityClass");
    remove_all(applier, &classes, |object| !object.name_any().starts_with("system-")).await?;
    let namespaces = GroupVersionKind::gvk("", "v1", "Namespace");
    let of_a_case =
        |object: &DynamicObject| object.metadata.labels.as_ref().is_some_and(|all| all.contains_key(MARK));
    for namespace in applier.list(&namespaces, None).await?.into_iter().filter(of_a_case) {
        // It takes seconds to go and hinders nobody meanwhile.
        let api: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(applier.client().clone());
        let _ = api.delete(&namespace.name_any(), &DeleteParams::default()).await;
    }
    Ok(())
}

/// Whether objects of the kind are deleted whoever made them, or need more than a request.
fn of_itself(kind: &GroupVersionKind) -> bool {
    kind.kind == "Namespace"
        || KINDS.iter().any(|(group, _, name)| kind.group == *group && kind.kind == *name)
}

/// The label of namespaces that a case made.
pub(super) const MARK: &str = "fluxion-tests/case";

async fn remove_all(
    applier: &Applier,
    kind: &GroupVersionKind,
    goes: fn(&DynamicObject) -> bool,
) -> Result<()> {
    wait::until(&format!("no {} is left", kind.kind), Duration::from_mins(1), || async {
        let (resource, _) = applier.kind(kind).await?;
        let left: Vec<DynamicObject> = applier.list(kind, None).await?.into_iter().filter(goes).collect();
        let count = left.len();
        futures::stream::iter(left)
            .map(|object| remove(applier.client(), &resource, object))
            .buffer_unordered(16)
            .try_collect::<()>()
            .await?;
        if count == 0 { Ok(()) } else { bail!("{count} are") }
    })
    .await
}

async fn remove(client: &Client, resource: &ApiResource, object: DynamicObject) -> Result<()> {
    let api: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let params = DeleteParams {
        grace_period_seconds: Some(0),
        propagation_policy: Some(PropagationPolicy::Background),
        ..DeleteParams::default()
    };
    // Somebody else may have been quicker: what counts is that it is gone in the end.
    let _ = api.delete(&object.name_any(), &params).await;
    let held = object
        .metadata
        .finalizers
        .as_ref()
        .is_some_and(|all| all.iter().any(|one| one.starts_with("example.com/")));
    if held {
        let free = json!({ "metadata": { "finalizers": null } });
        let _ = api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(&free)).await;
    }
    Ok(())
}
