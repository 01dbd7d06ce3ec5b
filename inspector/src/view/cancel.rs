//! Cancelling a job: which objects are deleted, and which resources that frees.

use fluxion_api::{API_VERSION, CancelAnswer, CancelOutcome, CancelTarget, ObjectMeta};
use fluxion_scheduler::model::ObjectRef;
use fluxion_scheduler::state::{CancelPlan, Job, State};

use super::Visible;
use super::name::{full_name, short_name};
use super::text::quantities;
use crate::plural::plural;

/// Objects to delete so that the job ends and is not recreated.
pub fn targets(state: &State, job: &Job) -> Vec<CancelTarget> {
    state.cancel_plan(job).targets.iter().map(target).collect()
}

fn target(object: &ObjectRef) -> CancelTarget {
    CancelTarget {
        api_version: object.api_version.to_string(),
        kind: object.kind.to_string(),
        resource: plural(&object.kind),
        namespace: object.namespace.to_string(),
        name: object.name.to_string(),
        uid: object.uid.to_string(),
        propagation_policy: "Background".to_owned(),
    }
}

/// The `kubectl` command that deletes a target, for users without the plugin.
pub fn command(target: &CancelTarget) -> String {
    let group = target.api_version.split_once('/').map(|(group, _)| format!(".{group}")).unwrap_or_default();
    format!("kubectl delete {}{group} {} -n {}", target.resource, target.name, target.namespace)
}

/// The response to a cancel request with this outcome.
pub fn answer(visible: &Visible<'_>, job: &Job, plan: &CancelPlan, outcome: CancelOutcome) -> CancelAnswer {
    let state = visible.state;
    let name = full_name(state, job);
    let message = match outcome {
        CancelOutcome::Cancelled => format!("{name} cancelled"),
        CancelOutcome::DryRun => format!("{name} would be cancelled (dry run)"),
        CancelOutcome::AlreadyEnding => format!("{name} is already terminating"),
        CancelOutcome::AlreadyEnded => format!("{name} has already finished ({})", job.state.as_str()),
    };
    let ended = outcome == CancelOutcome::AlreadyEnded;
    CancelAnswer {
        api_version: API_VERSION.to_owned(),
        kind: "CancelAnswer".to_owned(),
        metadata: ObjectMeta {
            name: state.object_name(job),
            namespace: Some(job.key.namespace.to_string()),
            uid: job.key.uid.to_string(),
            ..ObjectMeta::default()
        },
        outcome,
        message,
        targets: if ended { Vec::new() } else { plan.targets.iter().map(target).collect() },
        also_deletes: if ended { Vec::new() } else { plan.also_deletes.clone() },
        frees: if ended { fluxion_api::Quantities::new() } else { quantities(&plan.frees) },
        starts_next: if outcome == CancelOutcome::DryRun {
            starts_next(visible, job, plan)
        } else {
            Vec::new()
        },
        pods: if ended { 0 } else { plan.pods },
    }
}

/// The jobs that would start if this job were cancelled, limited to those visible to the viewer.
fn starts_next(visible: &Visible<'_>, job: &Job, plan: &CancelPlan) -> Vec<String> {
    let started = visible.state.starts_without(job, plan);
    let seen = started.iter().filter_map(|id| visible.state.job(*id));
    let seen = seen.filter(|other| visible.viewer.sees(&other.key.namespace));
    let name = |other: &Job| {
        let name = if other.key.namespace == job.key.namespace { short_name } else { full_name };
        name(visible.state, other)
    };
    seen.map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_the_group() {
        let target = CancelTarget {
            api_version: "batch/v1".to_owned(),
            resource: "jobs".to_owned(),
            namespace: "team".to_owned(),
            name: "sim".to_owned(),
            ..CancelTarget::default()
        };
        assert_eq!(command(&target), "kubectl delete jobs.batch sim -n team");
    }
}
