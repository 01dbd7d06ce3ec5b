//! Kinds that make several sets of Pods, read by the table of [`crate::kube::suspendable`].

use std::sync::Arc;

use fluxion_scheduler::model::{OwnerDetail, OwnerSpec, PodSet, PodSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::DynamicObject;
use serde_json::Value;

use super::{Unreadable, owner, template};
use crate::kube::suspendable::{Later, SetForm, Sets, Suspendable};

/// Maximum number of sets of one object; if there are more, their Pods are not known.
const SETS_MAX: usize = 256;
const DONE: [&str; 3] = ["Completed", "Complete", "Succeeded"];

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
    let failed =
        condition(&["Failed"]).map(|condition| condition["reason"].as_str().unwrap_or_default()).or_else(
            || (deployment == Some("Failed")).then(|| data.pointer("/status/reason")?.as_str()).flatten(),
        );
    let sets = sets(kind, object, suspended && !complete && failed.is_none());
    let template = kind.sets.iter().find_map(|sets| {
        let described = descriptions(sets, data).into_iter().next()?;
        serde_json::from_value(described.pointer(sets.template)?.clone()).ok()
    });
    let scheduler = owner::scheduler(template.as_ref());
    let detail = if sets.is_empty() || sets.len() > SETS_MAX {
        OwnerDetail::Other
    } else {
        OwnerDetail::Sets { sets: sets.into(), suspended, complete, failed: failed.map(Into::into) }
    };
    Ok(OwnerSpec { scheduler, ..owner::owner(&object.metadata, kind.api_version, kind.kind, detail)? })
}

fn sets(kind: &Suspendable, object: &DynamicObject, with_templates: bool) -> Vec<PodSet> {
    let mut found = Vec::new();
    for sets in kind.sets {
        for described in descriptions(sets, &object.data).into_iter().take(SETS_MAX + 1) {
            let template =
                with_templates.then(|| template(kind, object, described.pointer(sets.template)?)).flatten();
            found.push(PodSet { count: count(sets, described), template });
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

/// Number of Pods of a description that run at once.
fn count(sets: &Sets, described: &Value) -> i64 {
    let number = |path: &str| described.pointer(path).and_then(Value::as_i64);
    let counts = sets.counts.iter().enumerate().map(|(at, path)| {
        let count = number(path).unwrap_or(1).max(0);
        let limit = sets.at_most.filter(|_| at + 1 == sets.counts.len()).and_then(number);
        limit.map_or(count, |limit| count.min(limit.max(0)))
    });
    counts.fold(1, i64::saturating_mul)
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
        let failed = json!({"jobDeploymentStatus": "Failed", "reason": "AppFailed"});
        assert_eq!(read("ray.io/v1", "RayJob", &spec, &failed).ended(), Some(Err(&"AppFailed".into())));
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
                assert_eq!(detail, OwnerDetail::Other, "{} {spec}", kind.kind);
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
