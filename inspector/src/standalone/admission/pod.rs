//! The spec of a Pod, except for its containers and scheduling constraints.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};

use super::problems::{Path, Problems, one_of};
use super::quantities::{ResourceOwner, requirements};
use super::syntax::{dns_label, dns_subdomain, qualified_name};
use super::{containers, meta, placement, pod_resources};

/// A Pod template and the allowed restart policies (the first is the default).
pub(super) fn template(
    template: &PodTemplateSpec,
    policies: &[&str],
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if let Some(metadata) = &template.metadata {
        meta::described(metadata, &path.field("metadata"), problems);
    }
    let path = path.field("spec");
    let Some(spec) = &template.spec else { return problems.required(&path, "") };
    pod(spec, &path, problems);
    if let Some(policy) = spec.restart_policy.as_deref().filter(|policy| !policies.contains(policy)) {
        problems.unsupported(&path.field("restartPolicy"), policy, policies);
    }
}

/// The `spec` of a Pod.
pub(super) fn pod(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let volumes = volumes(spec, path, problems);
    containers::all(spec, &volumes, path, problems);
    placement::all(spec, path, problems);
    if let Some(resources) = &spec.resources {
        requirements(resources, ResourceOwner::Pod, &path.field("resources"), problems);
        pod_resources::consistent(spec, resources, path, problems);
    }
    if let Some(overhead) = &spec.overhead {
        let limits = k8s_openapi::api::core::v1::ResourceRequirements {
            limits: Some(overhead.clone()),
            ..Default::default()
        };
        requirements(&limits, ResourceOwner::Container, &path.field("overhead"), problems);
    }
    if let Some(seconds) = spec.active_deadline_seconds.filter(|s| !(1..=i64::from(i32::MAX)).contains(s)) {
        let why = format!("must be between 1 and {}, inclusive", i32::MAX);
        problems.invalid(&path.field("activeDeadlineSeconds"), seconds, &why);
    }
    problems
        .not_negative(&path.field("terminationGracePeriodSeconds"), spec.termination_grace_period_seconds);
    one_of(spec.preemption_policy.as_deref(), &["PreemptLowerPriority", "Never"], |text, values| {
        problems.unsupported(&path.field("preemptionPolicy"), text, values);
    });
    let names = [
        ("nodeName", &spec.node_name),
        ("priorityClassName", &spec.priority_class_name),
        ("runtimeClassName", &spec.runtime_class_name),
        ("serviceAccountName", &spec.service_account_name),
    ];
    for (field, name) in names {
        if let Some(name) = name.as_deref().filter(|name| !name.is_empty()) {
            problems.names(&path.field(field), name, dns_subdomain(name));
        }
    }
    for (field, name) in [("hostname", &spec.hostname), ("subdomain", &spec.subdomain)] {
        if let Some(name) = name.as_deref().filter(|name| !name.is_empty()) {
            problems.names(&path.field(field), name, dns_label(name));
        }
    }
    if let Some(group) = spec.scheduling_group.as_ref().and_then(|group| group.pod_group_name.as_deref()) {
        let path = path.field("schedulingGroup");
        problems.names(&path.field("podGroupName"), group, dns_subdomain(group));
    }
    gates(spec, path, problems);
}

fn gates(spec: &PodSpec, path: &Path<'_>, problems: &mut Problems) {
    let list = path.field("schedulingGates");
    let mut seen = BTreeSet::new();
    for (index, gate) in spec.scheduling_gates.iter().flatten().enumerate() {
        let path = list.item(index);
        problems.names(&path, &gate.name, qualified_name(&gate.name));
        if !seen.insert(&gate.name) {
            problems.duplicate(&path, &gate.name);
        }
    }
    if !seen.is_empty() && spec.node_name.as_deref().is_some_and(|node| !node.is_empty()) {
        problems
            .forbidden(&path.field("nodeName"), "cannot be set until all schedulingGates have been cleared");
    }
}

/// The names of the volumes.
fn volumes<'a>(spec: &'a PodSpec, path: &Path<'_>, problems: &mut Problems) -> BTreeSet<&'a str> {
    let list = path.field("volumes");
    let mut names = BTreeSet::new();
    for (index, volume) in spec.volumes.iter().flatten().enumerate() {
        let path = list.item(index);
        let name = path.field("name");
        if volume.name.is_empty() {
            problems.required(&name, "");
        } else {
            problems.names(&name, &volume.name, dns_label(&volume.name));
        }
        if !names.insert(volume.name.as_str()) {
            problems.duplicate(&name, &volume.name);
        }
        let claim = path.field("persistentVolumeClaim");
        if volume.persistent_volume_claim.as_ref().is_some_and(|claim| claim.claim_name.is_empty()) {
            problems.required(&claim.field("claimName"), "");
        }
    }
    names
}
