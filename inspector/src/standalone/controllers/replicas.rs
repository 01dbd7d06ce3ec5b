//! Deployments, `ReplicaSets` and `StatefulSets`: a number of Pods that are replaced when they end.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec, StatefulSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Actions, CREATE_MAX, cut, owned_by, pod_of};
use crate::standalone::metadata::Uid;
use crate::standalone::object::Object;
use crate::standalone::packed::{Brief, Phase};

fn wanted(replicas: Option<i32>) -> usize {
    usize::try_from(replicas.unwrap_or(1)).unwrap_or(0)
}

/// A Deployment has one ReplicaSet of the same size; its template can't be changed here.
pub fn deployment(deployment: &Deployment, sets: usize) -> Actions {
    let mut actions = Actions::default();
    if sets > 0 {
        return actions;
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
    actions.create.push(Object::ReplicaSet(Box::new(set)));
    actions
}

/// A ReplicaSet replaces Pods that end or are deleted.
pub fn replica_set<'a>(set: &ReplicaSet, pods: impl IntoIterator<Item = &'a Brief>) -> Actions {
    let mut actions = Actions::default();
    let Some(template) = &set.spec.template else { return actions };
    let owner = Object::ReplicaSet(Box::new(set.clone()));
    let mut live = 0;
    for pod in pods {
        live += usize::from(pod.active());
        actions.delete.extend(ended(pod));
    }
    for _ in 0..wanted(set.spec.replicas).saturating_sub(live).min(CREATE_MAX) {
        actions.create.push(Object::Pod(Box::new(pod_of(&owner, cut(owner.name()), template))));
    }
    actions
}

/// A StatefulSet numbers its Pods, and creates the next one when the previous one runs, unless `Parallel`.
pub fn stateful_set<'a>(set: &StatefulSet, pods: impl IntoIterator<Item = &'a Brief>) -> Actions {
    let mut actions = Actions::default();
    let spec = &set.spec;
    let owner = Object::StatefulSet(Box::new(set.clone()));
    let ordered = spec.pod_management_policy.as_deref() != Some("Parallel");
    let pods: BTreeMap<&str, &Brief> = pods.into_iter().map(|pod| (&*pod.name, pod)).collect();
    actions.delete = pods.values().filter_map(|pod| ended(pod)).collect();
    for number in 0..wanted(spec.replicas) {
        let name = format!("{}-{number}", owner.name());
        let there = pods.get(name.as_str());
        if there.is_none() {
            let mut pod = pod_of(&owner, owner.name(), &spec.template);
            pod.metadata.name = Some(name);
            actions.create.push(Object::Pod(Box::new(pod)));
        }
        let runs = there.is_some_and(|pod| pod.phase == Phase::Running && !pod.deleting);
        if ordered && !runs || actions.create.len() == CREATE_MAX {
            break;
        }
    }
    actions
}

/// Finished Pods are deleted and replaced.
fn ended(pod: &Brief) -> Option<Uid> {
    (pod.phase.ended() && !pod.deleting).then(|| pod.uid.clone())
}
