//! `FluxionExplanation`: why a job is where it is, and the smallest changes that would start it now.

use std::collections::BTreeMap;

use fluxion_api::explain::{FluxionExplanation, NodesLeftOut};
use fluxion_api::{API_VERSION, FluxionJob, ObjectMeta};
use fluxion_scheduler::constraint::Exclusion;
use fluxion_scheduler::explain::{self, Count, Names, NodeReason, WhyNot};
use fluxion_scheduler::inventory::Release;
use fluxion_scheduler::state::{Job, JobId};
use fluxion_text::quantity;

use super::Visible;
use super::name::{full_name, short_name};
use super::text::time;

mod suggest;

/// Explains a job; `object` is how the visible' viewer sees it.
pub fn explain(visible: &Visible<'_>, job: &Job, mut object: FluxionJob) -> FluxionExplanation {
    let mut explanation = FluxionExplanation {
        api_version: API_VERSION.to_owned(),
        kind: "FluxionExplanation".to_owned(),
        metadata: ObjectMeta {
            name: object.metadata.name.clone(),
            namespace: object.metadata.namespace.clone(),
            uid: object.metadata.uid.clone(),
            ..ObjectMeta::default()
        },
        ..FluxionExplanation::default()
    };
    explanation.jobspec = job.request.as_deref().map(|request| request.to_jobspec(Some(&job.queue)));
    if let Some(request) = job.request.as_deref().filter(|_| job.state.waiting()) {
        // What the job was promised itself does not stand in its way.
        let mut inventory = visible.state.inventory().clone();
        inventory.clear_reservation(job.id.0);
        let now = visible.state.now();
        let why = explain::why_not(&inventory, request, now);
        let names = Seen { visible, job };
        explanation.nodes = left_out(&why, &names);
        // What is said of now is counted now, also where no cluster like this could ever take it.
        explanation.nearest = nearest(&explain::why_not_now(&inventory, request, now));
        if let Some(trial) = visible.state.trial(job) {
            explanation.suggestions = suggest::suggestions(&trial, request, why.never);
        }
        if object.status.planned_start.is_none()
            && let Some((start, assumed)) = visible.state.estimate(job)
        {
            object.status.planned_start = Some(time(start));
            object.status.planned_start_assumed = assumed;
        }
        let (_, details) = explain::render(&why, &names);
        if let Some(reason) = object.status.reason.as_mut().filter(|reason| reason.details.is_empty()) {
            reason.details = details;
        }
    }
    explanation.job = object;
    explanation
}

/// Names of the jobs that the viewer may see, short in the job's own namespace.
struct Seen<'a> {
    visible: &'a Visible<'a>,
    job: &'a Job,
}

impl Seen<'_> {
    fn name(&self, other: &Job) -> Option<String> {
        let name = if other.key.namespace == self.job.key.namespace { short_name } else { full_name };
        self.visible.viewer.sees(&other.key.namespace).then(|| name(self.visible.state, other))
    }
}

impl Names for Seen<'_> {
    fn job(&self, id: u32) -> Option<String> {
        self.name(self.visible.state.job(JobId(id))?)
    }

    fn holder(&self, key: &str) -> Option<String> {
        if let Some(job) = self.visible.state.job_of_pod(key) {
            return self.name(job);
        }
        let pod = self.visible.state.pod(key)?;
        self.visible.viewer.sees(&pod.namespace).then(|| format!("{}/pod/{}", pod.namespace, pod.name))
    }
}

/// Nodes by reason over all shapes, most first. A node that takes neither of two shapes for one reason counts
/// once for it.
fn left_out(why: &WhyNot, names: &dyn Names) -> Vec<NodesLeftOut> {
    let mut by_reason: BTreeMap<String, (usize, Option<Release>)> = BTreeMap::new();
    for count in why.shapes.iter().flat_map(|shape| &shape.counts) {
        let entry = by_reason.entry(reason(count, names)).or_default();
        entry.0 = entry.0.max(count.nodes);
        entry.1 = [entry.1, count.soonest].into_iter().flatten().min();
    }
    let mut nodes: Vec<NodesLeftOut> = by_reason
        .into_iter()
        .map(|(reason, (count, until))| NodesLeftOut {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            reason,
            until: until.map(|until| time(until.at)),
            until_assumed: until.is_some_and(|until| until.assumed),
        })
        .collect();
    nodes.sort_by_key(|left| std::cmp::Reverse(left.count));
    nodes
}

fn reason(count: &Count, names: &dyn Names) -> String {
    match &count.reason {
        NodeReason::Excluded(Exclusion::Tainted(taint) | Exclusion::TaintedForNow(taint)) => {
            format!("had untolerated taint {{{taint}}}")
        }
        NodeReason::Excluded(exclusion) => exclusion.to_string(),
        NodeReason::Affinity { wanted } => format!("didn't match node affinity ({wanted})"),
        NodeReason::Withheld { resource } => {
            let (need, largest) = quantity::compared(resource, count.need, count.largest);
            format!("had at most {largest} {resource} even when empty ({need} requested)")
        }
        NodeReason::Missing { resource } if resource.as_ref() == "pods" => {
            "had no allocatable pods".to_owned()
        }
        NodeReason::Missing { resource } => format!("had no {resource}"),
        NodeReason::TooSmall { resource } => {
            let (need, largest) = quantity::compared(resource, count.need, count.largest);
            format!("too small for {resource} ({need} requested, largest has {largest})")
        }
        NodeReason::Busy { resource } => {
            let (need, free) = quantity::compared(resource, count.need, count.largest);
            format!("had insufficient {resource} ({need} requested, at most {free} available)")
        }
        NodeReason::PortTaken { port } => format!("had host port {port} in use"),
        NodeReason::Reserved => {
            let known: Vec<String> = count.jobs.iter().filter_map(|id| names.job(*id)).collect();
            let owner = if known.is_empty() { "other jobs".to_owned() } else { known.join(", ") };
            format!("reserved for {owner}")
        }
    }
}

fn nearest(why: &WhyNot) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(gang) = why.gang.as_ref().filter(|gang| gang.wanted > 1 || gang.level.is_some()) {
        let place = match (&gang.level, &gang.best) {
            (Some(level), Some(best)) => format!(" in one {level} (the best is {best})"),
            (Some(level), None) => format!(" in one {level}: no node has that label"),
            (None, _) => String::new(),
        };
        parts.push(format!("{} of {} members fit now{place}", gang.room, gang.wanted));
    }
    parts.extend(
        why.shapes.iter().find_map(|shape| shape.nearest.as_ref()).map(|miss| format!("node {miss}")),
    );
    (!parts.is_empty()).then(|| parts.join("; "))
}
