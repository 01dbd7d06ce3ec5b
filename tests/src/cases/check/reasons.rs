//! What a user is told about a job or a Pod, as one text to look for words in.

use anyhow::{Result, bail};
use fluxion_api::FluxionJob;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::Value;

use super::super::model::{Check, plain};
use super::super::target::Target;
use super::super::text;
use super::World;

/// What `explain` says of a job, and what the job says itself.
pub(super) async fn of_job(
    world: &World<'_>,
    namespace: &str,
    name: &str,
    job: &FluxionJob,
) -> Result<String> {
    let explained = world.plugin.run(&["explain", name, "-n", namespace]).await?;
    Ok(format!("{}\n{}{}", of_status(job), explained.stdout, explained.stderr))
}

/// What the job says itself.
pub(super) fn of_status(job: &FluxionJob) -> String {
    let status = &job.status;
    let mut parts = Vec::new();
    if let Some(reason) = &status.reason {
        parts.push(format!("{}: {}", reason.class, reason.text));
        parts.extend(reason.details.iter().cloned());
    }
    parts.extend(status.warnings.iter().cloned());
    for waits in &status.waits_for {
        parts.push(format!("waits for {}", waits.job));
    }
    parts.join("\n")
}

/// The Pod's condition, its Events, and what is told about it as a job of its own.
pub(super) async fn of_pod(world: &World<'_>, pod: &Pod) -> Result<String> {
    let mut parts = Vec::new();
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    for condition in conditions.iter().filter(|condition| condition.type_ == "PodScheduled") {
        let (reason, message) = (condition.reason.as_deref(), condition.message.as_deref());
        parts.push(format!("{}: {}", reason.unwrap_or_default(), message.unwrap_or_default()));
    }
    parts.push(events(world, pod).await?);
    let namespace = pod.namespace().unwrap_or_default();
    let job = format!("pod/{}", pod.name_any());
    if let Ok(found) = world.server.job(&namespace, &job).await {
        parts.push(of_job(world, &namespace, &job, &found).await?);
    }
    Ok(parts.join("\n"))
}

/// Whether an Event on the object mentions the words, however long ago the object went.
pub(super) async fn event(world: &World<'_>, object: &str, check: &Check) -> Result<()> {
    let Target::Object(kind, name) = Target::parse(object)? else {
        bail!("'{object}' names no single object")
    };
    let which = format!("involvedObject.kind={},involvedObject.name={name}", kind.kind);
    let told = told(world, check.namespace(), &which).await?;
    let words = check.reason_mentions.as_deref().unwrap_or_default();
    if words.is_empty() {
        bail!("'event' needs 'reason-mentions'");
    }
    let missed = told.iter().map(|one| mentions(one, words));
    match missed.into_iter().find(Result::is_ok) {
        Some(found) => found,
        None => bail!("of {} Events on it none mentions all of this: {}", told.len(), told.join(" | ")),
    }
}

/// The Events on a Pod.
async fn events(world: &World<'_>, pod: &Pod) -> Result<String> {
    let which = format!("involvedObject.uid={}", pod.uid().unwrap_or_default());
    Ok(told(world, &pod.namespace().unwrap_or_default(), &which).await?.join("\n"))
}

/// Reason and message of the Events that a field selector picks.
async fn told(world: &World<'_>, namespace: &str, which: &str) -> Result<Vec<String>> {
    let events: Api<Event> = Api::namespaced(world.client()?.clone(), namespace);
    let list = events.list(&ListParams::default().fields(which)).await?;
    let told = list
        .items
        .into_iter()
        .map(|event| format!("{}: {}", event.reason.unwrap_or_default(), event.message.unwrap_or_default()));
    Ok(told.collect())
}

/// Fails with the words that the text does not mention, and the text.
pub(super) fn mentions(told: &str, words: &[Value]) -> Result<()> {
    let words: Vec<String> = words.iter().map(plain).collect();
    let missing = text::missing(told, &words);
    if missing.is_empty() {
        Ok(())
    } else {
        bail!("nothing mentions {}; told is: {told}", missing.join(", "))
    }
}
