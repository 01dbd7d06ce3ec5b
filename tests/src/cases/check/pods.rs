//! Checks of Pods: whether, how many and where they are bound, by the API server's word.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use fluxion_api::FluxionJob;
use fluxion_api::client::Selection;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::Value;

use super::super::model::Check;
use super::{World, reasons};

/// One Pod.
pub(super) async fn one(world: &World<'_>, name: &str, check: &Check) -> Result<()> {
    if world.cluster.is_none() {
        return by_allocation(world, name, check).await;
    }
    let pods: Api<Pod> = Api::namespaced(world.client()?.clone(), check.namespace());
    let Some(pod) = pods.get_opt(name).await? else { bail!("there is no such Pod") };
    if !bound_as(check.bound.as_ref(), node(&pod))? {
        bail!("it is not bound; {}", reasons::of_pod(world, &pod).await?);
    }
    match &check.reason_mentions {
        Some(words) => reasons::mentions(&reasons::of_pod(world, &pod).await?, words),
        None => Ok(()),
    }
}

/// Whether it is bound as wanted; an error when it is bound where it should not be.
fn bound_as(wanted: Option<&Value>, node: Option<&str>) -> Result<bool> {
    match (wanted, node) {
        (None, _) | (Some(Value::Bool(false)), None) | (Some(Value::Bool(true)), Some(_)) => Ok(true),
        (Some(Value::String(wanted)), Some(node)) if wanted == node => Ok(true),
        (Some(_), Some(node)) => bail!("it is bound to {node}"),
        (Some(_), None) => Ok(false),
    }
}

/// The same by the inspector's word, where there is no other.
async fn by_allocation(world: &World<'_>, name: &str, check: &Check) -> Result<()> {
    let selection = Selection { namespace: Some(check.namespace().to_owned()), ..Selection::default() };
    let jobs = world.server.client()?.list::<FluxionJob>(&selection).await?.items;
    let nodes = jobs.iter().filter_map(|job| job.status.allocation.as_ref()).flat_map(|held| &held.nodes);
    let node = nodes.into_iter().find(|node| node.pods.iter().any(|pod| pod == name));
    if !bound_as(check.bound.as_ref(), node.map(|node| node.name.as_str()))? {
        bail!("it is not bound");
    }
    let Some(words) = &check.reason_mentions else { return Ok(()) };
    let job = format!("pod/{name}");
    let found = world.server.job(check.namespace(), &job).await?;
    reasons::mentions(&reasons::of_job(world, check.namespace(), &job, &found).await?, words)
}

/// All Pods that the selector matches.
pub(super) async fn matching(world: &World<'_>, selector: &str, check: &Check) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(world.client()?.clone(), check.namespace());
    let found = pods.list(&ListParams::default().labels(selector)).await?.items;
    if let Some(count) = check.count
        && found.len() != count
    {
        bail!("{} exist, not {count}", found.len());
    }
    let held: Vec<&Pod> = found.iter().filter(|pod| node(pod).is_some() && !ended(pod)).collect();
    let nodes: BTreeSet<&str> = held.iter().filter_map(|pod| node(pod)).collect();
    if let Some(wanted) = &check.bound {
        let right = match wanted {
            Value::Number(number) => number.as_u64() == u64::try_from(held.len()).ok(),
            Value::Bool(all) => *all == (held.len() == found.len() && !found.is_empty()),
            _ => bail!("'bound: {wanted}' says neither how many nor whether"),
        };
        if !right {
            let names: Vec<String> = held.iter().map(|pod| pod.name_any()).collect();
            bail!("{} of {} are bound ({})", held.len(), found.len(), names.join(", "));
        }
    }
    if let Some(wanted) = check.distinct_nodes
        && nodes.len() != wanted
    {
        bail!("they are on {} nodes: {nodes:?}", nodes.len());
    }
    if let Some(wanted) = &check.on_nodes
        && let Some(other) = nodes.iter().find(|node| !wanted.iter().any(|one| one == *node))
    {
        bail!("one is on {other}");
    }
    Ok(())
}

/// The node it is bound to.
pub(in super::super) fn node(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).filter(|name| !name.is_empty())
}

/// Whether it has ended, so that it holds nothing.
pub(in super::super) fn ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}
