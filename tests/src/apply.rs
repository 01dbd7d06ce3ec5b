//! Objects of any kind: created, applied, patched and deleted by their manifest.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiCapabilities, Scope, pinned_kind};
use kube::{Api, Client};
use serde_json::Value;

use crate::wait;

/// Field manager of what tests apply.
const MANAGER: &str = "fluxion-tests";

/// Talks about objects of any kind; remembers what it learned about kinds.
pub struct Applier {
    client: Client,
    kinds: Mutex<HashMap<GroupVersionKind, (ApiResource, ApiCapabilities)>>,
}

/// The documents of a YAML text, empty ones left out.
pub fn documents(yaml: &str) -> Result<Vec<Value>> {
    let all: Vec<Value> = serde_saphyr::from_multiple(yaml).context("reading YAML")?;
    Ok(all.into_iter().filter(|value| !value.is_null()).collect())
}

impl Applier {
    /// Acts with the client's rights.
    pub fn new(client: Client) -> Self {
        Self { client, kinds: Mutex::default() }
    }

    /// The client it acts with.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Creates objects, in order; see [`Applier::create`].
    pub async fn create_all(&self, objects: impl IntoIterator<Item = Value>) -> Result<()> {
        for object in objects {
            self.create(object).await?;
        }
        Ok(())
    }

    /// Creates the object; its namespace is `default` when it names none. A terminating object of its name is
    /// waited for.
    pub async fn create(&self, object: Value) -> Result<DynamicObject> {
        let object = parse(object)?;
        let api = self.api_of(&object).await?;
        let name = object.metadata.name.clone().unwrap_or_default();
        let mut tries = 0;
        loop {
            match api.create(&PostParams::default(), &object).await {
                Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" && tries < 100 => {
                    let old = api
                        .get_opt(&name)
                        .await
                        .with_context(|| format!("looking at {}", describe(&object)))?;
                    if old.is_some_and(|old| old.metadata.deletion_timestamp.is_none()) {
                        return Err(kube::Error::Api(status))
                            .with_context(|| format!("creating {}", describe(&object)));
                    }
                    tries += 1;
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                answer => return answer.with_context(|| format!("creating {}", describe(&object))),
            }
        }
    }

    /// Server-side apply of one object.
    pub async fn apply(&self, object: Value) -> Result<DynamicObject> {
        let object = parse(object)?;
        let api = self.api_of(&object).await?;
        let name = object.metadata.name.clone().context("an object to apply needs metadata.name")?;
        let params = PatchParams::apply(MANAGER).force();
        api.patch(&name, &params, &Patch::Apply(&object))
            .await
            .with_context(|| format!("applying {}", describe(&object)))
    }

    /// Server-side apply of all documents of a YAML text, in order.
    pub async fn apply_yaml(&self, yaml: &str) -> Result<Vec<DynamicObject>> {
        let mut applied = Vec::new();
        for object in documents(yaml)? {
            applied.push(self.apply(object).await?);
        }
        Ok(applied)
    }

    /// Patches an object or a subresource of it, as `kubectl patch` does: strategic where the kind is built in,
    /// else a merge.
    pub async fn patch(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
        subresource: Option<&str>,
        patch: &Value,
    ) -> Result<DynamicObject> {
        let api = self.api(kind, Some(namespace)).await?;
        let built_in = !kind.group.contains('.')
            || kind.group.ends_with(".k8s.io") && !kind.group.ends_with(".x-k8s.io");
        let patch = if built_in { Patch::Strategic(patch) } else { Patch::Merge(patch) };
        let params = PatchParams::default();
        let answer = match subresource {
            None => api.patch(name, &params, &patch).await,
            Some("status") => api.patch_status(name, &params, &patch).await,
            Some(other) => api.patch_subresource(other, name, &params, &patch).await,
        };
        answer.with_context(|| format!("patching {} {namespace}/{name}", kind.kind))
    }

    /// Deletes an object, and waits until it is gone or only finalizers hold it.
    pub async fn delete(&self, kind: &GroupVersionKind, namespace: &str, name: &str) -> Result<()> {
        let api = self.api(kind, Some(namespace)).await?;
        let label = format!("{} {namespace}/{name}", kind.kind);
        api.delete(name, &DeleteParams::background()).await.with_context(|| format!("deleting {label}"))?;
        wait::until(&format!("{label} is gone"), Duration::from_secs(30), || async {
            match api.get_opt(name).await? {
                Some(object) if object.metadata.finalizers.as_ref().is_none_or(Vec::is_empty) => {
                    anyhow::bail!("it is still there")
                }
                _ => Ok(()),
            }
        })
        .await
    }

    /// The object, or `None`.
    pub async fn get(
        &self,
        kind: &GroupVersionKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<DynamicObject>> {
        let api = self.api(kind, Some(namespace)).await?;
        api.get_opt(name).await.with_context(|| format!("looking at {} {namespace}/{name}", kind.kind))
    }

    /// All objects of the kind, in a namespace or everywhere.
    pub async fn list(&self, kind: &GroupVersionKind, namespace: Option<&str>) -> Result<Vec<DynamicObject>> {
        let (resource, _) = self.kind(kind).await?;
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let list =
            api.list(&ListParams::default()).await.with_context(|| format!("listing {}", kind.kind))?;
        Ok(list.items)
    }

    async fn api_of(&self, object: &DynamicObject) -> Result<Api<DynamicObject>> {
        let types = object.types.as_ref().context("an object needs apiVersion and kind")?;
        let kind = GroupVersionKind::try_from(types).context("an apiVersion is GROUP/VERSION")?;
        self.api(&kind, object.metadata.namespace.as_deref()).await
    }

    async fn api(&self, kind: &GroupVersionKind, namespace: Option<&str>) -> Result<Api<DynamicObject>> {
        let (resource, capabilities) = self.kind(kind).await?;
        Ok(match capabilities.scope {
            Scope::Cluster => Api::all_with(self.client.clone(), &resource),
            Scope::Namespaced => {
                Api::namespaced_with(self.client.clone(), namespace.unwrap_or("default"), &resource)
            }
        })
    }

    /// How the kind is called in paths, and its scope.
    pub(crate) async fn kind(&self, kind: &GroupVersionKind) -> Result<(ApiResource, ApiCapabilities)> {
        let known = self.kinds.lock().unwrap_or_else(PoisonError::into_inner).get(kind).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = pinned_kind(&self.client, kind).await.with_context(|| {
            format!("asking the API server about {} of {}", kind.kind, kind.api_version())
        })?;
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner).insert(kind.clone(), found.clone());
        Ok(found)
    }
}

fn parse(object: Value) -> Result<DynamicObject> {
    serde_json::from_value(object).context("an object needs apiVersion, kind and metadata")
}

fn describe(object: &DynamicObject) -> String {
    let kind = object.types.as_ref().map_or("object", |types| types.kind.as_str());
    let name = object
        .metadata
        .name
        .as_deref()
        .or(object.metadata.generate_name.as_deref())
        .unwrap_or("without a name");
    match &object.metadata.namespace {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_documents_are_left_out() {
        let found = documents("---\n# nothing\n---\nkind: A\n---\nkind: B\n").unwrap();
        assert_eq!(found.iter().map(|value| value["kind"].as_str().unwrap()).collect::<Vec<_>>(), ["A", "B"]);
    }

    #[test]
    fn objects_are_named_in_errors() {
        let object = parse(serde_json::json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "web", "namespace": "team" }
        }))
        .unwrap();
        assert_eq!(describe(&object), "Pod team/web");
    }
}
