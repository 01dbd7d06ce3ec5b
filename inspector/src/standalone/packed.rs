//! Compact storage of objects: of a Pod, only the fields used by controllers are parsed, the rest is text.
//!
//! There may be many Pods, and a Pod as its API type takes several kilobytes, mostly empty fields. Pods with the same
//! template share the text of their `spec` and of the metadata from the template or owner; those with the same status
//! share its text.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::kubelet;
use super::metadata::{Uid, controller_uid};
use super::object::Object;
use crate::kube::translate::ALLOCATION;

/// Annotation with the index of a Pod of an Indexed Job.
pub const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Labels and annotations that differ between the Pods of a template.
const OWN: [&str; 4] =
    [ALLOCATION, INDEX, "apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name"];

/// The phase of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Waiting,
    Running,
    Succeeded,
    Failed,
}

impl Phase {
    /// Whether it is terminal.
    pub fn ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// The fields of a Pod used by controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brief {
    pub uid: Uid,
    pub name: Box<str>,
    pub phase: Phase,
    /// It was deleted, and may still be running.
    pub deleting: bool,
    /// Of an Indexed Job.
    pub index: Option<i32>,
    /// It is bound to a node.
    pub placed: bool,
}

impl Brief {
    /// The fields of this Pod.
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

    /// It is waiting or running, and not being deleted.
    pub fn active(&self) -> bool {
        !self.phase.ended() && !self.deleting
    }

    /// It is bound to a node and has not finished.
    pub fn holds_a_node(&self) -> bool {
        self.placed && !self.phase.ended()
    }
}

/// A stored object.
#[derive(Clone, Debug)]
pub enum Packed {
    Whole(Object),
    Pod(Box<PackedPod>),
}

/// See [`Packed`].
#[derive(Clone, Debug)]
pub struct PackedPod {
    brief: Brief,
    namespace: Arc<str>,
    owner: Option<Uid>,
    node: Option<Arc<str>>,
    /// JSON of the metadata without the parts taken by [`take_common`], and of those parts.
    metadata: Box<str>,
    common: Arc<str>,
    status: Arc<str>,
    /// JSON of the spec without `nodeName`.
    spec: Arc<str>,
}

/// Texts shared by Pods.
#[derive(Debug, Default)]
pub struct Texts(HashSet<Arc<str>>);

impl Texts {
    fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        self.0.insert(Arc::clone(&text));
        text
    }

    /// Drops the texts of a deleted or changed Pod that no other Pod uses.
    pub fn release(&mut self, packed: &Packed) {
        let Packed::Pod(pod) = packed else { return };
        let PackedPod { namespace, owner, node, common, status, spec, .. } = &**pod;
        let held: Vec<&Arc<str>> =
            [namespace, common, status, spec].into_iter().chain(owner).chain(node).collect();
        for text in &held {
            // Its node and its namespace may have the same name.
            let times = held.iter().filter(|other| Arc::ptr_eq(text, other)).count();
            if Arc::strong_count(text) == times + 1 {
                self.0.remove(*text);
            }
        }
    }
}

/// Removes from the metadata what Pods with the same owner and template have in common.
fn take_common(own: &mut ObjectMeta) -> ObjectMeta {
    let part = |map: &mut Option<BTreeMap<String, String>>| {
        let (own, common): (BTreeMap<_, _>, _) =
            map.take()?.into_iter().partition(|(key, _)| OWN.contains(&key.as_str()));
        *map = (!own.is_empty()).then_some(own);
        Some(common)
    };
    ObjectMeta {
        labels: part(&mut own.labels),
        annotations: part(&mut own.annotations),
        owner_references: own.owner_references.take(),
        namespace: own.namespace.take(),
        generate_name: own.generate_name.take(),
        ..ObjectMeta::default()
    }
}

/// Reverses [`take_common`].
fn with_common(own: ObjectMeta, mut common: ObjectMeta) -> ObjectMeta {
    for (map, own) in [(&mut common.labels, own.labels), (&mut common.annotations, own.annotations)] {
        if let Some(own) = own {
            map.get_or_insert_default().extend(own);
        }
    }
    let ObjectMeta { labels, annotations, owner_references, namespace, generate_name, .. } = common;
    ObjectMeta { labels, annotations, owner_references, namespace, generate_name, ..own }
}

impl Packed {
    /// Packs an object; `texts` are the shared texts.
    pub fn of(object: Object, texts: &mut Texts) -> Self {
        let owner = controller_uid(&object).map(|owner| texts.share(&owner));
        let namespace = texts.share(object.namespace());
        let mut pod = match object {
            Object::Pod(pod) => pod,
            other => return Self::Whole(other),
        };
        let brief = Brief::of(&pod);
        let node = pod.spec.as_mut().and_then(|spec| spec.node_name.take()).map(|node| texts.share(&node));
        let common = texts.share(&json(&take_common(&mut pod.metadata)));
        let (spec, status) = (texts.share(&json(&pod.spec)), texts.share(&json(&pod.status)));
        let metadata = json(&pod.metadata).into();
        Self::Pod(Box::new(PackedPod { brief, namespace, owner, node, metadata, common, status, spec }))
    }

    /// Shares the UID under which it is stored, instead of keeping a copy.
    pub fn keep_as(&mut self, uid: &Uid) {
        if let Self::Pod(pod) = self {
            pod.brief.uid = Arc::clone(uid);
        }
    }

    /// The object.
    pub fn open(&self) -> Cow<'_, Object> {
        match self {
            Self::Whole(object) => Cow::Borrowed(object),
            Self::Pod(pod) => Cow::Owned(pod.open()),
        }
    }

    /// Its serialized form: the object's JSON.
    pub fn text(&self) -> String {
        match self {
            Self::Whole(object) => object.to_value().to_string(),
            Self::Pod(pod) => {
                let PackedPod { status, spec, .. } = &**pod;
                let metadata = json(&pod.metadata());
                let head = r#"{"apiVersion":"v1","kind":"Pod","metadata":"#;
                let node = pod.node.as_ref().zip(spec.strip_prefix('{')).map(|(node, rest)| {
                    let comma = if rest == "}" { "" } else { "," };
                    format!(r#"{{"nodeName":{}{comma}{rest}"#, json(node))
                });
                let spec = node.as_deref().unwrap_or(spec);
                [head, &metadata, r#","spec":"#, spec, r#","status":"#, status, "}"].concat()
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

    /// The fields used by controllers, if it is a Pod.
    pub fn brief(&self) -> Option<&Brief> {
        match self {
            Self::Whole(_) => None,
            Self::Pod(pod) => Some(&pod.brief),
        }
    }

    /// UID of its controlling owner.
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

/// Serializes our own types, which were parsed from JSON and can't fail.
fn json(part: &impl Serialize) -> String {
    serde_json::to_string(part).unwrap_or_else(|_| "null".to_owned())
}

/// Parses the output of [`json`].
fn parsed<T: DeserializeOwned + Default>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_default()
}

impl PackedPod {
    fn metadata(&self) -> ObjectMeta {
        with_common(parsed(&self.metadata), parsed(&self.common))
    }

    fn open(&self) -> Object {
        let mut pod =
            Pod { metadata: self.metadata(), spec: parsed(&self.spec), status: parsed(&self.status) };
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
            "metadata": {"name": name, "generateName": "j-", "namespace": "a", "uid": name,
                "annotations": {INDEX: "3"}, "labels": {"app": "solver", INDEX: "3"}, "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": true}]},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}], "nodeName": node},
            "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}))
        .unwrap()
    }

    #[test]
    fn what_is_packed_is_the_same_again() {
        let mut texts = Texts::default();
        for object in [pod("p", None), pod("q", Some("n1"))] {
            let packed = Packed::of(object.clone(), &mut texts);
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
    fn pods_of_one_template_share_texts_and_the_last_takes_them_along() {
        let mut texts = Texts::default();
        let mut packed = |name: &str, node: Option<&str>| Packed::of(pod(name, node), &mut texts);
        let (one, other) = (packed("p", None), packed("q", Some("a")));
        let all = texts.0.len();
        assert_eq!(all, 5, "namespace or node, owner, metadata, status, spec");
        texts.release(&one);
        assert_eq!(texts.0.len(), all, "the other still has them");
        drop(one);
        texts.release(&other);
        assert!(texts.0.is_empty());
    }
}
