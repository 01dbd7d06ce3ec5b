//! What an API server does with a new object: sets its identity and defaults, and validates it.
//!
//! The rules and messages are those of kube-apiserver, for all fields relevant to scheduling and virtual Pods. Two
//! required fields may be omitted: the image of a container and the restart policy of a Job, because a virtual Pod
//! pulls no image and never restarts. Nothing here affects placement, and nothing is rounded.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::api::core::v1::{Container, PodSpec, PodStatus};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;

use super::metadata::time;
use super::names::{random_looking, uid};
use super::object::Object;

mod containers;
mod label_keys;
mod meta;
mod others;
mod placement;
mod pod;
mod pod_resources;
mod problems;
mod quantities;
mod syntax;
mod workloads;

use problems::{Path, Problems};
pub use problems::{Problem, Refused};

/// Generated names are truncated to this length, so that with their suffix they are valid labels.
const GENERATED_MAX: usize = 58;

/// The value of the `PriorityClass` with a name, if it exists; without a name, that of the default class.
pub type Classes<'a> = &'a dyn Fn(Option<&str>) -> Option<i32>;

/// Completes and validates a new object. `sequence` distinguishes objects with equal content.
pub fn admit(
    object: &mut Object,
    now: i64,
    sequence: u64,
    ours: &[Arc<str>],
    classes: Classes<'_>,
) -> Result<(), Refused> {
    identity(object, now, sequence);
    let mut problems = Problems::default();
    complete(object, ours);
    check(object, &mut problems);
    let (spec, template) = (Path::root("spec"), Path::root("spec.template.spec"));
    match object {
        Object::Pod(pod) => {
            if let Some(pod) = &mut pod.spec {
                pod.priority = priority(pod, classes, &spec, &mut problems);
            }
        }
        // Its Pods are admitted when they are created; report now if that would fail.
        other => {
            if let Some(pod) = other.pod_template().and_then(|template| template.spec.as_ref()) {
                priority(pod, classes, &template, &mut problems);
            }
        }
    }
    problems.finish()
}

/// Validates an object to be submitted later, except for checks that depend on other objects.
pub fn check_early(object: &Object, now: i64, ours: &[Arc<str>]) -> Result<(), Refused> {
    let mut object = object.clone();
    identity(&mut object, now, 0);
    complete(&mut object, ours);
    let mut problems = Problems::default();
    check(&object, &mut problems);
    problems.finish()
}

fn identity(object: &mut Object, now: i64, sequence: u64) {
    let (kind, namespaced) = (object.kind(), object.namespaced());
    let meta = object.meta_mut();
    let namespace = meta.namespace.take().filter(|namespace| !namespace.is_empty());
    meta.namespace = namespaced.then(|| namespace.unwrap_or_else(|| "default".to_owned()));
    let namespace = meta.namespace.clone().unwrap_or_default();
    if meta.name.as_deref().unwrap_or_default().is_empty()
        && let Some(start) = meta.generate_name.as_deref().filter(|start| !start.is_empty())
    {
        let suffix = random_looking(&[kind, &namespace, start], sequence);
        meta.name = Some(format!("{}{suffix}", start.get(..GENERATED_MAX).unwrap_or(start)));
    }
    if meta.uid.as_deref().unwrap_or_default().is_empty() {
        let name = meta.name.as_deref().unwrap_or_default();
        meta.uid = Some(uid(&[kind, &namespace, name], sequence));
    }
    if meta.creation_timestamp.is_none() {
        meta.creation_timestamp = time(now);
    }
}

/// Sets defaults.
fn complete(object: &mut Object, ours: &[Arc<str>]) {
    let spec = match object {
        Object::Pod(pod) => {
            pod.status
                .get_or_insert_with(PodStatus::default)
                .phase
                .get_or_insert_with(|| "Pending".to_owned());
            if let Some(spec) = &mut pod.spec {
                label_keys::merge(spec, pod.metadata.labels.as_ref());
            }
            pod.spec.as_mut()
        }
        Object::Job(job) => {
            job.status.get_or_insert_default();
            job.spec.as_mut().and_then(|spec| {
                complete_job(spec);
                spec.template.spec.as_mut()
            })
        }
        Object::ReplicaSet(set) => set.spec.template.as_mut().and_then(|template| template.spec.as_mut()),
        Object::Deployment(deployment) => deployment.spec.template.spec.as_mut(),
        Object::StatefulSet(set) => set.spec.template.spec.as_mut(),
        Object::Node(node) => {
            node.status.get_or_insert_default();
            None
        }
        Object::PodGroup(_) | Object::PriorityClass(_) => None,
    };
    if let Some(spec) = spec {
        complete_pod(spec, ours);
    }
}

fn complete_pod(spec: &mut PodSpec, ours: &[Arc<str>]) {
    // A Pod that is already bound was placed by another scheduler; all others are ours, whatever their manifest says.
    if spec.node_name.is_none() {
        let named =
            spec.scheduler_name.as_deref().is_some_and(|name| ours.iter().any(|known| **known == *name));
        if !named {
            spec.scheduler_name = ours.first().map(std::string::ToString::to_string);
        }
    }
    spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten()).for_each(limits_are_requests);
}

/// Limits are the default for requests.
fn limits_are_requests(container: &mut Container) {
    let Some(resources) = container.resources.as_mut() else { return };
    let Some(limits) = resources.limits.clone() else { return };
    let requests = resources.requests.get_or_insert_default();
    for (name, quantity) in limits {
        requests.entry(name).or_insert(quantity);
    }
}

fn complete_job(spec: &mut JobSpec) {
    if spec.completions.is_none() && spec.parallelism.is_none() {
        spec.completions = Some(1);
    }
    spec.parallelism.get_or_insert(1);
    spec.completion_mode.get_or_insert_with(|| "NonIndexed".to_owned());
    spec.backoff_limit.get_or_insert(if spec.backoff_limit_per_index.is_some() { i32::MAX } else { 6 });
    if let Some(template) = &mut spec.template.spec {
        template.restart_policy.get_or_insert_with(|| "Never".to_owned());
    }
}

fn check(object: &Object, problems: &mut Problems) {
    meta::object(object.meta(), meta::rule_of(object.kind()), &Path::root("metadata"), problems);
    match object {
        Object::Pod(pod) => match &pod.spec {
            Some(spec) => {
                let path = Path::root("spec");
                pod::pod(spec, &path, problems);
                let policies = ["Always", "OnFailure", "Never"];
                problems::one_of(spec.restart_policy.as_deref(), &policies, |text, values| {
                    problems.unsupported(&path.field("restartPolicy"), text, values);
                });
            }
            None => problems.required(&Path::root("spec"), ""),
        },
        Object::Job(job) => workloads::job(job, problems),
        Object::ReplicaSet(set) => workloads::replica_set(set, problems),
        Object::Deployment(deployment) => workloads::deployment(deployment, problems),
        Object::StatefulSet(set) => workloads::stateful_set(set, problems),
        Object::Node(node) => others::node(node, problems),
        Object::PodGroup(group) => {
            // It was validated when it was parsed.
            let native = serde_json::to_value(group)
                .ok()
                .filter(|_| object.api_version().starts_with("scheduling.k8s.io/"));
            match native.and_then(|value| serde_json::from_value::<PodGroup>(value).ok()) {
                Some(native) => others::native_group(&native, problems),
                None => others::sigs_group(group, problems),
            }
        }
        Object::PriorityClass(class) => others::priority_class(class, problems),
    }
}

/// The value of its `PriorityClass`; a Pod must not specify a different one.
fn priority(spec: &PodSpec, classes: Classes<'_>, path: &Path<'_>, problems: &mut Problems) -> Option<i32> {
    let class = spec.priority_class_name.as_deref().filter(|name| !name.is_empty());
    let built_in = others::BUILT_IN.iter().find(|(name, _)| Some(*name) == class);
    let value = built_in.map(|(_, value)| *value).or_else(|| classes(class)).or(class.is_none().then_some(0));
    let Some(value) = value else {
        let why = format!(
            "no PriorityClass with name {} was found: add one to the manifests",
            class.unwrap_or_default().escape_debug()
        );
        problems.forbidden(&path.field("priorityClassName"), &why);
        return None;
    };
    if let Some(given) = spec.priority.filter(|given| *given != value) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {value} from the given PriorityClass name"
        );
        problems.forbidden(&path.field("priority"), &why);
    }
    Some(value)
}

#[cfg(test)]
mod tests;
