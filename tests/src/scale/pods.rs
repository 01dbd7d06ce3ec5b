//! Many Pods: created many at once, removed page by page.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::{StreamExt as _, TryStreamExt as _};
use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;

use crate::wait;

/// Requests under way at once.
const IN_FLIGHT: usize = 32;
/// Names listed, and Pods removed, at a time.
const PAGE: u32 = 500;

/// Creates Pods from their manifests, each in the namespace that its manifest names.
pub async fn create(client: &Client, manifests: impl Iterator<Item = Value>) -> Result<()> {
    futures::stream::iter(manifests)
        .map(|manifest| async move {
            let namespace = manifest["metadata"]["namespace"].as_str().unwrap_or("default");
            let request = Request::post(format!("/api/v1/namespaces/{namespace}/pods"))
                .header("content-type", "application/json")
                .body(manifest.to_string().into_bytes())?;
            client.request_text(request).await.context("creating a Pod")?;
            anyhow::Ok(())
        })
        .buffer_unordered(IN_FLIGHT)
        .try_collect()
        .await
}

/// Removes all Pods of all namespaces. One request for all of them takes longer than the API server lets it.
pub async fn remove_all(client: &Client) -> Result<()> {
    let pods: Api<Pod> = Api::all(client.clone());
    loop {
        let page = pods.list_metadata(&ListParams::default().limit(PAGE)).await?;
        if page.items.is_empty() {
            return Ok(());
        }
        futures::stream::iter(page.items)
            .map(|pod| async move {
                let path = format!(
                    "/api/v1/namespaces/{}/pods/{}",
                    pod.namespace().unwrap_or_default(),
                    pod.name_any()
                );
                let request = Request::delete(format!("{path}?gracePeriodSeconds=0")).body(Vec::new())?;
                match client.request_text(request).await {
                    Ok(_) => Ok(()),
                    Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                    Err(error) => Err(error).context("removing a Pod"),
                }
            })
            .buffer_unordered(IN_FLIGHT)
            .try_collect::<()>()
            .await?;
    }
}

/// Creates namespaces that Pods may be created in.
pub async fn namespaces(client: &Client, names: &[String]) -> Result<()> {
    for name in names {
        let body = serde_json::json!({ "metadata": { "name": name } }).to_string().into_bytes();
        let request =
            Request::post("/api/v1/namespaces").header("content-type", "application/json").body(body)?;
        match client.request_text(request).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
            Err(error) => return Err(error).context("creating a namespace"),
        }
    }
    for name in names {
        wait::until(&format!("namespace {name} is usable"), Duration::from_mins(2), || async {
            let path = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
            match client.request_text(Request::get(path).body(Vec::new())?).await {
                Ok(_) => Ok(()),
                Err(error) => bail!("{error}"),
            }
        })
        .await?;
    }
    Ok(())
}
