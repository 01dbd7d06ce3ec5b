//! `FluxionExplanation`: why a job is in its current state, and the smallest changes that would start it now.

use fluxion_api::reason::{self, Fact, ShapeNodes};
use fluxion_api::{API_VERSION, FluxionJob, ObjectMeta};
use fluxion_api::{FluxionExplanation, Preference, reason::NodesLeftOut};
use fluxion_scheduler::explain::{self, Names, PreferenceMet};
use fluxion_scheduler::state::{Job, JobId};
use fluxion_text::quantity::Amount;

use super::name::{full_name, short_name};
use super::text::time;
use super::{Visible, redact};

mod suggest;

/// Explains a job; `object` is the job as visible to the viewer.
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
    explanation.preferences = preferences(visible, job);
    explanation.jobspec = job.request.as_deref().map(|request| request.to_jobspec(Some(&job.queue)));
    if let Some(request) = job.request.as_deref().filter(|_| job.state.waiting()) {
        // What the job was promised itself does not stand in its way.
        let mut inventory = visible.state.inventory().clone();
        inventory.clear_reservation(job.id.0);
        let now = visible.state.now();
        let why = explain::why_not(&inventory, request, now);
        let names = Seen { visible, job };
        explanation.facts = redact::facts(explain::facts(&why, &names), visible.viewer);
        explanation.nodes = left_out(&explanation.facts);
        // What is said of now is counted now, also where no cluster like this could ever take it.
        explanation.nearest = nearest(&redact::facts(
            explain::facts(&explain::why_not_now(&inventory, request, now), &names),
            visible.viewer,
        ));
        if let Some(trial) = visible.state.trial(job) {
            explanation.suggestions = suggest::suggestions(&trial, request, why.never);
        }
        if object.status.planned_start.is_none()
            && let Some((start, assumed)) = visible.state.estimate(job)
        {
            object.status.planned_start = Some(time(start));
            object.status.planned_start_assumed = assumed;
        }
        if let Some(reason) = object.status.reason.as_mut().filter(|reason| reason.details.is_empty()) {
            reason.details = reason::details(&explanation.facts, &str::to_owned);
        }
    }
    explanation.job = object;
    explanation
}

fn preferences(visible: &Visible<'_>, job: &Job) -> Vec<Preference> {
    let all = visible.viewer.sees_everything();
    let one = |preference: PreferenceMet| Preference {
        text: preference.text,
        weight: preference.weight,
        members: preference.members,
        met: (all || !preference.beyond_namespace).then_some(preference.met),
    };
    visible.state.preferences(job).into_iter().map(one).collect()
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
/// once for it; shapes that request different amounts are told apart.
fn left_out(facts: &[Fact]) -> Vec<NodesLeftOut> {
    let mut nodes: Vec<NodesLeftOut> = Vec::new();
    for left_out in shapes(facts).flat_map(|shape| &shape.left_out) {
        let same = |known: &&mut NodesLeftOut| {
            (&known.class, &known.resource, &known.requested, &known.value, &known.jobs)
                == (&left_out.class, &left_out.resource, &left_out.requested, &left_out.value, &left_out.jobs)
        };
        let Some(known) = nodes.iter_mut().find(same) else {
            nodes.push(left_out.clone());
            continue;
        };
        known.count = known.count.max(left_out.count);
        known.without_end = known.without_end.max(left_out.without_end);
        if amount(left_out.largest.as_deref()) > amount(known.largest.as_deref()) {
            known.largest.clone_from(&left_out.largest);
        }
        // Written in one form, times are in the order of their texts.
        if left_out.until.is_some() && (known.until.is_none() || left_out.until < known.until) {
            known.until.clone_from(&left_out.until);
            known.until_assumed = left_out.until_assumed;
        }
    }
    for left_out in &mut nodes {
        left_out.reason = left_out.text();
    }
    nodes.sort_by_key(|left| std::cmp::Reverse(left.count));
    nodes
}

fn amount(quantity: Option<&str>) -> Amount {
    quantity.and_then(|quantity| quantity.parse().ok()).unwrap_or_default()
}

fn shapes(facts: &[Fact]) -> impl Iterator<Item = &ShapeNodes> {
    facts.iter().filter_map(|fact| match fact {
        Fact::Nodes(shape) => Some(&**shape),
        _ => None,
    })
}

fn nearest(facts: &[Fact]) -> Option<String> {
    let together = facts.iter().find_map(|fact| match fact {
        Fact::Together(together) if together.wanted > 1 || together.topology.is_some() => Some(together),
        _ => None,
    });
    let mut parts = Vec::new();
    if let Some(together) = together {
        let place = match (&together.topology, &together.domain) {
            (Some(level), Some(unnamed)) if unnamed.is_empty() => format!(" in one {level}"),
            (Some(level), Some(best)) => format!(" in one {level} (best: {best})"),
            (Some(level), None) => format!(" in one {level}: no node has that label"),
            (None, _) => String::new(),
        };
        parts.push(format!("{} of {} members fit now{place}", together.room, together.wanted));
    }
    let node = shapes(facts).find_map(|shape| shape.nearest.as_ref());
    parts.extend(node.map(|node| format!("node {}", node.text())));
    (!parts.is_empty()).then(|| parts.join("; "))
}
