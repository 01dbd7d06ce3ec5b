//! Checks of jobs, by the inspector's word.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use fluxion_api::client::Selection;
use fluxion_api::{FluxionExplanation, FluxionJob, JobState, ReasonClass};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::Api;

use super::super::model::{Check, JobsOf, plain};
use super::{World, amounts, reasons};

/// Times are whole seconds on both sides, so they may differ by that.
const TOLERANCE_SECONDS: i64 = 1;

/// One job.
pub(super) async fn holds(world: &World<'_>, name: &str, check: &Check) -> Result<()> {
    let job = world.server.job(check.namespace(), name).await?;
    let status = &job.status;
    let told = || reasons::of_status(&job);
    if let Some(wanted) = &check.state
        && !wanted.allows(state(&job))
        && !(wanted.allows("Pending") && waits_as_written(&job))
    {
        bail!("it is {} ({})", state(&job), told());
    }
    if let Some(wanted) = &check.members {
        let found = members(&job);
        if found != *wanted {
            bail!("members are {found} ({:?})", status.members);
        }
    }
    if let Some(wanted) = &check.duration {
        let found =
            job.spec.duration_seconds.map_or_else(|| "none".to_owned(), |seconds| seconds.to_string());
        if found != plain(wanted) {
            bail!("its duration is {found}");
        }
    }
    if let Some(wanted) = &check.request {
        amounts("request", wanted, &status.request)?;
    }
    if let Some(wanted) = &check.bound
        && wanted.as_u64() != Some(u64::from(status.members.bound))
    {
        bail!("{} of its members are bound", status.members.bound);
    }
    if let Some(wanted) = &check.on {
        on(&job, wanted)?;
    }
    if let Some(wanted) = &check.eta_after {
        estimate(world, check.namespace(), &job, wanted).await?;
    }
    if let Some(wanted) = &check.start {
        start(world, check.namespace(), &job, wanted).await?;
    }
    if let Some(words) = &check.reason_mentions {
        let text = reasons::of_job(world, check.namespace(), name, &job).await?;
        reasons::mentions(&text, words)?;
    }
    Ok(())
}

/// How many jobs of a kind are in a state.
pub(super) async fn count(world: &World<'_>, of: &JobsOf, check: &Check) -> Result<()> {
    let selection = Selection { namespace: Some(check.namespace().to_owned()), ..Selection::default() };
    let jobs = world.server.client()?.list::<FluxionJob>(&selection).await?;
    let prefix = format!("{}.{}", of.kind.to_lowercase(), of.name_prefix);
    let states: Vec<&str> =
        jobs.items.iter().filter(|job| job.metadata.name.starts_with(&prefix)).map(state).collect();
    let found =
        states.iter().filter(|state| check.state.as_ref().is_none_or(|wanted| wanted.allows(state))).count();
    let wanted = check.count.context("'jobs' needs 'count'")?;
    if found == wanted { Ok(()) } else { bail!("{found} are, of {states:?}") }
}

/// The jobs that wait, first first.
pub(super) async fn order(world: &World<'_>, wanted: &[String]) -> Result<()> {
    let jobs = world.server.client()?.list::<FluxionJob>(&Selection::default()).await?;
    let mut waiting: Vec<(u32, String)> = jobs
        .items
        .iter()
        .filter_map(|job| {
            let kind = job.spec.group.kind.to_lowercase();
            Some((job.status.position?, format!("{kind}/{}", job.spec.group.name)))
        })
        .collect();
    waiting.sort();
    let found: Vec<String> = waiting.into_iter().map(|(_, name)| name).collect();
    if found == wanted { Ok(()) } else { bail!("the order is {}", found.join(", ")) }
}

/// The state, with the mark on Running that a member is missing.
fn state(job: &FluxionJob) -> &str {
    if job.status.degraded && job.status.state == JobState::Running {
        "Degraded"
    } else {
        job.status.state.as_str()
    }
}

/// It waits for its user: what can never run as it is written is called Unsatisfiable, as what can never run here.
fn waits_as_written(job: &FluxionJob) -> bool {
    let class = job.status.reason.as_ref().map(|reason| &reason.class);
    job.status.state == JobState::Unsatisfiable && class == Some(&ReasonClass::InvalidRequest)
}

/// Whether these are its nodes.
fn on(job: &FluxionJob, wanted: &[String]) -> Result<()> {
    let allocation =
        job.status.allocation.as_ref().context("it says of no node that it runs or ran there")?;
    let found: BTreeSet<&str> = allocation.nodes.iter().map(|node| node.name.as_str()).collect();
    let wanted: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
    if found == wanted { Ok(()) } else { bail!("it is on {found:?}") }
}

/// Whether it is estimated to start, and not before another job's planned start and some seconds.
async fn estimate(world: &World<'_>, namespace: &str, job: &FluxionJob, wanted: &str) -> Result<()> {
    let (other, seconds) = wanted.rsplit_once('+').context("'eta-after' is JOB+SECONDS")?;
    let seconds: i64 = seconds.parse().context("'eta-after' ends with seconds")?;
    let other = world.server.job(namespace, other).await?;
    let first = time(other.status.planned_start.as_deref().context("that job has no planned start")?)?;
    // Who has no reservation is estimated when somebody asks.
    let name = job.reference().to_string();
    let explained = world.plugin.run(&["explain", &name, "-o", "json"]).await?;
    let explained: FluxionExplanation = serde_json::from_str(&explained.stdout)?;
    let found = explained.job.status.planned_start.as_deref();
    let found = found.with_context(|| format!("it has no estimate ({})", reasons::of_status(job)))?;
    let after = time(found)?.as_second() - first.as_second();
    if after < seconds {
        bail!("it is estimated {after} s after that job's planned start")
    }
    Ok(())
}

fn time(text: &str) -> Result<Timestamp> {
    text.parse().with_context(|| format!("'{text}' is no time"))
}

/// Seen of wanted before the start, bound of wanted after it; at the end those that were in the last attempt.
fn members(job: &FluxionJob) -> String {
    let members = &job.status.members;
    let here = if job.is_queued() { members.seen } else { members.bound };
    match members.wanted {
        Some(wanted) => format!("{here}/{wanted}"),
        None => format!("{here}/?"),
    }
}

/// `none`, or "the (latest) start of A, B plus N s".
async fn start(world: &World<'_>, namespace: &str, job: &FluxionJob, wanted: &str) -> Result<()> {
    let found = job.status.planned_start.as_deref();
    if wanted == "none" {
        return if let Some(found) = found { bail!("it is planned to start at {found}") } else { Ok(()) };
    }
    let (pods, seconds) = parse_start(wanted).with_context(|| format!("'{wanted}' is not understood"))?;
    let mut latest = None;
    for pod in pods {
        latest = latest.max(Some(bound_at(world, namespace, &pod).await?));
    }
    let expected = latest.context("no Pod is named")?.as_second() + seconds;
    let found = found.with_context(|| format!("it has no planned start ({})", reasons::of_status(job)))?;
    let off = time(found)?.as_second() - expected;
    if off.abs() > TOLERANCE_SECONDS {
        bail!("it is planned to start {off} s after {wanted}");
    }
    Ok(())
}

/// The names of Pods, and the seconds after.
fn parse_start(text: &str) -> Option<(Vec<String>, i64)> {
    let (_, rest) = text.split_once("start of ")?;
    let (names, plus) = rest.split_once("plus ")?;
    let seconds = plus.trim().strip_suffix('s')?.trim().parse().ok()?;
    let names = names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    Some((names.collect(), seconds))
}

/// When the Pod was bound, by its condition.
async fn bound_at(world: &World<'_>, namespace: &str, pod: &str) -> Result<Timestamp> {
    let pods: Api<Pod> = Api::namespaced(world.client()?.clone(), namespace);
    let found = pods.get(pod).await?;
    let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
    let scheduled = conditions.into_iter().find(|one| one.type_ == "PodScheduled" && one.status == "True");
    let time = scheduled.and_then(|condition| condition.last_transition_time);
    Ok(time.with_context(|| format!("{pod} is not bound"))?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planned_starts_are_read() {
        assert_eq!(parse_start("the start of p-100 plus 100 s"), Some((vec!["p-100".to_owned()], 100)));
        let (pods, seconds) = parse_start("the latest start of r-1, r-2, r-3, plus 600 s").unwrap();
        assert_eq!((pods.join(" "), seconds), ("r-1 r-2 r-3".to_owned(), 600));
        assert_eq!(parse_start("soon"), None);
    }

    #[test]
    fn members_are_counted_by_state() {
        let mut job = FluxionJob::default();
        job.status.state = JobState::Gathering;
        job.status.members.wanted = Some(5);
        job.status.members.seen = 3;
        assert_eq!(members(&job), "3/5");
        job.status.state = JobState::Running;
        job.status.members.bound = 5;
        assert_eq!(members(&job), "5/5");
        assert_eq!(state(&job), "Running");
        job.status.degraded = true;
        assert_eq!(state(&job), "Degraded");
    }
}
