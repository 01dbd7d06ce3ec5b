//! Objects at rest: of a Pod only what controllers ask for lies open, the rest is text.
//!
//! There are many Pods, and a Pod in the form of its API type takes several kilobytes, most of them empty. Pods of one
//! template share the text of their `spec`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::kubelet;
use super::metadata::{Uid, controller_uid};
use super::object::Object;

/// Annotation with the index of a Pod of an Indexed Job.
pub const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// How far a Pod has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Waiting,
    Running,
    Succeeded,
    Failed,
}

impl Phase {
    /// Whether it is final.
    pub fn ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// What controllers ask of a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brief {
    pub uid: Uid,
    pub name: Box<str>,
    pub phase: Phase,
    /// It was deleted, and may still run.
    pub deleting: bool,
    /// Of an Indexed Job.
    pub index: Option<i32>,
    /// It is on a node.
    pub placed: bool,
}

impl Brief {
    /// What there is to say of this Pod.
    pub fn of(pod: &Pod) -> Self {
        let annotations = pod.metadata.annotations.as_ref();
        Self {
            uid: pod.metadata.uid.as_deref().unwrap_or_default().into(),
            name: pod.metadata.name.as_deref().unwrap_or_default().into(),
            phase: match kubelet::phase(pod) {
                "Running" => Phase::Running,
                "Succeeded" => Phase::Succeeded,
                "Failed" => Phase::Failed,
                _ => Phase::Waiting,
            },
            deleting: pod.metadata.deletion_timestamp.is_some(),
            index: annotations.and_then(|annotations| annotations.get(INDEX)?.parse().ok()),
            placed: pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()),
        }
    }

    /// It wants to run, or runs, and was not deleted.
    pub fn active(&self) -> bool {
        !self.phase.ended() && !self.deleting
    }

    /// It is on a node and has not ended.
    pub fn holds_a_node(&self) -> bool {
        self.placed && !self.phase.ended()
    }
}

/// An object at rest.
#[derive(Clone, Debug)]
pub enum Packed {
    Whole(Object),
    Pod(Box<PackedPod>),
}

/// See [`Packed`].
#[derive(Clone, Debug)]
pub struct PackedPod {
    brief: Brief,
    namespace: Box<str>,
    owner: Option<Uid>,
    /// JSON of the parts.
    metadata: Box<str>,
    status: Box<str>,
    /// JSON of the spec without `nodeName`.
    spec: Arc<str>,
    node: Option<Box<str>>,
}

/// Texts of specs that Pods share.
#[derive(Debug, Default)]
pub struct Specs(BTreeSet<Arc<str>>);

impl Specs {
    fn share(&mut self, text: String) -> Arc<str> {
        if let Some(known) = self.0.get(text.as_str()) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        self.0.insert(Arc::clone(&text));
        text
    }

    /// Forgets the spec of a Pod that goes, when it was the last that had it.
    pub fn release(&mut self, packed: &Packed) {
        if let Packed::Pod(pod) = packed
            && Arc::strong_count(&pod.spec) == 2
        {
            self.0.remove(&*pod.spec);
        }
    }
}

impl Packed {
    /// Packs an object; `specs` are those of its like.
    pub fn of(object: Object, specs: &mut Specs) -> Self {
        let (owner, namespace) = (controller_uid(&object), object.namespace().into());
        let mut pod = match object {
            Object::Pod(pod) => pod,
            other => return Self::Whole(other),
        };
        let brief = Brief::of(&pod);
        let node = pod.spec.as_mut().and_then(|spec| spec.node_name.take()).map(String::into_boxed_str);
        let spec = specs.share(json(&pod.spec));
        let (metadata, status) = (json(&pod.metadata).into(), json(&pod.status).into());
        Self::Pod(Box::new(PackedPod { brief, namespace, owner, metadata, status, spec, node }))
    }

    /// The object.
    pub fn open(&self) -> Cow<'_, Object> {
        match self {
            Self::Whole(object) => Cow::Borrowed(object),
            Self::Pod(pod) => Cow::Owned(pod.open()),
        }
    }

    /// As it is written down: the object's JSON.
    pub fn text(&self) -> String {
        match self {
            Self::Whole(object) => object.to_value().to_string(),
            Self::Pod(pod) => {
                let PackedPod { metadata, status, spec, .. } = &**pod;
                let head = r#"{"apiVersion":"v1","kind":"Pod","metadata":"#;
                let node = pod.node.as_ref().zip(spec.strip_prefix('{')).map(|(node, rest)| {
                    let comma = if rest == "}" { "" } else { "," };
                    format!(r#"{{"nodeName":{}{comma}{rest}"#, json(node))
                });
                let spec = node.as_deref().unwrap_or(spec);
                format!(r#"{head}{metadata},"spec":{spec},"status":{status}}}"#)
            }
        }
    }

    /// Kind, namespace and name.
    pub fn called(&self) -> (&'static str, String, String) {
        match self {
            Self::Whole(object) => (object.kind(), object.namespace().to_owned(), object.name().to_owned()),
            Self::Pod(pod) => ("Pod", pod.namespace.to_string(), pod.brief.name.to_string()),
        }
    }

    /// What controllers ask of it, if it is a Pod.
    pub fn brief(&self) -> Option<&Brief> {
        match self {
            Self::Whole(_) => None,
            Self::Pod(pod) => Some(&pod.brief),
        }
    }

    /// Uid of the owner that is its controller.
    pub fn owner(&self) -> Option<Uid> {
        match self {
            Self::Whole(object) => controller_uid(object),
            Self::Pod(pod) => pod.owner.clone(),
        }
    }

    /// The object itself, unless it is a Pod.
    pub fn whole(&self) -> Option<&Object> {
        match self {
            Self::Whole(object) => Some(object),
            Self::Pod(_) => None,
        }
    }
}

/// Our own types, which were read from JSON: they can be written as such.
fn json(part: &impl Serialize) -> String {
    serde_json::to_string(part).unwrap_or_else(|_| "null".to_owned())
}

/// What [`json`] wrote.
fn parsed<T: DeserializeOwned + Default>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_default()
}

impl PackedPod {
    fn open(&self) -> Object {
        let mut pod =
            Pod { metadata: parsed(&self.metadata), spec: parsed(&self.spec), status: parsed(&self.status) };
        if let Some(spec) = &mut pod.spec {
            spec.node_name = self.node.as_deref().map(str::to_owned);
        }
        Object::Pod(Box::new(pod))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, node: Option<&str>) -> Object {
        Object::from_value(json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "uid": name, "annotations": {INDEX: "3"}, "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": true}]},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}], "nodeName": node},
            "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}))
        .unwrap()
    }

    #[test]
    fn what_is_packed_is_the_same_again() {
        let mut specs = Specs::default();
        for object in [pod("p", None), pod("q", Some("n1"))] {
            let packed = Packed::of(object.clone(), &mut specs);
            assert_eq!(*packed.open(), object);
            assert_eq!(serde_json::from_str::<Value>(&packed.text()).unwrap(), object.to_value());
            assert_eq!(packed.owner().as_deref(), Some("j"));
            let brief = packed.brief().unwrap();
            assert_eq!(
                (brief.phase, brief.index, brief.placed),
                (Phase::Running, Some(3), &*brief.name == "q")
            );
        }
    }

    #[test]
    fn pods_of_one_template_share_their_spec_and_the_last_takes_it_along() {
        let mut specs = Specs::default();
        let (one, other) =
            (Packed::of(pod("p", None), &mut specs), Packed::of(pod("q", Some("n1")), &mut specs));
        assert_eq!(specs.0.len(), 1);
        specs.release(&one);
        assert_eq!(specs.0.len(), 1, "the other still has it");
        drop(one);
        specs.release(&other);
        assert!(specs.0.is_empty());
    }
}
