//! Controllers of Pods: Jobs, and workloads that run indefinitely.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::meta;
use super::pod::template;
use super::problems::{Path, Problems, one_of};
use super::syntax::{dns_label, label_value};

/// Maximum number of Pods of one controller at a time.
pub(super) const REPLICAS_MAX: i32 = 100_000;

const SPEC: Path<'static> = Path::root("spec");
/// Labels with the UID of the Job, set by the Job controller on its Pods.
const JOB_UID: [&str; 2] = ["batch.kubernetes.io/controller-uid", "controller-uid"];

/// A number of Pods.
fn count(number: Option<i32>, path: &Path<'_>, problems: &mut Problems) {
    problems.not_negative(path, number);
    if let Some(number) = number.filter(|number| *number > REPLICAS_MAX) {
        let why = format!("must be less than or equal to {REPLICAS_MAX} in standalone mode");
        problems.invalid(path, number, &why);
    }
}

/// A Deployment.
pub(super) fn deployment(deployment: &Deployment, problems: &mut Problems) {
    let spec = &deployment.spec;
    count(spec.replicas, &SPEC.field("replicas"), problems);
    problems.not_negative(&SPEC.field("minReadySeconds"), spec.min_ready_seconds);
    problems.not_negative(&SPEC.field("revisionHistoryLimit"), spec.revision_history_limit);
    problems.not_negative(&SPEC.field("progressDeadlineSeconds"), spec.progress_deadline_seconds);
    let strategy = spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
    one_of(strategy, &["Recreate", "RollingUpdate"], |text, values| {
        problems.unsupported(&SPEC.field("strategy"), text, values);
    });
    long_running(&spec.selector, &spec.template, "deployment", problems);
}

/// A ReplicaSet.
pub(super) fn replica_set(set: &ReplicaSet, problems: &mut Problems) {
    count(set.spec.replicas, &SPEC.field("replicas"), problems);
    problems.not_negative(&SPEC.field("minReadySeconds"), set.spec.min_ready_seconds);
    match &set.spec.template {
        Some(template) => long_running(&set.spec.selector, template, "deployment", problems),
        None => problems.required(&SPEC.field("template"), ""),
    }
}

/// A StatefulSet.
pub(super) fn stateful_set(set: &StatefulSet, problems: &mut Problems) {
    let spec = &set.spec;
    count(spec.replicas, &SPEC.field("replicas"), problems);
    problems.not_negative(&SPEC.field("minReadySeconds"), spec.min_ready_seconds);
    if let Some(policy) = spec.pod_management_policy.as_deref()
        && !["OrderedReady", "Parallel"].contains(&policy)
    {
        problems.invalid(&SPEC.field("podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'");
    }
    long_running(&spec.selector, &spec.template, "statefulset", problems);
}

/// Pods that are always replaced, selected by their labels.
fn long_running(selector: &LabelSelector, pods: &PodTemplateSpec, kind: &str, problems: &mut Problems) {
    let path = SPEC.field("selector");
    if selector.match_labels.is_none() && selector.match_expressions.is_none() {
        problems.required(&path, "");
    } else if *selector == LabelSelector::default()
        || selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
            && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
    {
        problems.invalid(&path, &BTreeMap::new(), &format!("empty selector is invalid for {kind}"));
    } else {
        meta::selector(selector, &path, problems);
        matches(selector, pods, problems);
    }
    let path = SPEC.field("template");
    template(pods, &["Always"], &path, problems);
    if pods.spec.as_ref().is_some_and(|spec| spec.active_deadline_seconds.is_some()) {
        let owner = if kind == "statefulset" { "StatefulSet" } else { "ReplicaSet" };
        let why = format!("activeDeadlineSeconds in {owner} is not Supported");
        problems.forbidden(&path.field("spec").field("activeDeadlineSeconds"), &why);
    }
}

fn matches(selector: &LabelSelector, pods: &PodTemplateSpec, problems: &mut Problems) {
    let labels = pods.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref());
    if !meta::selects(selector, labels) {
        let path = SPEC.field("template");
        let metadata = path.field("metadata");
        let none = BTreeMap::new();
        let why = "`selector` does not match template `labels`";
        problems.invalid(&metadata.field("labels"), labels.unwrap_or(&none), why);
    }
}

/// A Job with its defaults.
pub(super) fn job(job: &Job, problems: &mut Problems) {
    let Some(spec) = &job.spec else { return problems.required(&SPEC, "") };
    count(spec.parallelism, &SPEC.field("parallelism"), problems);
    count(spec.completions, &SPEC.field("completions"), problems);
    problems.not_negative(&SPEC.field("activeDeadlineSeconds"), spec.active_deadline_seconds);
    problems.not_negative(&SPEC.field("backoffLimit"), spec.backoff_limit);
    problems.not_negative(&SPEC.field("ttlSecondsAfterFinished"), spec.ttl_seconds_after_finished);
    one_of(spec.completion_mode.as_deref(), &["Indexed", "NonIndexed"], |text, values| {
        problems.unsupported(&SPEC.field("completionMode"), text, values);
    });
    one_of(spec.pod_replacement_policy.as_deref(), &["Failed", "TerminatingOrFailed"], |text, values| {
        problems.unsupported(&SPEC.field("podReplacementPolicy"), text, values);
    });
    by_index(spec, job.metadata.name.as_deref().unwrap_or_default(), problems);
    selector_of(job, spec, problems);
    let path = SPEC.field("template");
    template(&spec.template, &["OnFailure", "Never"], &path, problems);
    // The controller sets the Job's name as a label of its Pods.
    let name = job.metadata.name.as_deref().unwrap_or_default();
    problems.names(&path.field("labels"), name, label_value(name));
    let policy = spec.template.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    if spec.pod_failure_policy.is_some()
        && let Some(policy) = policy.filter(|policy| *policy != "Never")
    {
        let why = "only \"Never\" is supported when podFailurePolicy is specified";
        problems.invalid(&path.field("spec").field("restartPolicy"), policy, why);
    }
    let gang = spec.scheduling.as_ref().and_then(|own| own.scheduling_policy.as_ref()?.gang.as_ref());
    if let Some(least) = gang.and_then(|gang| gang.min_count).filter(|least| *least < 1) {
        let (scheduling, policy) = (SPEC.field("scheduling"), "schedulingPolicy");
        let policy = scheduling.field(policy);
        problems.invalid(
            &policy.field("gang").field("minCount"),
            least,
            "must be greater than or equal to 1",
        );
    }
}

fn by_index(spec: &JobSpec, name: &str, problems: &mut Problems) {
    problems.not_negative(&SPEC.field("backoffLimitPerIndex"), spec.backoff_limit_per_index);
    problems.not_negative(&SPEC.field("maxFailedIndexes"), spec.max_failed_indexes);
    if spec.completion_mode.as_deref() != Some("Indexed") {
        let fields = [
            ("backoffLimitPerIndex", spec.backoff_limit_per_index),
            ("maxFailedIndexes", spec.max_failed_indexes),
        ];
        for (field, value) in fields {
            if let Some(value) = value {
                problems.invalid(&SPEC.field(field), value, "requires indexed completion mode");
            }
        }
        return;
    }
    let Some(completions) = spec.completions else {
        let path = SPEC.field("completions");
        return problems.required(&path, "when completion mode is Indexed");
    };
    if let Some(most) = spec.max_failed_indexes {
        if spec.backoff_limit_per_index.is_none() {
            let path = SPEC.field("backoffLimitPerIndex");
            problems.required(&path, "when maxFailedIndexes is specified");
        }
        if most > completions {
            let path = SPEC.field("maxFailedIndexes");
            problems.invalid(&path, most, "must be less than or equal to completions");
        }
    }
    // The host name of the last Pod.
    let longest = format!("{name}-{}", completions.saturating_sub(1).max(0));
    for why in dns_label(&longest) {
        let why = format!("will not able to create pod with invalid DNS label \"{longest}\": {why}");
        problems.invalid(&Path::root("metadata").field("name"), name, &why);
    }
}

/// The API server generates a Job's selector from its UID.
fn selector_of(job: &Job, spec: &JobSpec, problems: &mut Problems) {
    let path = SPEC.field("selector");
    match &spec.selector {
        None if spec.manual_selector == Some(true) => problems.required(&path, ""),
        None => {}
        Some(selector) if spec.manual_selector == Some(true) => {
            meta::selector(selector, &path, problems);
            matches(selector, &spec.template, problems);
        }
        Some(selector) => {
            let uid = job.metadata.uid.as_deref();
            let made = selector
                .match_labels
                .iter()
                .flatten()
                .all(|(key, value)| JOB_UID.contains(&key.as_str()) && Some(value.as_str()) == uid)
                && selector.match_expressions.as_ref().is_none_or(Vec::is_empty);
            if !made {
                let none = BTreeMap::new();
                let labels = selector.match_labels.as_ref().unwrap_or(&none);
                problems.invalid(&path, labels, "`selector` not auto-generated");
            }
        }
    }
}
