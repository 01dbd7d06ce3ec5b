//! `FluxionExplanation`: why a job is where it is, and the smallest changes that would start it now.

use std::collections::BTreeMap;

use fluxion_api::NodeReasonClass;
use fluxion_api::explain::{FluxionExplanation, NodesLeftOut};
use fluxion_api::{API_VERSION, FluxionJob, ObjectMeta};
use fluxion_scheduler::constraint::Exclusion;
use fluxion_scheduler::explain::{self, Names, NodeReason, WhyNot, node_reason};
use fluxion_scheduler::state::{Job, JobId};
use fluxion_text::quantity;

use super::Visible;
use super::name::{full_name, short_name};
use super::text::time;

mod suggest;

/// Explains a job; `object` is how the viewer sees it.
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
    // Shapes that request different amounts are told apart.
    let mut by_reason: BTreeMap<(String, Option<u64>), (NodesLeftOut, u64)> = BTreeMap::new();
    for count in why.shapes.iter().flat_map(|shape| &shape.counts) {
        let reason = node_reason(count, why.never, names);
        let (resource, has_amounts) = resource_of(&count.reason).unzip();
        let amount =
            |quantity| Some(quantity::format(resource.filter(|_| has_amounts == Some(true))?, quantity));
        let key = (reason.clone(), has_amounts.filter(|has| *has).map(|_| count.need));
        let (left_out, largest) = by_reason.entry(key).or_insert_with(|| {
            let left_out = NodesLeftOut {
                reason,
                class: class_of(&count.reason),
                requested: amount(count.need),
                resource: resource.map(str::to_owned),
                ..NodesLeftOut::default()
            };
            (left_out, 0)
        });
        *largest = count.largest.max(*largest);
        left_out.largest = amount(*largest);
        left_out.count = left_out.count.max(u32::try_from(count.nodes).unwrap_or(u32::MAX));
        if let Some(release) = count.soonest {
            let until = time(release.at);
            if left_out.until.as_ref().is_none_or(|known| until < *known) {
                (left_out.until, left_out.until_assumed) = (Some(until), release.assumed);
            }
        }
    }
    let mut nodes: Vec<NodesLeftOut> = by_reason.into_values().map(|(left_out, _)| left_out).collect();
    nodes.sort_by_key(|left| std::cmp::Reverse(left.count));
    nodes
}

fn class_of(reason: &NodeReason) -> NodeReasonClass {
    match reason {
        NodeReason::Excluded(exclusion) => match exclusion {
            Exclusion::Deleting => NodeReasonClass::Deleting,
            Exclusion::Selector { .. } => NodeReasonClass::NodeSelector,
            Exclusion::Affinity => NodeReasonClass::NodeAffinity,
            Exclusion::Tainted(_) | Exclusion::TaintedForNow(_) => NodeReasonClass::Taint,
            Exclusion::NotReady => NodeReasonClass::NotReady,
            Exclusion::Cordoned => NodeReasonClass::SchedulingDisabled,
            Exclusion::RefusedBinding => NodeReasonClass::BindingRefused,
        },
        NodeReason::Affinity { .. } => NodeReasonClass::NodeAffinity,
        NodeReason::Missing { .. } => NodeReasonClass::Missing,
        NodeReason::TooSmall { .. } => NodeReasonClass::TooSmall,
        NodeReason::Withheld { .. } => NodeReasonClass::NotAllocatable,
        NodeReason::Busy { .. } => NodeReasonClass::Insufficient,
        NodeReason::PortTaken { .. } => NodeReasonClass::HostPort,
        NodeReason::Reserved => NodeReasonClass::Reserved,
    }
}

/// The resource that there is too little of, and whether amounts of it tell more.
fn resource_of(reason: &NodeReason) -> Option<(&str, bool)> {
    match reason {
        NodeReason::Missing { resource } => Some((resource, false)),
        NodeReason::TooSmall { resource }
        | NodeReason::Withheld { resource }
        | NodeReason::Busy { resource } => Some((resource, true)),
        _ => None,
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
