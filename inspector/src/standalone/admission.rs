//! What an API server does with a new object: fills in defaults, checks, gives it an identity.
//!
//! Only fields that matter to scheduling and to virtual Pods are checked; nothing is decided about placement.

use std::collections::BTreeMap;
use std::sync::Arc;

use fluxion_core::quantity::Amount;
use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::api::core::v1::{Container, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::names::{random_looking, uid};
use super::object::Object;
use super::store::time;

/// The most Pods that one controller may want at a time.
pub const REPLICAS_MAX: i32 = 100_000;
/// Names of objects: a DNS subdomain.
const NAME_MAX: usize = 253;

/// Which field is wrong, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("field {field}: {message}")]
pub struct Refused {
    pub field: String,
    pub message: String,
}

fn refused(field: &str, message: impl Into<String>) -> Refused {
    Refused { field: field.to_owned(), message: message.into() }
}

/// Completes and checks a new object. `sequence` tells apart what is created twice; `priority` knows the
/// `PriorityClasses`.
pub fn admit(
    object: &mut Object,
    now: i64,
    sequence: u64,
    ours: &[Arc<str>],
    priority: &dyn Fn(&str) -> Option<i32>,
) -> Result<(), Refused> {
    identity(object, now, sequence)?;
    match object {
        Object::Pod(pod) => {
            let spec = pod.spec.as_mut().ok_or_else(|| refused("spec", "missing"))?;
            pod_spec("spec", spec, ours, priority)?;
            let status = pod.status.get_or_insert_with(PodStatus::default);
            status.phase.get_or_insert_with(|| "Pending".to_owned());
        }
        Object::Job(job) => {
            let spec = job.spec.as_mut().ok_or_else(|| refused("spec", "missing"))?;
            job_spec(spec, ours, priority)?;
            job.status.get_or_insert_default();
        }
        Object::ReplicaSet(set) => {
            let spec = &mut set.spec;
            replicas(spec.replicas)?;
            let template = spec.template.as_mut().and_then(|template| template.spec.as_mut());
            pod_spec("spec.template.spec", template.ok_or_else(no_template)?, ours, priority)?;
        }
        Object::Deployment(deployment) => {
            let spec = &mut deployment.spec;
            replicas(spec.replicas)?;
            pod_spec(
                "spec.template.spec",
                spec.template.spec.as_mut().ok_or_else(no_template)?,
                ours,
                priority,
            )?;
        }
        Object::StatefulSet(set) => {
            let spec = &mut set.spec;
            replicas(spec.replicas)?;
            pod_spec(
                "spec.template.spec",
                spec.template.spec.as_mut().ok_or_else(no_template)?,
                ours,
                priority,
            )?;
        }
        Object::Node(node) => {
            let status = node.status.get_or_insert_default();
            amounts("status.capacity", status.capacity.as_ref())?;
            amounts("status.allocatable", status.allocatable.as_ref())?;
        }
        Object::PodGroup(_) | Object::PriorityClass(_) => {}
    }
    Ok(())
}

fn no_template() -> Refused {
    refused("spec.template.spec", "missing")
}

fn replicas(count: Option<i32>) -> Result<(), Refused> {
    in_range("spec.replicas", count.unwrap_or(1))
}

fn in_range(field: &str, count: i32) -> Result<(), Refused> {
    if (0..=REPLICAS_MAX).contains(&count) {
        Ok(())
    } else {
        Err(refused(field, format!("is {count}: want 0 to {REPLICAS_MAX}")))
    }
}

/// Every amount is a quantity, and none is negative.
fn amounts(field: &str, list: Option<&BTreeMap<String, Quantity>>) -> Result<(), Refused> {
    for (name, Quantity(text)) in list.into_iter().flatten() {
        let why = match text.parse::<Amount>() {
            Ok(amount) if amount.is_negative() => format!("is {}: want 0 or more", shorten(text)),
            Ok(_) => continue,
            Err(error) => error.to_string(),
        };
        return Err(refused(&format!("{field}.{}", shorten(name)), why));
    }
    Ok(())
}

fn identity(object: &mut Object, now: i64, sequence: u64) -> Result<(), Refused> {
    let (kind, namespaced) = (object.kind(), object.namespaced());
    let meta = object.meta_mut();
    meta.namespace = if namespaced {
        Some(
            meta.namespace
                .take()
                .filter(|namespace| !namespace.is_empty())
                .unwrap_or_else(|| "default".to_owned()),
        )
    } else {
        None
    };
    let namespace = meta.namespace.clone().unwrap_or_default();
    if meta.name.as_deref().unwrap_or_default().is_empty() {
        let start = meta.generate_name.clone().ok_or_else(|| refused("metadata.name", "missing"))?;
        meta.name = Some(format!("{start}{}", random_looking(&[kind, &namespace, &start], sequence)));
    }
    let name = meta.name.clone().unwrap_or_default();
    for (field, text) in [("metadata.name", &name), ("metadata.namespace", &namespace)] {
        let optional = field == "metadata.namespace" && !namespaced;
        if !optional && !is_subdomain(text) {
            let want =
                "want lower case letters, digits, '-' and '.', starting and ending with a letter or digit";
            return Err(refused(field, format!("'{}' is no name: {want}", shorten(text))));
        }
    }
    if meta.uid.as_deref().unwrap_or_default().is_empty() {
        meta.uid = Some(uid(&[kind, &namespace, &name], sequence));
    }
    if meta.creation_timestamp.is_none() {
        meta.creation_timestamp = time(now);
    }
    Ok(())
}

fn is_subdomain(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=NAME_MAX).contains(&text.len())
        && text.bytes().all(|byte| plain(byte) || byte == b'-' || byte == b'.')
        && text.bytes().next().is_some_and(plain)
        && text.bytes().next_back().is_some_and(plain)
}

/// At most 64 characters of what somebody else wrote.
fn shorten(text: &str) -> String {
    if text.chars().count() <= 64 { text.to_owned() } else { text.chars().take(63).chain(['…']).collect() }
}

fn pod_spec(
    field: &str,
    spec: &mut PodSpec,
    ours: &[Arc<str>],
    priority: &dyn Fn(&str) -> Option<i32>,
) -> Result<(), Refused> {
    if spec.containers.is_empty() {
        return Err(refused(&format!("{field}.containers"), "want at least one"));
    }
    if let Some(seconds) = spec.active_deadline_seconds
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        return Err(refused(
            &format!("{field}.activeDeadlineSeconds"),
            format!("is {seconds}: want 1 to {}", i32::MAX),
        ));
    }
    // Who is on a node already was placed by somebody else; all others are ours, whatever their manifest says.
    if spec.node_name.is_none() {
        let named =
            spec.scheduler_name.as_deref().is_some_and(|name| ours.iter().any(|known| **known == *name));
        if !named {
            spec.scheduler_name = ours.first().map(std::string::ToString::to_string);
        }
    }
    for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten()) {
        if let Some(resources) = &container.resources {
            let part = format!("{field}.containers[{}].resources", shorten(&container.name));
            amounts(&format!("{part}.requests"), resources.requests.as_ref())?;
            amounts(&format!("{part}.limits"), resources.limits.as_ref())?;
        }
        limits_are_requests(container);
    }
    if spec.priority.is_none() {
        spec.priority = match spec.priority_class_name.as_deref() {
            None | Some("") => Some(0),
            Some("system-cluster-critical") => Some(2_000_000_000),
            Some("system-node-critical") => Some(2_000_001_000),
            Some(class) => Some(priority(class).ok_or_else(|| {
                let message =
                    format!("there is no PriorityClass '{}': put it into a manifest too", shorten(class));
                refused(&format!("{field}.priorityClassName"), message)
            })?),
        };
    }
    Ok(())
}

/// A limit without a request is the request too.
fn limits_are_requests(container: &mut Container) {
    let Some(resources) = container.resources.as_mut() else { return };
    let Some(limits) = resources.limits.clone() else { return };
    let requests = resources.requests.get_or_insert_default();
    for (name, quantity) in limits {
        requests.entry(name).or_insert(quantity);
    }
}

fn job_spec(
    spec: &mut JobSpec,
    ours: &[Arc<str>],
    priority: &dyn Fn(&str) -> Option<i32>,
) -> Result<(), Refused> {
    if spec.completions.is_none() && spec.parallelism.is_none() {
        spec.completions = Some(1);
    }
    let parallelism = *spec.parallelism.get_or_insert(1);
    in_range("spec.parallelism", parallelism)?;
    if let Some(completions) = spec.completions {
        in_range("spec.completions", completions)?;
    }
    match spec.completion_mode.get_or_insert_with(|| "NonIndexed".to_owned()).as_str() {
        "NonIndexed" => {}
        "Indexed" if spec.completions.is_some() => {}
        "Indexed" => return Err(refused("spec.completions", "missing: an Indexed Job needs it")),
        other => {
            let message = format!("is '{}': want NonIndexed or Indexed", shorten(other));
            return Err(refused("spec.completionMode", message));
        }
    }
    if let Some(seconds) = spec.active_deadline_seconds
        && seconds < 0
    {
        return Err(refused("spec.activeDeadlineSeconds", format!("is {seconds}: want 0 or more")));
    }
    spec.backoff_limit.get_or_insert(6);
    let template = spec.template.spec.as_mut().ok_or_else(no_template)?;
    match template.restart_policy.get_or_insert_with(|| "Never".to_owned()).as_str() {
        "Never" | "OnFailure" => {}
        other => {
            let message = format!("is '{}': a Job wants Never or OnFailure", shorten(other));
            return Err(refused("spec.template.spec.restartPolicy", message));
        }
    }
    pod_spec("spec.template.spec", template, ours, priority)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn admitted(value: Value) -> Result<Value, Refused> {
        let mut object = Object::from_value(value).unwrap();
        let classes = |class: &str| (class == "urgent").then_some(1000);
        admit(&mut object, 1_700_000_000, 1, &["fluxion".into(), "fluence".into()], &classes)?;
        Ok(object.to_value())
    }

    fn pod(spec: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    }

    #[test]
    fn amounts_are_quantities_and_none_is_negative() {
        let node = |cpu: &str| {
            let status = json!({"capacity": {"cpu": cpu}, "allocatable": {"cpu": "4"}});
            admitted(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": status}))
        };
        node("4").unwrap();
        for bad in ["-4", "abc", ""] {
            assert_eq!(node(bad).unwrap_err().field, "status.capacity.cpu", "{bad}");
        }
        let container = json!({"name": "c", "resources": {"requests": {"memory": "-1Gi"}}});
        let error = admitted(pod(json!({"containers": [container]}))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "field spec.containers[c].resources.requests.memory: is -1Gi: want 0 or more"
        );
    }

    #[test]
    fn a_pod_is_completed() {
        let got = admitted(pod(json!({"containers": [{"name": "c", "resources": {
            "limits": {"cpu": "2", "nvidia.com/gpu": 1}, "requests": {"cpu": "1"}}}],
            "schedulerName": "default-scheduler", "priorityClassName": "urgent"})))
        .unwrap();
        assert_eq!(got["metadata"]["namespace"], "default");
        assert_eq!(got["metadata"]["creationTimestamp"], "2023-11-14T22:13:20Z");
        assert_eq!(got["spec"]["schedulerName"], "fluxion");
        assert_eq!(got["spec"]["priority"], 1000);
        assert_eq!(got["status"]["phase"], "Pending");
        let requests = &got["spec"]["containers"][0]["resources"]["requests"];
        assert_eq!(requests, &json!({"cpu": "1", "nvidia.com/gpu": "1"}));
    }

    #[test]
    fn who_is_placed_already_stays_with_who_placed_it() {
        let got =
            admitted(pod(json!({"containers": [{"name": "c"}], "nodeName": "n1", "schedulerName": "other"})));
        assert_eq!(got.unwrap()["spec"]["schedulerName"], "other");
        let ours = admitted(pod(json!({"containers": [{"name": "c"}], "schedulerName": "fluence"}))).unwrap();
        assert_eq!(ours["spec"]["schedulerName"], "fluence");
    }

    #[test]
    fn what_an_api_server_refuses_is_refused_with_its_field() {
        let job = |spec: Value| {
            let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {
                "template": {"spec": {"containers": [{"name": "c"}], "restartPolicy": "Never"}}}});
            for (key, value) in spec.as_object().unwrap() {
                job["spec"][key] = value.clone();
            }
            job
        };
        let cases = [
            (pod(json!({"containers": []})), "spec.containers"),
            (
                pod(json!({"containers": [{"name": "c"}], "activeDeadlineSeconds": 0})),
                "spec.activeDeadlineSeconds",
            ),
            (
                pod(json!({"containers": [{"name": "c"}], "priorityClassName": "none"})),
                "spec.priorityClassName",
            ),
            (job(json!({"parallelism": -1})), "spec.parallelism"),
            (job(json!({"parallelism": 2_000_000_000})), "spec.parallelism"),
            (job(json!({"parallelism": 2, "completionMode": "Indexed"})), "spec.completions"),
            (
                job(
                    json!({"template": {"spec": {"containers": [{"name": "c"}], "restartPolicy": "Always"}}}),
                ),
                "spec.template.spec.restartPolicy",
            ),
            (json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "Bad_Name"}}), "metadata.name"),
        ];
        for (value, field) in cases {
            assert_eq!(
                admitted(value.clone()).map_err(|refused| refused.field),
                Err(field.to_owned()),
                "{value}"
            );
        }
    }
}
