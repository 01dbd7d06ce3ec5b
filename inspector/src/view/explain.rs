//! `FluxionExplanation`: why a job is where it is, and the smallest changes that would start it now.

use std::collections::BTreeMap;
use std::sync::Arc;

use fluxion_api::explain::{FluxionExplanation, NodesLeftOut};
use fluxion_api::{API_VERSION, FluxionJob, ObjectMeta};
use fluxion_core::explain::{self, Count, Names, Reason, WhyNot};
use fluxion_core::inventory::Inventory;
use fluxion_core::matcher::gang::{NodePolicy, place_now};
use fluxion_core::quantity;
use fluxion_core::request::Request;
use fluxion_core::state::{Job, JobId};

use super::Lens;
use super::job::{full_name, short_name};
use super::text::time;

/// Explains a job; `object` is how the lens' viewer sees it.
pub fn explain(lens: &Lens<'_>, job: &Job, mut object: FluxionJob) -> FluxionExplanation {
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
        let mut inventory = lens.state.inventory().clone();
        inventory.clear_reservation(job.id.0);
        let now = lens.state.now();
        let why = explain::why_not(&inventory, request, now);
        let names = Seen { lens, job };
        explanation.nodes = left_out(&why, &names);
        explanation.nearest = nearest(&why);
        if !why.never {
            explanation.suggestions = suggestions(&inventory, request, &why, now);
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
    lens: &'a Lens<'a>,
    job: &'a Job,
}

impl Seen<'_> {
    fn name(&self, other: &Job) -> Option<String> {
        let name = if other.key.namespace == self.job.key.namespace { short_name } else { full_name };
        self.lens.viewer.sees(&other.key.namespace).then(|| name(self.lens.state, other))
    }
}

impl Names for Seen<'_> {
    fn job(&self, id: u32) -> Option<String> {
        self.name(self.lens.state.job(JobId(id))?)
    }

    fn holder(&self, key: &str) -> Option<String> {
        if let Some(job) = self.lens.state.job_of_pod(key) {
            return self.name(job);
        }
        let pod = self.lens.state.pod(key)?;
        self.lens.viewer.sees(&pod.namespace).then(|| format!("{}/pod/{}", pod.namespace, pod.name))
    }
}

/// Nodes by reason over all shapes, most first. A node that takes neither of two shapes for one reason counts
/// once for it.
fn left_out(why: &WhyNot, names: &dyn Names) -> Vec<NodesLeftOut> {
    let mut by_reason: BTreeMap<String, (usize, Option<i64>)> = BTreeMap::new();
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
            until: until.map(time),
        })
        .collect();
    nodes.sort_by_key(|left| std::cmp::Reverse(left.count));
    nodes
}

fn reason(count: &Count, names: &dyn Names) -> String {
    match &count.reason {
        Reason::Excluded(exclusion) => exclusion.to_string(),
        Reason::Missing { resource } => format!("lack {resource}"),
        Reason::TooSmall { resource } => {
            let (need, largest) = quantity::compared(resource, count.need, count.largest);
            format!("too small for {resource}: {need} wanted, the largest has {largest}")
        }
        Reason::Busy { resource } => {
            let (need, free) = quantity::compared(resource, count.need, count.largest);
            format!("full: {resource} {need} wanted, {free} free at most")
        }
        Reason::PortTaken { port } => format!("host port {port} taken"),
        Reason::Reserved => {
            let known: Vec<String> = count.jobs.iter().filter_map(|id| names.job(*id)).collect();
            let whom = if known.is_empty() { "other jobs".to_owned() } else { known.join(", ") };
            format!("held for {whom}")
        }
    }
}

fn nearest(why: &WhyNot) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(gang) = why.gang.as_ref().filter(|gang| gang.wanted > 1 || gang.level.is_some()) {
        let place = match (&gang.level, &gang.best) {
            (Some(level), Some(best)) => format!(" together in one {level} (the best is {best})"),
            (Some(level), None) => format!(" together in one {level}, which no node has"),
            (None, _) => String::new(),
        };
        parts.push(format!("{} of the {} members fit now{place}", gang.room, gang.wanted));
    }
    for miss in why.shapes.iter().filter_map(|shape| shape.nearest.as_ref()).take(1) {
        let lacks = miss.lacks.iter().map(|(resource, need, has)| {
            let (has, need) = quantity::compared(resource, *has, *need);
            format!("{resource} {has} of {need}")
        });
        parts.push(format!("node {} has {}", miss.node, lacks.collect::<Vec<_>>().join(", ")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Changes of the request that were tried and would start it now.
fn suggestions(inventory: &Inventory, request: &Request, why: &WhyNot, now: i64) -> Vec<String> {
    let starts = |request: &Request| place_now(inventory, request, now, NodePolicy::Low).is_ok();
    let mut found = Vec::new();
    if starts(request) {
        return found;
    }
    found.extend(shorter(request, &starts));
    found.extend(smaller(request, why, &starts));
    found.extend(without_selector(request, &starts));
    if let Some(level) = &request.level {
        let anywhere = Request { level: None, domain: None, ..request.clone() };
        if starts(&anywhere) {
            found.push(format!("without one {level} for all members it would start now"));
        }
    }
    found
}

/// The longest of a few shorter times that ends before what is planned.
fn shorter(request: &Request, starts: &dyn Fn(&Request) -> bool) -> Option<String> {
    let whole = request.duration.unwrap_or(7 * 86_400);
    [90, 75, 50, 25, 10, 5, 1]
        .into_iter()
        .map(|percent| whole.saturating_mul(percent) / 100)
        .filter(|seconds| *seconds > 0)
        .find(|seconds| starts(&Request { duration: Some(*seconds), ..request.clone() }))
        .map(|seconds| format!("with a time limit of {seconds} s it would start now"))
}

fn smaller(request: &Request, why: &WhyNot, starts: &dyn Fn(&Request) -> bool) -> Option<String> {
    let [shape] = request.shapes.as_slice() else { return None };
    let gang = why.gang.as_ref()?;
    let room = u32::try_from(gang.room).ok().filter(|room| *room > 0 && *room < shape.count)?;
    let mut fewer = Request { minimum: None, ..request.clone() };
    fewer.shapes[0].count = room;
    let members = if room == 1 { "member" } else { "members" };
    starts(&fewer).then(|| format!("with {room} {members} instead of {} it would start now", gang.wanted))
}

fn without_selector(request: &Request, starts: &dyn Fn(&Request) -> bool) -> Option<String> {
    let mut free = request.clone();
    let mut keys: Vec<String> = Vec::new();
    for shape in &mut free.shapes {
        let mut constraint = (*shape.constraint).clone();
        keys.extend(constraint.selector.keys().map(ToString::to_string));
        if constraint.affinity.take().is_some() {
            keys.push("affinity".to_owned());
        }
        constraint.selector.clear();
        shape.constraint = Arc::new(constraint);
    }
    keys.sort();
    keys.dedup();
    (!keys.is_empty() && starts(&free))
        .then(|| format!("without its node selector ({}) it would start now", keys.join(", ")))
}
