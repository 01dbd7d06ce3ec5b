//! Bindings a second: as a watch of kube-apiserver tells, and how many it takes at most.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use futures::{AsyncBufReadExt as _, StreamExt as _, TryStreamExt as _};
use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tokio::task::JoinHandle;

/// The longest that all bindings may take.
const PATIENCE: Duration = Duration::from_mins(30);

/// Bindings a second from the first to the last of this many, of those that begin from now on.
pub async fn rate(client: &Client, wanted: usize) -> Result<JoinHandle<Result<f64>>> {
    let (before, version) = bound(client).await?;
    let mut lines = watch(client, &version).await?;
    let client = client.clone();
    Ok(tokio::spawn(async move {
        let mut seen = 0;
        let mut first = Instant::now();
        let look = async {
            loop {
                match lines.next().await {
                    Some(Ok(line)) if line.starts_with(r#"{"type":"ADDED""#) => seen += 1,
                    Some(Ok(line)) if !line.starts_with(r#"{"type":"ERROR""#) => continue,
                    // Who reads too slowly is thrown out.
                    _ => {
                        let (now, version) = bound(&client).await?;
                        seen = now.saturating_sub(before);
                        lines = watch(&client, &version).await?;
                    }
                }
                if seen <= 1 {
                    first = Instant::now();
                }
                if seen >= wanted {
                    #[allow(clippy::cast_precision_loss, reason = "a few hundred thousand Pods")]
                    return anyhow::Ok((wanted - 1) as f64 / first.elapsed().as_secs_f64());
                }
            }
        };
        match tokio::time::timeout(PATIENCE, look).await {
            Ok(rate) => rate,
            Err(_) => bail!("only {seen} of {wanted} Pods were bound in {} minutes", PATIENCE.as_secs() / 60),
        }
    }))
}

/// What is bound enters this selection, so nothing has to be parsed.
const BOUND: &str = "spec.nodeName!=";

/// How many Pods are bound, and at which version.
async fn bound(client: &Client) -> Result<(usize, String)> {
    let pods: Api<Pod> = Api::all(client.clone());
    let (mut count, mut page) = (0, ListParams::default().fields(BOUND).limit(2000));
    loop {
        let list = pods.list_metadata(&page).await?;
        count += list.items.len();
        page.continue_token = list.metadata.continue_.filter(|token| !token.is_empty());
        if page.continue_token.is_none() {
            return Ok((count, list.metadata.resource_version.unwrap_or_default()));
        }
    }
}

type Lines = futures::stream::BoxStream<'static, std::io::Result<String>>;

async fn watch(client: &Client, version: &str) -> Result<Lines> {
    let selected = BOUND.replace('=', "%3D");
    let path = format!("/api/v1/pods?watch=true&fieldSelector={selected}&resourceVersion={version}");
    Ok(client.request_stream(Request::get(path).body(Vec::new())?).await?.lines().boxed())
}

/// Bindings a second when nothing is decided: requests of the same content as the inspector's, so many at once, for Pods that
/// exist, round the nodes.
pub async fn raw(client: &Client, in_flight: usize, pods: &[(String, String)], nodes: usize) -> Result<f64> {
    let counted = rate(client, pods.len()).await?;
    futures::stream::iter(pods.iter().enumerate())
        .map(|(index, (name, uid))| async move {
            let record =
                json!({ "job": format!("group/gang-{}", index / 8), "uid": uid, "start": 1_767_225_600 });
            let body = json!({
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": { "name": name, "namespace": "default", "uid": uid,
                    "annotations": { "fluxion.flux-framework.org/allocation": record.to_string() } },
                "target": { "apiVersion": "v1", "kind": "Node", "name": format!("node-{}", index % nodes) },
            });
            let request = Request::post(format!("/api/v1/namespaces/default/pods/{name}/binding"))
                .header("content-type", "application/json")
                .body(body.to_string().into_bytes())?;
            client.request_text(request).await?;
            anyhow::Ok(())
        })
        .buffer_unordered(in_flight)
        .try_collect::<()>()
        .await?;
    counted.await?
}

/// Names and UIDs of all Pods of namespace `default`.
pub async fn names(client: &Client) -> Result<Vec<(String, String)>> {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let mut found = Vec::new();
    let mut next = None;
    loop {
        let mut page = ListParams::default().limit(2000);
        page.continue_token = next;
        let page = pods.list_metadata(&page).await?;
        found.extend(page.items.iter().map(|pod| (pod.name_any(), pod.uid().unwrap_or_default())));
        next = page.metadata.continue_.filter(|token| !token.is_empty());
        if next.is_none() {
            return Ok(found);
        }
    }
}
