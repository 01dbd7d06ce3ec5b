//! The kinds of Kubernetes objects supported by standalone mode, as one enum.
//!
//! Knows names and metadata, but not how fields affect scheduling.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod, PodTemplateSpec};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// An object of a supported kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    Node(Box<Node>),
    Pod(Box<Pod>),
    Job(Box<Job>),
    /// Of either API: scheduling.k8s.io or scheduling.x-k8s.io.
    PodGroup(Box<DynamicObject>),
    Deployment(Box<Deployment>),
    ReplicaSet(Box<ReplicaSet>),
    StatefulSet(Box<StatefulSet>),
    PriorityClass(Box<PriorityClass>),
}

/// Why a document is not one of these objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAnObject {
    /// Well-formed, but of an unsupported kind.
    UnknownKind(String),
    /// The field at this path is missing or has the wrong type.
    Field { path: String, message: String },
}

/// The supported version of the native PodGroup.
const NATIVE_POD_GROUP: &str = "scheduling.k8s.io/v1beta1";

impl Object {
    /// Parses a JSON document according to its `apiVersion` and `kind`.
    pub fn from_value(mut value: Value) -> Result<Self, NotAnObject> {
        let text = |key: &str| match value.get(key) {
            Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
            _ => Err(NotAnObject::Field {
                path: key.to_owned(),
                message: "missing; a Kubernetes object has apiVersion and kind".to_owned(),
            }),
        };
        let (api_version, kind) = (text("apiVersion")?, text("kind")?);
        quantities_as_text(&mut value, 0);
        match (api_version.as_str(), kind.as_str()) {
            ("v1", "Node") => typed(value).map(|object| Self::Node(Box::new(object))),
            ("v1", "Pod") => typed(value).map(|object| Self::Pod(Box::new(object))),
            ("batch/v1", "Job") => typed(value).map(|object| Self::Job(Box::new(object))),
            ("apps/v1", "Deployment") => typed(value).map(|object| Self::Deployment(Box::new(object))),
            ("apps/v1", "ReplicaSet") => typed(value).map(|object| Self::ReplicaSet(Box::new(object))),
            ("apps/v1", "StatefulSet") => typed(value).map(|object| Self::StatefulSet(Box::new(object))),
            ("scheduling.k8s.io/v1", "PriorityClass") => {
                typed(value).map(|object| Self::PriorityClass(Box::new(object)))
            }
            (NATIVE_POD_GROUP, "PodGroup") => {
                typed::<PodGroup>(value.clone())?;
                typed(value).map(|object| Self::PodGroup(Box::new(object)))
            }
            (version, "PodGroup") if version.starts_with("scheduling.x-k8s.io/") => {
                typed(value).map(|object| Self::PodGroup(Box::new(object)))
            }
            (version, "PodGroup") if version.starts_with("scheduling.k8s.io/") => Err(NotAnObject::Field {
                path: "apiVersion".to_owned(),
                message: format!("is {version}, but only {NATIVE_POD_GROUP} is supported for PodGroups"),
            }),
            _ => Err(NotAnObject::UnknownKind(format!("{kind} ({api_version})"))),
        }
    }

    /// The object as it would be served: with `apiVersion` and `kind`.
    pub fn to_value(&self) -> Value {
        let value = match self {
            Self::Node(object) => serde_json::to_value(object),
            Self::Pod(object) => serde_json::to_value(object),
            Self::Job(object) => serde_json::to_value(object),
            Self::PodGroup(object) => serde_json::to_value(object),
            Self::Deployment(object) => serde_json::to_value(object),
            Self::ReplicaSet(object) => serde_json::to_value(object),
            Self::StatefulSet(object) => serde_json::to_value(object),
            Self::PriorityClass(object) => serde_json::to_value(object),
        };
        value.unwrap_or(Value::Null)
    }

    /// The value of `kind`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Node(_) => "Node",
            Self::Pod(_) => "Pod",
            Self::Job(_) => "Job",
            Self::PodGroup(_) => "PodGroup",
            Self::Deployment(_) => "Deployment",
            Self::ReplicaSet(_) => "ReplicaSet",
            Self::StatefulSet(_) => "StatefulSet",
            Self::PriorityClass(_) => "PriorityClass",
        }
    }

    /// The value of `apiVersion`.
    pub fn api_version(&self) -> &str {
        match self {
            Self::Node(_) | Self::Pod(_) => "v1",
            Self::Job(_) => "batch/v1",
            Self::Deployment(_) | Self::ReplicaSet(_) | Self::StatefulSet(_) => "apps/v1",
            Self::PriorityClass(_) => "scheduling.k8s.io/v1",
            Self::PodGroup(object) => object.types.as_ref().map_or("", |types| types.api_version.as_str()),
        }
    }

    /// Whether objects of this kind are namespaced.
    pub fn namespaced(&self) -> bool {
        !matches!(self, Self::Node(_) | Self::PriorityClass(_))
    }

    /// Its metadata.
    pub fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Node(object) => &object.metadata,
            Self::Pod(object) => &object.metadata,
            Self::Job(object) => &object.metadata,
            Self::PodGroup(object) => &object.metadata,
            Self::Deployment(object) => &object.metadata,
            Self::ReplicaSet(object) => &object.metadata,
            Self::StatefulSet(object) => &object.metadata,
            Self::PriorityClass(object) => &object.metadata,
        }
    }

    /// Its metadata, mutable.
    pub fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Node(object) => &mut object.metadata,
            Self::Pod(object) => &mut object.metadata,
            Self::Job(object) => &mut object.metadata,
            Self::PodGroup(object) => &mut object.metadata,
            Self::Deployment(object) => &mut object.metadata,
            Self::ReplicaSet(object) => &mut object.metadata,
            Self::StatefulSet(object) => &mut object.metadata,
            Self::PriorityClass(object) => &mut object.metadata,
        }
    }

    /// `metadata.name`, empty if missing.
    pub fn name(&self) -> &str {
        self.meta().name.as_deref().unwrap_or_default()
    }

    /// `metadata.namespace`, empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.meta().namespace.as_deref().unwrap_or_default()
    }

    /// `metadata.uid`, empty before it was admitted.
    pub fn uid(&self) -> &str {
        self.meta().uid.as_deref().unwrap_or_default()
    }

    /// An annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.meta().annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// Its Pod template.
    pub fn pod_template(&self) -> Option<&PodTemplateSpec> {
        match self {
            Self::Job(job) => Some(&job.spec.as_ref()?.template),
            Self::Deployment(deployment) => Some(&deployment.spec.template),
            Self::ReplicaSet(set) => set.spec.template.as_ref(),
            Self::StatefulSet(set) => Some(&set.spec.template),
            Self::Node(_) | Self::Pod(_) | Self::PodGroup(_) | Self::PriorityClass(_) => None,
        }
    }

    /// An annotation of its Pod template.
    pub fn annotation_of_pods(&self, key: &str) -> Option<&str> {
        let template = self.pod_template()?;
        template.metadata.as_ref()?.annotations.as_ref()?.get(key).map(String::as_str)
    }
}

/// Deserializes; errors contain the path of the invalid field.
fn typed<T: DeserializeOwned>(value: Value) -> Result<T, NotAnObject> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        NotAnObject::Field { path, message: error.into_inner().to_string() }
    })
}

/// Maps of quantities, in which YAML users write `cpu: 4` and the API server accepts it as `"4"`.
const QUANTITY_MAPS: [&str; 7] =
    ["requests", "limits", "capacity", "allocatable", "overhead", "allocatedResources", "hard"];

/// Converts bare numbers in maps of quantities to strings, down to the depth of manifests.
fn quantities_as_text(value: &mut Value, depth: u32) {
    /// Deeper than any field of these kinds; the limit of the YAML parser is also 64.
    const DEPTH_MAX: u32 = 64;
    if depth > DEPTH_MAX {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                if let (true, Value::Object(quantities)) =
                    (QUANTITY_MAPS.contains(&key.as_str()), &mut *field)
                {
                    for quantity in quantities.values_mut() {
                        if let Value::Number(number) = quantity {
                            *quantity = Value::String(number.to_string());
                        }
                    }
                } else {
                    quantities_as_text(field, depth + 1);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| quantities_as_text(item, depth + 1)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bare_numbers_are_quantities() {
        let pod = Object::from_value(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": 4, "memory": "1Gi"}}}]},
        }))
        .unwrap();
        let Object::Pod(pod) = pod else { panic!("a Pod, not {pod:?}") };
        let requests = pod.spec.unwrap().containers.remove(0).resources.unwrap().requests.unwrap();
        assert_eq!(requests["cpu"].0, "4");
        assert_eq!(requests["memory"].0, "1Gi");
    }

    #[test]
    fn the_path_of_a_wrong_field_is_named() {
        let bad = Object::from_value(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c"}], "priority": "high"},
        }));
        let Err(NotAnObject::Field { path, message }) = bad else { panic!("refused, not {bad:?}") };
        assert_eq!(path, "spec.priority");
        assert!(message.contains("high"), "{message}");
    }

    #[test]
    fn both_pod_groups_are_taken_and_others_are_not() {
        let group = |api_version: &str| {
            Object::from_value(
                json!({"apiVersion": api_version, "kind": "PodGroup", "metadata": {"name": "g"}}),
            )
        };
        assert_eq!(
            group("scheduling.x-k8s.io/v1alpha1").unwrap().api_version(),
            "scheduling.x-k8s.io/v1alpha1"
        );
        let native = json!({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}});
        assert_eq!(Object::from_value(native).unwrap().kind(), "PodGroup");
        let Err(NotAnObject::Field { path, .. }) = group("scheduling.k8s.io/v1alpha2") else {
            panic!("refused")
        };
        assert_eq!(path, "apiVersion");
        assert_eq!(
            group("scheduling.volcano.sh/v1beta1"),
            Err(NotAnObject::UnknownKind("PodGroup (scheduling.volcano.sh/v1beta1)".to_owned()))
        );
    }
}
