//! Kinds that make several sets of Pods, read by the table of [`crate::kube::suspendable`].

use std::sync::Arc;

use fluxion_scheduler::model::{OwnerDetail, OwnerSpec, PodSet, PodSpec, SharedStr};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::DynamicObject;
use serde_json::Value;

use super::{Unreadable, owner, template};
use crate::kube::suspendable::{Annotated, Later, SetForm, Sets, Suspendable};

/// Maximum number of sets of one object; if there are more, their Pods are not known.
const SETS_MAX: usize = 256;
const DONE: [&str; 3] = ["Completed", "Complete", "Succeeded"];
const RAY_FAILED: [&str; 2] = ["Failed", "ValidationFailed"];

/// An object of this kind.
pub(in crate::kube) fn translate(
    kind: &Suspendable,
    object: &DynamicObject,
) -> Result<OwnerSpec, Unreadable> {
    let data = &object.data;
    let suspended = kind.is_suspended(data);
    let condition = |types: &[&str]| {
        let conditions = data.pointer("/status/conditions").and_then(Value::as_array);
        let one = |one: &&Value| {
            one["status"] == "True" && one["type"].as_str().is_some_and(|name| types.contains(&name))
        };
        conditions.and_then(|conditions| conditions.iter().find(one))
    };
    // RayJobs have no conditions.
    let deployment = data.pointer("/status/jobDeploymentStatus").and_then(Value::as_str);
    let complete = condition(&DONE).is_some() || deployment == Some("Complete");
    let ray_failed = deployment.is_some_and(|status| RAY_FAILED.contains(&status));
    let reason = |reason: Option<&'_ Value>| reason.and_then(Value::as_str).unwrap_or_default().into();
    let failed: Option<SharedStr> = match condition(&["Failed"]) {
        Some(condition) => Some(reason(condition.get("reason"))),
        None => ray_failed.then(|| reason(data.pointer("/status/reason"))),
    };
    let sets = sets(kind, object, suspended && !complete && failed.is_none());
    let template = kind.sets.iter().find_map(|sets| {
        let described = descriptions(sets, data).into_iter().next()?;
        serde_json::from_value(described.pointer(sets.template)?.clone()).ok()
    });
    let scheduler = owner::scheduler(template.as_ref());
    let detail = if kind.sets.is_empty() {
        OwnerDetail::Delegating { suspended, complete, failed }
    } else if sets.is_empty() || sets.len() > SETS_MAX {
        OwnerDetail::Other
    } else {
        OwnerDetail::Sets { sets: sets.into(), suspended, complete, failed }
    };
    Ok(OwnerSpec { scheduler, ..owner::owner(&object.metadata, kind.api_version, kind.kind, detail)? })
}

fn sets(kind: &Suspendable, object: &DynamicObject, with_templates: bool) -> Vec<PodSet> {
    let mut found = Vec::new();
    for sets in kind.sets {
        for described in descriptions(sets, &object.data).into_iter().take(SETS_MAX + 1) {
            let template =
                with_templates.then(|| template(kind, object, described.pointer(sets.template)?)).flatten();
            found.push(PodSet { count: count(sets, object, described), template });
        }
    }
    found
}

/// The descriptions of Pods that are created at first.
fn descriptions<'a>(sets: &Sets, data: &'a Value) -> Vec<&'a Value> {
    let is = |path: &str, value: &str| data.pointer(path).and_then(Value::as_str) == Some(value);
    let found: Vec<(&str, &Value)> = match (sets.form, data.pointer(sets.at)) {
        (_, None) => Vec::new(),
        (SetForm::One, Some(one)) => vec![("", one)],
        (SetForm::List, Some(list)) => list.as_array().into_iter().flatten().map(|one| ("", one)).collect(),
        (SetForm::Map, Some(map)) => {
            map.as_object().into_iter().flatten().map(|(name, one)| (name.as_str(), one)).collect()
        }
    };
    let later = |at: usize, name: &str, one: &Value| {
        sets.later.iter().any(|later| match later {
            Later::OthersIf(path, value) => at > 0 && is(path, value),
            Later::With(path) => one.pointer(path).is_some(),
            Later::NamedIf(of, path, value) => name == *of && is(path, value),
        })
    };
    let first = found.into_iter().enumerate().filter(|(at, (name, one))| !later(*at, name, one));
    first.map(|(_, (_, one))| one).collect()
}

/// Number of Pods of a description that run at once, as far as they are created at first.
fn count(sets: &Sets, object: &DynamicObject, described: &Value) -> i64 {
    let number = |path: Option<&str>| described.pointer(path?).and_then(Value::as_i64);
    if sets.none_if.and_then(|path| described.pointer(path)?.as_bool()) == Some(true) {
        return 0;
    }
    let counts = sets.counts.iter().map(|one| {
        let count = number(Some(one.at)).unwrap_or(1).max(number(one.at_least).unwrap_or(0));
        let count = count.min(number(one.at_most).unwrap_or(i64::MAX)).max(0);
        let first = one.first_if.as_ref().is_some_and(|annotated| is_annotated(annotated, object, described));
        if first { count.min(1) } else { count }
    });
    counts.fold(1, i64::saturating_mul)
}

/// Annotations of the object and of the description apply alike.
fn is_annotated(annotated: &Annotated, object: &DynamicObject, described: &Value) -> bool {
    let own = object.metadata.annotations.as_ref();
    let has = |key: &str| {
        let of_description = described.pointer(annotated.at).and_then(|metadata| metadata.get("annotations"));
        own.is_some_and(|own| own.contains_key(key))
            || of_description.is_some_and(|map| map.get(key).is_some())
    };
    has(annotated.with) && !has(annotated.without)
}

/// The Pods of a template, without names of their own, at our gate.
fn template(kind: &Suspendable, object: &DynamicObject, template: &Value) -> Option<Arc<PodSpec>> {
    let template: PodTemplateSpec = serde_json::from_value(template.clone()).ok()?;
    let controller = OwnerReference {
        api_version: kind.api_version.to_owned(),
        kind: kind.kind.to_owned(),
        name: object.metadata.name.clone().unwrap_or_default(),
        uid: object.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    };
    template::of(template, &object.metadata, controller)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kube::suspendable::{KINDS, of};

    fn template(cpu: &str) -> Value {
        json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}})
    }

    fn read(api_version: &str, kind: &str, spec: &Value, status: &Value) -> OwnerDetail {
        let object = json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": "x", "namespace": "a", "uid": "u"}, "spec": spec, "status": status});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        translate(of(api_version, kind).unwrap(), &object).unwrap().detail
    }

    /// The numbers of Pods, with what each of them requests in milli-CPUs; none without templates.
    fn shapes(detail: &OwnerDetail) -> Vec<(i64, Option<u64>)> {
        let OwnerDetail::Sets { sets, .. } = detail else { panic!("{detail:?}") };
        let cpu = |pod: &Arc<PodSpec>| pod.needs.as_ref().unwrap().get("cpu");
        sets.iter().map(|set| (set.count, set.template.as_ref().map(cpu))).collect()
    }

    #[test]
    fn a_job_set_has_the_pods_of_all_its_jobs() {
        let job = |replicas: u32, spec: Value| json!({"name": "j", "replicas": replicas, "template": {"spec": spec}});
        let leader = job(1, json!({"template": template("1")}));
        let workers = job(2, json!({"parallelism": 4, "completions": 3, "template": template("2")}));
        let spec = json!({"suspend": true, "replicatedJobs": [leader, workers]});
        let detail = read("jobset.x-k8s.io/v1alpha2", "JobSet", &spec, &json!({}));
        assert!(detail.suspended() && detail.ended().is_none());
        assert_eq!(shapes(&detail), [(1, Some(1_000)), (6, Some(2_000))]);
        let running =
            read("jobset.x-k8s.io/v1alpha2", "JobSet", &json!({"replicatedJobs": [leader]}), &json!({}));
        assert_eq!((running.suspended(), shapes(&running)), (false, vec![(1, None)]));
        let in_order = json!({"suspend": true, "replicatedJobs": [leader, workers],
            "startupPolicy": {"startupPolicyOrder": "InOrder"}});
        let detail = read("jobset.x-k8s.io/v1alpha2", "JobSet", &in_order, &json!({}));
        assert_eq!(shapes(&detail), [(1, Some(1_000))], "the others come once the first ones are ready");
        let mut dependent = workers.clone();
        dependent["dependsOn"] = json!([{"name": "j", "status": "Ready"}]);
        let detail = read(
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            &json!({"replicatedJobs": [leader, dependent]}),
            &json!({}),
        );
        assert_eq!(shapes(&detail), [(1, None)]);
        let status = json!({"conditions": [{"type": "Failed", "status": "True", "reason": "FailedJobs"}]});
        let failed = read("jobset.x-k8s.io/v1alpha2", "JobSet", &spec, &status);
        assert_eq!(failed.ended(), Some(Err(&"FailedJobs".into())));
        assert_eq!(shapes(&failed)[0].1, None);
    }

    #[test]
    fn an_mpi_job_has_a_launcher_unless_that_waits_for_the_workers() {
        let replicas = json!({"Launcher": {"replicas": 1, "template": template("1")},
            "Worker": {"replicas": 8, "template": template("4")}});
        let spec = json!({"runPolicy": {"suspend": true}, "mpiReplicaSpecs": replicas});
        let detail = read("kubeflow.org/v2beta1", "MPIJob", &spec, &json!({}));
        assert_eq!(shapes(&detail), [(1, Some(1_000)), (8, Some(4_000))]);
        let spec = json!({"launcherCreationPolicy": "WaitForWorkersReady", "mpiReplicaSpecs": replicas});
        assert_eq!(shapes(&read("kubeflow.org/v2beta1", "MPIJob", &spec, &json!({}))), [(8, None)]);
        let done = json!({"conditions": [{"type": "Succeeded", "status": "True"}]});
        assert_eq!(read("kubeflow.org/v2beta1", "MPIJob", &spec, &done).ended(), Some(Ok(())));
    }

    #[test]
    fn ray_has_a_head_and_groups_of_workers() {
        let cluster = json!({"headGroupSpec": {"template": template("1")},
            "workerGroupSpecs": [{"replicas": 2, "numOfHosts": 3, "template": template("2")}]});
        let spec = json!({"suspend": true, "rayClusterSpec": cluster});
        assert_eq!(
            shapes(&read("ray.io/v1", "RayJob", &spec, &json!({}))),
            [(1, Some(1_000)), (6, Some(2_000))]
        );
        assert_eq!(shapes(&read("ray.io/v1", "RayCluster", &cluster, &json!({}))), [(1, None), (6, None)]);
        for status in RAY_FAILED {
            let failed = json!({"jobDeploymentStatus": status, "reason": "AppFailed"});
            assert_eq!(read("ray.io/v1", "RayJob", &spec, &failed).ended(), Some(Err(&"AppFailed".into())));
        }
        let group = |limits: Value| {
            let mut group = json!({"numOfHosts": 2, "template": template("2")});
            group.as_object_mut().unwrap().extend(limits.as_object().unwrap().clone());
            let cluster = json!({"headGroupSpec": {"template": template("1")}, "workerGroupSpecs": [group]});
            shapes(&read("ray.io/v1", "RayCluster", &cluster, &json!({})))[1].0
        };
        for (limits, workers) in [
            (json!({"replicas": 0, "minReplicas": 3, "maxReplicas": 9}), 6),
            (json!({"replicas": 5, "minReplicas": 1, "maxReplicas": 4}), 8),
            (json!({"replicas": 5, "minReplicas": 4, "maxReplicas": 2}), 4),
            (json!({"replicas": 5, "suspend": true}), 0),
            (json!({"replicas": 5, "suspend": false}), 10),
        ] {
            assert_eq!(group(limits.clone()), workers, "{limits}");
        }
    }

    #[test]
    fn a_job_set_with_exclusive_placement_has_the_first_pod_of_each_job_at_first() {
        let exclusive = json!({"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"});
        let by_selector = json!({"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack",
            "alpha.jobset.sigs.k8s.io/node-selector": "true"});
        for (of_set, of_job, count) in [
            (json!({}), json!({}), 12),
            (exclusive.clone(), json!({}), 3),
            (json!({}), exclusive, 3),
            (by_selector, json!({}), 12),
        ] {
            let pods = json!({"parallelism": 4, "template": template("1")});
            let job = json!({"replicas": 3, "template": {"metadata": {"annotations": of_job}, "spec": pods}});
            let object = json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
                "metadata": {"name": "x", "namespace": "a", "uid": "u", "annotations": of_set},
                "spec": {"suspend": true, "replicatedJobs": [job]}});
            let object: DynamicObject = serde_json::from_value(object).unwrap();
            let kind = of("jobset.x-k8s.io/v1alpha2", "JobSet").unwrap();
            assert_eq!(shapes(&translate(kind, &object).unwrap().detail), [(count, Some(1_000))]);
        }
    }

    #[test]
    fn a_train_job_has_the_pods_of_its_job_set() {
        let read = |status: &Value| {
            read("trainer.kubeflow.org/v1alpha1", "TrainJob", &json!({"suspend": true}), status)
        };
        let detail = read(&json!({}));
        assert!(matches!(detail, OwnerDetail::Delegating { .. }) && detail.suspended());
        let done = json!({"conditions": [{"type": "Complete", "status": "True"}]});
        assert_eq!(read(&done).ended(), Some(Ok(())));
        let failed = json!({"conditions": [{"type": "Failed", "status": "True", "reason": "FailedJobs"}]});
        assert_eq!(read(&failed).ended(), Some(Err(&"FailedJobs".into())));
    }

    #[test]
    fn what_is_not_as_expected_is_another_owner() {
        for kind in &KINDS {
            for spec in [
                json!(null),
                json!([]),
                json!({"replicatedJobs": 7, "mpiReplicaSpecs": "x", "suspend": "yes"}),
            ] {
                let detail = read(kind.api_version, kind.kind, &spec, &json!({"conditions": {}}));
                let nothing = OwnerDetail::Delegating { suspended: false, complete: false, failed: None };
                let expected = if kind.sets.is_empty() { nothing } else { OwnerDetail::Other };
                assert_eq!(detail, expected, "{} {spec}", kind.kind);
            }
        }
        let huge = json!({"replicas": i64::MAX, "template": {"spec": {"parallelism": i64::MAX}}});
        let negative = json!({"replicas": -3});
        let detail = read(
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            &json!({"replicatedJobs": [huge, negative]}),
            &json!({}),
        );
        assert_eq!(shapes(&detail), [(i64::MAX, None), (0, None)]);
        let many = json!({"replicatedJobs": vec![json!({}); 1_000]});
        assert_eq!(read("jobset.x-k8s.io/v1alpha2", "JobSet", &many, &json!({})), OwnerDetail::Other);
    }
}
