//! PodGroups, of both APIs.

use fluxion_scheduler::model::{GroupApi, GroupSpec};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use kube::core::DynamicObject;
use serde_json::Value;

use super::{Meta, Unreadable, annotations, labels};

/// Condition that kube-scheduler sets once the gang has started, and never removes.
pub const INITIALLY_SCHEDULED: &str = "PodGroupInitiallyScheduled";

/// A PodGroup of scheduling.k8s.io/v1beta1.
pub fn native(group: &PodGroup) -> Result<GroupSpec, Unreadable> {
    let meta = Meta::read(&group.metadata)?;
    let spec = &group.spec;
    let topology = spec.scheduling_constraints.as_ref().and_then(|constraints| constraints.topology.as_ref());
    let conditions = group.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    Ok(GroupSpec {
        api: GroupApi::Native,
        uid: meta.uid,
        namespace: meta.namespace,
        name: meta.name,
        api_version: "scheduling.k8s.io/v1beta1".into(),
        created: meta.created,
        deleting: meta.deleting,
        min_count: spec.scheduling_policy.gang.as_ref().map(|gang| i64::from(gang.min_count)),
        topology: topology.and_then(|list| list.first()).map(|constraint| constraint.key.as_str().into()),
        priority: spec.priority,
        labels: labels(group.metadata.labels.as_ref()),
        annotations: annotations(group.metadata.annotations.as_ref()),
        controller: meta.controller,
        scheduled: conditions.any(|c| c.type_ == INITIALLY_SCHEDULED && c.status == "True"),
        schedule_timeout: None,
    })
}

/// A PodGroup of scheduling.x-k8s.io, whose CRD has several versions: only the fields common to all are read.
pub fn scheduler_plugins(group: &DynamicObject) -> Result<GroupSpec, Unreadable> {
    let meta = Meta::read(&group.metadata)?;
    let at = |path: &str| group.data.pointer(path);
    let started = ["Scheduled", "Running", "Finished", "Failed"];
    let api_version = group.types.as_ref().map_or("scheduling.x-k8s.io/v1alpha1", |types| &types.api_version);
    Ok(GroupSpec {
        api: GroupApi::SchedulerPlugins,
        uid: meta.uid,
        namespace: meta.namespace,
        name: meta.name,
        api_version: api_version.into(),
        created: meta.created,
        deleting: meta.deleting,
        // A missing or invalid size can never be reached: the engine reports it as invalid.
        min_count: Some(at("/spec/minMember").and_then(Value::as_i64).unwrap_or(0)),
        topology: None,
        priority: None,
        labels: labels(group.metadata.labels.as_ref()),
        annotations: annotations(group.metadata.annotations.as_ref()),
        controller: meta.controller,
        scheduled: at("/status/phase").and_then(Value::as_str).is_some_and(|phase| started.contains(&phase)),
        schedule_timeout: at("/spec/scheduleTimeoutSeconds")
            .and_then(Value::as_i64)
            .filter(|seconds| *seconds > 0),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_native_gang_says_its_size_level_and_whether_it_has_started() {
        let group: PodGroup = serde_json::from_value(json!({
            "metadata": {"name": "g", "namespace": "a", "uid": "u", "ownerReferences": [
                {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "name": "w", "uid": "w"},
                {"apiVersion": "batch/v1", "kind": "Job", "name": "lammps", "uid": "j", "controller": true}]},
            "spec": {"schedulingPolicy": {"gang": {"minCount": 4}}, "priority": 7,
                "schedulingConstraints": {"topology": [{"key": "rack"}]}},
            "status": {"conditions": [{"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled",
                "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
        }))
        .unwrap();
        let spec = native(&group).unwrap();
        assert_eq!((spec.min_count, spec.priority, spec.scheduled), (Some(4), Some(7), true));
        assert_eq!(spec.topology.as_deref(), Some("rack"));
        assert_eq!(spec.controller.unwrap().name.as_ref(), "lammps");
    }

    #[test]
    fn a_basic_policy_gives_no_size() {
        let group: PodGroup = serde_json::from_value(json!({
            "metadata": {"name": "g", "namespace": "a", "uid": "u"}, "spec": {"schedulingPolicy": {"basic": {}}}
        }))
        .unwrap();
        assert_eq!(native(&group).unwrap().min_count, None);
    }

    #[test]
    fn a_group_of_the_crd_may_hold_anything() {
        for (data, size, scheduled) in [
            (json!({"spec": {"minMember": 3}, "status": {"phase": "Running"}}), 3, true),
            (json!({"spec": {"minMember": "three"}, "status": {"phase": 5}}), 0, false),
            (json!({}), 0, false),
        ] {
            let mut object = json!({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
                "metadata": {"name": "g", "namespace": "a", "uid": "u"}});
            object.as_object_mut().unwrap().extend(data.as_object().unwrap().clone());
            let spec = scheduler_plugins(&serde_json::from_value(object).unwrap()).unwrap();
            assert_eq!((spec.min_count, spec.scheduled), (Some(size), scheduled));
        }
    }
}
