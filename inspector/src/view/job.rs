//! `FluxionJob`: a job as visible to users.

use std::collections::BTreeMap;

use fluxion_api::job::{
    AllocatedNode, Allocation, FluxionJob, Group, HistoryEntry, JobSpec, JobStatus, Members, Reservation,
    Shape, WaitsFor,
};
use fluxion_api::{API_VERSION, ObjectMeta, Reason};
use fluxion_scheduler::model::{PodSpec, SharedStr};
use fluxion_scheduler::resources::ResourceList;
use fluxion_scheduler::state::{self, Job, State};

use super::name::{full_name, short_name};
use super::text::{quantities, time};
use super::{Viewer, Visible, cancel, redact, words};

/// Shown instead of names that the viewer is not allowed to see.
const ELSEWHERE: &str = "jobs in other namespaces";

/// The job as visible to the viewer.
pub fn job(visible: &Visible<'_>, job: &Job) -> FluxionJob {
    FluxionJob {
        api_version: API_VERSION.to_owned(),
        kind: "FluxionJob".to_owned(),
        metadata: ObjectMeta {
            name: visible.state.object_name(job),
            namespace: Some(job.key.namespace.to_string()),
            uid: job.key.uid.to_string(),
            creation_timestamp: Some(time(job.created)),
            labels: job.labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
            ..ObjectMeta::default()
        },
        spec: spec(visible.state, job),
        status: status(visible, job),
    }
}

/// The members that hold resources, by node and sorted by name.
pub fn placed(state: &State, job: &Job) -> BTreeMap<SharedStr, Vec<String>> {
    let mut nodes: BTreeMap<SharedStr, Vec<String>> = BTreeMap::new();
    for pod in live(state, job) {
        if let Some(node) = state.node_of(pod) {
            nodes.entry(node).or_default().push(pod.name.to_string());
        }
    }
    for pods in nodes.values_mut() {
        pods.sort();
    }
    nodes
}

/// The nodes in its allocation and its reservation, as shown; a node may occur in both.
pub fn nodes(state: &State, job: &Job) -> Vec<SharedStr> {
    let planned = job.reservation.iter().flat_map(|reservation| &reservation.nodes).cloned();
    if job.state.ended() {
        return job.ran_on.keys().cloned().chain(planned).collect();
    }
    live(state, job).filter_map(|pod| state.node_of(pod)).chain(planned).collect()
}

/// The kind of its group, as shown.
pub fn group_kind(job: &Job) -> &str {
    job.object.as_ref().map_or(&*job.key.kind, |object| &*object.kind)
}

/// The members that have not ended.
fn live<'a>(state: &'a State, job: &'a Job) -> impl Iterator<Item = &'a PodSpec> {
    job.pods.iter().filter_map(|uid| state.pod(uid)).filter(|pod| !pod.phase.ended())
}

fn spec(state: &State, job: &Job) -> JobSpec {
    let kind = group_kind(job).to_owned();
    let version = job.object.as_ref().and_then(|object| object.api_version.split_once('/'));
    let api_group = version.map_or_else(String::new, |(group, _)| group.to_owned());
    JobSpec {
        queue: job.queue.to_string(),
        priority: job.priority,
        duration_seconds: job.duration,
        limit_seconds: job.limit,
        group: Group {
            kind,
            name: job.key.name.to_string(),
            api_group,
            uid: job.object.as_ref().map(|object| object.uid.to_string()).unwrap_or_default(),
            size: job.members.wanted,
        },
        shapes: shapes(state, job),
        topology: job.level.as_ref().map(ToString::to_string),
    }
}

/// Requests of the unfinished members; if there are none, of the members of the last attempt.
fn shapes(state: &State, job: &Job) -> Vec<Shape> {
    let mut shapes: BTreeMap<&ResourceList, u32> = BTreeMap::new();
    for pod in live(state, job) {
        if let Ok(needs) = &pod.needs {
            *shapes.entry(needs).or_default() += 1;
        }
    }
    if shapes.is_empty() {
        shapes = job.asked.iter().map(|asked| (&*asked.needs, asked.count)).collect();
    }
    shapes.into_iter().map(|(needs, count)| Shape { count, requests: quantities(needs) }).collect()
}

/// Sum of the requests of unfinished members; for a finished job, of the members of its last attempt.
fn request(job: &Job) -> ResourceList {
    if !job.state.ended() {
        return (*job.holds).clone();
    }
    let parts = job.asked.iter().filter_map(|asked| asked.needs.checked_mul(asked.count.into()).ok());
    parts.fold(ResourceList::new(), |sum, part| sum.checked_add(&part).unwrap_or(sum))
}

fn status(visible: &Visible<'_>, job: &Job) -> JobStatus {
    let placed = if job.state.ended() {
        let names = |pods: &Vec<SharedStr>| pods.iter().map(ToString::to_string).collect();
        job.ran_on.iter().map(|(node, pods)| (node.clone(), names(pods))).collect()
    } else {
        placed(visible.state, job)
    };
    let nodes = placed.into_iter().map(|(name, pods)| AllocatedNode { name: name.to_string(), pods });
    let allocation = Allocation { nodes: nodes.collect() };
    let reservation = job.reservation.as_ref();
    JobStatus {
        state: words::state(job.state),
        state_since: time(job.state_since),
        degraded: job.degraded,
        members: members(&job.members),
        request: quantities(&request(job)),
        reason: job.reason.as_ref().map(|told| reason(told, visible.viewer)),
        position: visible.position(job.id),
        started_at: job.started_at.map(time),
        ended_at: job.ended_at.map(time),
        exit: job.exit.as_ref().map(state::ExitCause::told),
        planned_start: reservation.map(|reservation| time(reservation.start)),
        planned_start_assumed: reservation.is_some_and(|reservation| reservation.start_assumed),
        planned_end: job
            .planned_end
            .or_else(|| reservation.and_then(|reservation| reservation.end))
            .map(time),
        allocation: (!allocation.nodes.is_empty()).then_some(allocation),
        reservation: reservation.map(|reservation| Reservation {
            start: time(reservation.start),
            start_assumed: reservation.start_assumed,
            end: reservation.end.map(time),
            end_assumed: reservation.end_assumed,
            nodes: reservation.nodes.iter().map(ToString::to_string).collect(),
        }),
        waits_for: waits_for(visible, job),
        cancel_targets: if job.state.ended() { Vec::new() } else { cancel::targets(visible.state, job) },
        warnings: job.warnings.clone(),
        history: history(visible, job),
    }
}

fn history(visible: &Visible<'_>, job: &Job) -> Vec<HistoryEntry> {
    // A text from then may name a domain, which is the label of a node.
    let brief = job.level.is_some() && !visible.viewer.sees_nodes();
    let told = |entry: &state::HistoryEntry| match entry.class {
        Some(class) if brief => words::class(class).as_str().to_owned(),
        _ => entry.reason.clone(),
    };
    let entries = job.history.iter().map(|entry| HistoryEntry {
        time: time(entry.time),
        state: words::state(entry.state),
        reason: told(entry),
    });
    entries.collect()
}

fn members(members: &state::Members) -> Members {
    let state::Members { wanted, seen, gated, bound, running, ended } = *members;
    Members { wanted, seen, gated, bound, running, ended }
}

/// A reason as the viewer may read it. Reasons contain no names of jobs in other namespaces.
fn reason(reason: &state::Reason, viewer: &Viewer) -> Reason {
    Reason::new(words::class(reason.class), redact::facts(reason.facts.iter().cloned(), viewer))
}

/// Leaves of a job what everyone may know who may see it.
pub fn redact(job: &mut FluxionJob) {
    if let Some(reason) = job.status.reason.take() {
        let facts = redact::facts(reason.facts, &Viewer::namespaces([]));
        job.status.reason = Some(Reason::new(reason.class, facts));
    }
    if job.spec.topology.is_some() {
        job.status.history.iter_mut().for_each(|entry| entry.reason.clear());
    }
}

/// The jobs it waits for; those the viewer may not see are one entry without a name or a time.
pub fn waits_for(visible: &Visible<'_>, job: &Job) -> Vec<WaitsFor> {
    let mut waits = Vec::new();
    let mut elsewhere = false;
    for other in job.waits_for.iter().filter_map(|id| visible.state.job(*id)) {
        if !visible.viewer.sees(&other.key.namespace) {
            elsewhere = true;
            continue;
        }
        let name = if other.key.namespace == job.key.namespace { short_name } else { full_name };
        let release = visible.state.release_of(other);
        waits.push(WaitsFor {
            job: name(visible.state, other),
            until: release.map(|release| time(release.at)),
            assumed: release.is_some_and(|release| release.assumed),
        });
    }
    if elsewhere {
        waits.push(WaitsFor { job: ELSEWHERE.to_owned(), ..WaitsFor::default() });
    }
    waits
}
