//! What the cluster's controllers would do: owners make Pods, and end when those have.
//!
//! Each one is a function of an owner and its Pods to what is to be created, deleted and written; carrying that
//! out is `cluster`'s.

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::metadata::Uid;
use super::object::Object;

pub mod job;
pub mod replicas;

/// So many Pods a controller makes at a time; it is asked again as long as it makes some.
pub const CREATE_MAX: usize = 4096;

/// What a controller wants done.
#[derive(Debug, Default, PartialEq)]
pub struct Actions {
    pub create: Vec<Object>,
    pub delete: Vec<Uid>,
    /// The owner with its new status, where that differs.
    pub owner: Option<Object>,
}

/// A new Pod of an owner, from its template; its name is `start` and a suffix that admission makes up.
fn pod_of(owner: &Object, start: &str, template: &PodTemplateSpec) -> Pod {
    let meta = template.metadata.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{start}-")),
            namespace: Some(owner.namespace().to_owned()),
            labels: meta.labels,
            annotations: meta.annotations,
            owner_references: Some(vec![owned_by(owner)]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

fn owned_by(owner: &Object) -> OwnerReference {
    OwnerReference {
        api_version: owner.api_version().to_owned(),
        kind: owner.kind().to_owned(),
        name: owner.name().to_owned(),
        uid: owner.uid().to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Names of Pods are cut so that the suffix still fits.
fn cut(name: &str) -> &str {
    /// Room for an index and a suffix within the 63 characters of a label.
    const LENGTH_MAX: usize = 46;
    name.get(..LENGTH_MAX).unwrap_or(name)
}
