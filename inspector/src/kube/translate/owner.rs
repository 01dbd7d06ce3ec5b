//! Controllers of Pods, and their own controllers.

use std::sync::Arc;

use fluxion_scheduler::model::{OwnerDetail, OwnerSpec, PodSpec, SharedStr};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetCondition, StatefulSet};
use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::{Meta, Unreadable, annotations, failures, labels, seconds, template};

/// Any owner, from its metadata.
pub fn owner(
    meta: &ObjectMeta,
    api_version: &str,
    kind: &str,
    detail: OwnerDetail,
) -> Result<OwnerSpec, Unreadable> {
    let read = Meta::read(meta)?;
    Ok(OwnerSpec {
        uid: read.uid,
        namespace: read.namespace,
        api_version: api_version.into(),
        kind: kind.into(),
        name: read.name,
        created: read.created,
        deleting: read.deleting,
        labels: labels(meta.labels.as_ref()),
        annotations: annotations(meta.annotations.as_ref()),
        controller: read.controller,
        scheduler: None,
        failure: None,
        detail,
    })
}

/// A Job.
pub fn job(job: &Job) -> Result<OwnerSpec, Unreadable> {
    let (spec, status) = (job.spec.as_ref(), job.status.as_ref());
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let holds =
        |kind: &str| conditions.iter().find(|c: &&JobCondition| c.type_ == kind && c.status == "True");
    let policy = spec.and_then(|spec| spec.scheduling.as_ref()?.scheduling_policy.as_ref());
    let detail = OwnerDetail::Job {
        parallelism: spec.and_then(|spec| spec.parallelism).map_or(1, i64::from),
        completions: spec.and_then(|spec| spec.completions).map(i64::from),
        succeeded: status.and_then(|status| status.succeeded).map_or(0, i64::from),
        failed_indexes: indexes(
            status.and_then(|status| status.failed_indexes.as_deref()).unwrap_or_default(),
        ),
        active_deadline: spec.and_then(|spec| spec.active_deadline_seconds),
        start_time: seconds(status.and_then(|status| status.start_time.as_ref())),
        complete: holds("Complete").is_some(),
        failed: holds("Failed").map(|condition| condition.reason.as_deref().unwrap_or_default().into()),
        ended_at: holds("Complete")
            .or_else(|| holds("Failed"))
            .and_then(|condition| seconds(condition.last_transition_time.as_ref())),
        suspended: spec.and_then(|spec| spec.suspend) == Some(true),
        gang: policy.and_then(|policy| policy.gang.as_ref()).map(|gang| gang.min_count.map(i64::from)),
        template: template(job),
    };
    let template = spec.map(|spec| &spec.template);
    Ok(OwnerSpec { scheduler: scheduler(template), ..owner(&job.metadata, "batch/v1", "Job", detail)? })
}

/// The scheduler of the Pods of a template.
pub(super) fn scheduler(template: Option<&PodTemplateSpec>) -> Option<SharedStr> {
    let spec = template?.spec.as_ref();
    Some(spec.and_then(|spec| spec.scheduler_name.as_deref()).unwrap_or("default-scheduler").into())
}

/// The Pods of a suspended Job, without names of their own, at our gate.
fn template(job: &Job) -> Option<Arc<PodSpec>> {
    let spec = job.spec.as_ref().filter(|spec| spec.suspend == Some(true))?;
    let controller = OwnerReference {
        api_version: "batch/v1".to_owned(),
        kind: "Job".to_owned(),
        name: job.metadata.name.clone().unwrap_or_default(),
        uid: job.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    };
    template::of(spec.template.clone(), &job.metadata, controller)
}

/// Number of indexes in a list such as `1,3-5,7`, as in `status.failedIndexes` of a Job; invalid parts count as none.
fn indexes(list: &str) -> i64 {
    let count = |part: &str| -> Option<i64> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (i64, i64) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1).filter(|count| *count > 0)
    };
    list.split(',').filter_map(count).fold(0, i64::saturating_add)
}

/// A StatefulSet.
pub fn stateful_set(set: &StatefulSet) -> Result<OwnerSpec, Unreadable> {
    let detail = OwnerDetail::StatefulSet {
        replicas: set.spec.replicas.map_or(1, i64::from),
        ordered: set.spec.pod_management_policy.as_deref() != Some("Parallel"),
    };
    Ok(OwnerSpec {
        scheduler: scheduler(Some(&set.spec.template)),
        ..owner(&set.metadata, "apps/v1", "StatefulSet", detail)?
    })
}

/// A ReplicaSet.
pub fn replica_set(set: &ReplicaSet) -> Result<OwnerSpec, Unreadable> {
    let replicas = set.spec.replicas.map_or(1, i64::from);
    let conditions = set.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let failing = |one: &&ReplicaSetCondition| {
        one.type_.as_deref() == Some("ReplicaFailure") && one.status.as_deref() == Some("True")
    };
    let failure = conditions.iter().find(failing).filter(|one| one.reason.as_deref() == Some("FailedCreate"));
    Ok(OwnerSpec {
        scheduler: scheduler(set.spec.template.as_ref()),
        failure: failure.and_then(|one| one.message.as_deref()).map(failures::why),
        ..owner(&set.metadata, "apps/v1", "ReplicaSet", OwnerDetail::Replicas { replicas })?
    })
}

/// A Deployment.
pub fn deployment(deployment: &Deployment) -> Result<OwnerSpec, Unreadable> {
    let replicas = deployment.spec.replicas.map_or(1, i64::from);
    Ok(OwnerSpec {
        scheduler: scheduler(Some(&deployment.spec.template)),
        ..owner(&deployment.metadata, "apps/v1", "Deployment", OwnerDetail::Replicas { replicas })?
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_is_read_with_its_gang_and_how_it_ended() {
        let read: Job = serde_json::from_value(json!({
            "metadata": {"name": "j", "namespace": "a", "uid": "u", "annotations": {
                "fluxion.flux-framework.org/gang": "true", "kubectl.kubernetes.io/last-applied-configuration": "…"}},
            "spec": {"parallelism": 3, "completions": 6, "activeDeadlineSeconds": 60, "template": {},
                "scheduling": {"schedulingPolicy": {"gang": {"minCount": 2}}}},
            "status": {"succeeded": 1, "failedIndexes": "0,2-3", "startTime": "2026-01-01T00:00:00Z", "conditions": [
                {"type": "Failed", "status": "True", "reason": "DeadlineExceeded",
                    "lastTransitionTime": "2026-01-01T00:01:00Z"}]}
        }))
        .unwrap();
        let spec = job(&read).unwrap();
        assert_eq!(spec.annotations.len(), 1);
        let want = OwnerDetail::Job {
            parallelism: 3,
            completions: Some(6),
            succeeded: 1,
            failed_indexes: 3,
            active_deadline: Some(60),
            start_time: Some(1_767_225_600),
            complete: false,
            failed: Some("DeadlineExceeded".into()),
            ended_at: Some(1_767_225_660),
            suspended: false,
            gang: Some(Some(2)),
            template: None,
        };
        assert_eq!(spec.detail, want);
    }

    #[test]
    fn a_suspended_job_is_read_with_the_pods_that_it_will_have() {
        let template = json!({"metadata": {"labels": {"app": "x"}, "annotations": {
                "fluxion.flux-framework.org/duration": "5m", "other": "y"}},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}],
                "nodeSelector": {"pool": "a"}}});
        let read = |suspend: bool| {
            let read: Job = serde_json::from_value(json!({
                "metadata": {"name": "j", "namespace": "a", "uid": "u", "labels": {"of": "the job"}},
                "spec": {"suspend": suspend, "template": template}}))
            .unwrap();
            let OwnerDetail::Job { template, .. } = job(&read).unwrap().detail else { unreachable!() };
            template
        };
        assert_eq!(read(false), None);
        let pod = read(true).unwrap();
        assert_eq!((&*pod.uid, &*pod.namespace, pod.gates.len()), ("u", "a", 1));
        assert_eq!((pod.labels.len(), pod.annotations.len()), (1, 1));
        assert_eq!(pod.needs.as_ref().unwrap().get("cpu"), 2000);
        assert_eq!(pod.constraint.selector["pool"], "a".into());
        assert_eq!(&*pod.controller.as_ref().unwrap().uid, "u");
    }

    #[test]
    fn a_stateful_set_is_ordered_unless_it_says_parallel() {
        for (policy, ordered) in
            [(json!(null), true), (json!("OrderedReady"), true), (json!("Parallel"), false)]
        {
            let set: StatefulSet = serde_json::from_value(json!({
                "metadata": {"name": "s", "namespace": "a", "uid": "u"},
                "spec": {"replicas": 2, "podManagementPolicy": policy, "selector": {}, "template": {}}
            }))
            .unwrap();
            let detail = stateful_set(&set).unwrap().detail;
            assert_eq!(detail, OwnerDetail::StatefulSet { replicas: 2, ordered });
        }
    }
}
