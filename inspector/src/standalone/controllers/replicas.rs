//! Deployments, `ReplicaSets` and `StatefulSets`: a number of Pods that are replaced when they go.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Wish, cut, owned_by, pod_of};
use crate::standalone::kubelet::{ended, phase};
use crate::standalone::object::Object;
use crate::standalone::store::Uid;

fn wanted(replicas: Option<i32>) -> usize {
    usize::try_from(replicas.unwrap_or(1)).unwrap_or(0)
}

/// A Deployment has one ReplicaSet of its size; its template can't change here.
pub fn deployment(deployment: &Deployment, sets: usize) -> Wish {
    let mut wish = Wish::default();
    if sets > 0 {
        return wish;
    }
    let spec = &deployment.spec;
    let owner = Object::Deployment(Box::new(deployment.clone()));
    let template = Some(spec.template.clone());
    let set = ReplicaSet {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}-", cut(owner.name()))),
            namespace: Some(owner.namespace().to_owned()),
            labels: spec.template.metadata.as_ref().and_then(|meta| meta.labels.clone()),
            annotations: owner.meta().annotations.clone(),
            owner_references: Some(vec![owned_by(&owner)]),
            ..ObjectMeta::default()
        },
        spec: ReplicaSetSpec {
            replicas: spec.replicas,
            selector: spec.selector.clone(),
            template,
            ..ReplicaSetSpec::default()
        },
        status: None,
    };
    wish.create.push(Object::ReplicaSet(Box::new(set)));
    wish
}

/// A ReplicaSet replaces Pods that end or are deleted.
pub fn replica_set(set: &ReplicaSet, pods: &[&Pod]) -> Wish {
    let mut wish = Wish::default();
    let Some(template) = &set.spec.template else { return wish };
    let owner = Object::ReplicaSet(Box::new(set.clone()));
    let live = pods.iter().filter(|pod| !ended(pod) && pod.metadata.deletion_timestamp.is_none()).count();
    let missing = wanted(set.spec.replicas).saturating_sub(live);
    for _ in 0..missing {
        wish.create.push(Object::Pod(Box::new(pod_of(&owner, cut(owner.name()), template))));
    }
    wish.delete = gone(pods);
    wish
}

/// A StatefulSet names its Pods by number, and makes the next one when the last runs unless told `Parallel`.
pub fn stateful_set(set: &StatefulSet, pods: &[&Pod]) -> Wish {
    let mut wish = Wish::default();
    let spec = &set.spec;
    let owner = Object::StatefulSet(Box::new(set.clone()));
    let ordered = spec.pod_management_policy.as_deref() != Some("Parallel");
    for number in 0..wanted(spec.replicas) {
        let name = format!("{}-{number}", owner.name());
        let there = pods.iter().find(|pod| pod.metadata.name.as_deref() == Some(name.as_str()));
        let runs =
            there.is_some_and(|pod| phase(pod) == "Running" && pod.metadata.deletion_timestamp.is_none());
        if there.is_none() {
            let mut pod = pod_of(&owner, owner.name(), &spec.template);
            pod.metadata.name = Some(name);
            wish.create.push(Object::Pod(Box::new(pod)));
        }
        if ordered && !runs {
            break;
        }
    }
    wish.delete = gone(pods);
    wish
}

/// Ended Pods make room for their successors.
fn gone(pods: &[&Pod]) -> Vec<Uid> {
    let ended = pods.iter().filter(|pod| ended(pod) && pod.metadata.deletion_timestamp.is_none());
    ended.filter_map(|pod| pod.metadata.uid.as_deref()).map(Into::into).collect()
}
