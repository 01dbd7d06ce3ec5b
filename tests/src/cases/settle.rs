//! When a cluster has come to rest: nothing in it changed for a while.

use std::time::Duration;

use anyhow::Result;
use fluxion_api::FluxionJob;
use fluxion_api::client::Selection;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::time::Instant;

use crate::inspector::Inspector;

/// So long nothing may change.
const QUIET: Duration = Duration::from_millis(900);
/// Then it is taken as it is: the checks wait for themselves.
const LIMIT: Duration = Duration::from_secs(8);
const PAUSE: Duration = Duration::from_millis(150);

/// Waits until Pods, nodes and jobs stay as they are.
pub(super) async fn settle(client: &Client, inspector: &Inspector) -> Result<()> {
    let start = Instant::now();
    let mut last = picture(client, inspector).await?;
    let mut since = Instant::now();
    while since.elapsed() < QUIET && start.elapsed() < LIMIT {
        tokio::time::sleep(PAUSE).await;
        let now = picture(client, inspector).await?;
        if now != last {
            last = now;
            since = Instant::now();
        }
    }
    Ok(())
}

/// Everything whose change means that something still moves.
async fn picture(client: &Client, inspector: &Inspector) -> Result<Vec<String>> {
    let all = ListParams::default();
    let mut seen = Vec::new();
    let mut versions = |metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta| {
        let uid = metadata.uid.as_deref().unwrap_or_default();
        seen.push(format!("{uid} {}", metadata.resource_version.as_deref().unwrap_or_default()));
    };
    for pod in Api::<Pod>::all(client.clone()).list_metadata(&all).await? {
        versions(&pod.metadata);
    }
    for node in Api::<Node>::all(client.clone()).list_metadata(&all).await? {
        versions(&node.metadata);
    }
    // An inspector that does not answer yet is a picture, too.
    if let Ok(jobs) = inspector.client()?.list::<FluxionJob>(&Selection::default()).await {
        for job in jobs.items {
            let (meta, status) = (&job.metadata, &job.status);
            seen.push(format!("{:?} {} {} {:?}", meta.namespace, meta.name, status.state, status.members));
        }
    }
    seen.sort();
    Ok(seen)
}
