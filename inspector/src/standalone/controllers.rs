//! The cluster's controllers: owners create Pods, and finish when those have.
//!
//! Each is a function of an owner and its Pods to objects to be created, deleted and updated; `cluster` carries these
//! out.

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::metadata::Uid;
use super::object::Object;

pub mod job;
pub mod replicas;

/// Maximum number of Pods that a controller creates per call; it is called again while it creates some.
pub const CREATE_MAX: usize = 4096;

/// The actions of a controller.
#[derive(Debug, Default, PartialEq)]
pub struct Actions {
    pub create: Vec<Object>,
    pub delete: Vec<Uid>,
    /// The owner with its new status, if changed.
    pub owner: Option<Object>,
}

/// A new Pod of an owner, from its template; its name is `start` with a suffix generated on admission.
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

/// Pod names are truncated to leave room for the suffix.
fn cut(name: &str) -> &str {
    /// Leaves room for an index and a suffix within the 63 characters of a label.
    const LENGTH_MAX: usize = 46;
    name.get(..LENGTH_MAX).unwrap_or(name)
}
