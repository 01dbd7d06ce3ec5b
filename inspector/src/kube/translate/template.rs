//! Pods that do not exist yet, from their templates.

use std::sync::Arc;

use fluxion_scheduler::marks::GATE;
use fluxion_scheduler::model::PodSpec;
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::pod;

/// The Pods that this controller makes from a template, without names of their own, at our gate.
pub(super) fn of(
    template: PodTemplateSpec,
    of: &ObjectMeta,
    controller: OwnerReference,
) -> Option<Arc<PodSpec>> {
    let made = template.metadata.unwrap_or_default();
    let metadata = ObjectMeta {
        labels: made.labels,
        annotations: made.annotations,
        owner_references: Some(vec![controller]),
        ..of.clone()
    };
    let mut pod = pod::translate(&Pod { metadata, spec: template.spec, status: None }).ok()?;
    (pod.deleting, pod.deletes_at, pod.record) = (false, None, None);
    pod.gates = vec![GATE.into()];
    Some(Arc::new(pod))
}
