use fluxion_scheduler::constraint::{HostPort, Operator, Protocol};
use serde_json::{Value, json};

use super::*;

fn pod(spec: Value, status: Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "web-0", "namespace": "a", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": spec, "status": status
    }))
    .unwrap()
}

fn container(requests: Value) -> Value {
    json!([{"name": "c", "resources": {"requests": requests}}])
}

#[test]
fn a_pod_that_says_little_is_a_pending_one_of_the_default_scheduler() {
    let spec = translate(&pod(json!({"containers": []}), json!({}))).unwrap();
    assert_eq!(
        (spec.scheduler_name.as_ref(), spec.phase, spec.created),
        ("default-scheduler", Phase::Pending, 1_767_225_600)
    );
    assert_eq!(spec.needs.unwrap().to_string(), "pods 1");
    assert!(spec.unsupported.is_empty() && spec.node.is_none());
}

#[test]
fn limits_stand_in_for_requests_and_bad_quantities_are_named() {
    let containers = json!([{"name": "c", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}}]);
    let spec = translate(&pod(json!({"containers": containers}), json!({}))).unwrap();
    assert_eq!(spec.needs.unwrap().to_string(), "cpu 1, memory 1073741824, pods 1");
    let bad = translate(&pod(json!({"containers": container(json!({"cpu": "a lot"}))}), json!({}))).unwrap();
    assert_eq!(bad.needs.unwrap_err().to_string(), "cpu of container c is not a valid quantity");
}

#[test]
fn a_resize_in_progress_holds_the_larger_size() {
    let status = json!({"containerStatuses": [{"name": "c", "image": "", "imageID": "", "ready": true, "restartCount": 0,
        "allocatedResources": {"cpu": "4"}, "resources": {"requests": {"cpu": "4"}}}]});
    let spec =
        translate(&pod(json!({"containers": container(json!({"cpu": "1"}))}), status.clone())).unwrap();
    assert_eq!(spec.needs.unwrap().to_string(), "cpu 4, pods 1");
    let mut infeasible = status;
    infeasible["conditions"] =
        json!([{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]);
    let spec = translate(&pod(json!({"containers": container(json!({"cpu": "40"}))}), infeasible)).unwrap();
    assert_eq!(spec.needs.unwrap().to_string(), "cpu 4, pods 1");
}

#[test]
fn the_record_comes_back_and_a_spoilt_one_is_none() {
    let mut bound = pod(
        json!({"containers": [], "nodeName": "n1"}),
        json!({"phase": "Running", "conditions": [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:01:00Z"}]}),
    );
    let record =
        AllocationRecord { job: "job.lammps".into(), start: 5, planned_end: None, size: 3, pin: None };
    let annotation = |text: String| Some([(ALLOCATION.to_owned(), text)].into());
    bound.metadata.annotations = annotation(serde_json::to_string(&record).unwrap());
    let spec = translate(&bound).unwrap();
    assert_eq!(
        (spec.record, spec.scheduled_at, spec.annotations.len()),
        (Some(record), Some(1_767_225_660), 0)
    );
    bound.metadata.annotations = annotation("{".to_owned());
    let spoilt = translate(&bound).unwrap();
    assert_eq!(spoilt.record, None);
    assert!(spoilt.problems[0].contains(ALLOCATION), "{:?}", spoilt.problems);
}

#[test]
fn what_we_cannot_honour_is_named() {
    let term = json!([{"topologyKey": "zone"}]);
    let spec = json!({"containers": [],
        "resourceClaims": [{"name": "gpu"}],
        "affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term},
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]});
    let want = vec![
        Unsupported::ResourceClaim("gpu".into()),
        Unsupported::PodAffinity,
        Unsupported::PodAntiAffinity,
        Unsupported::HardSpread,
    ];
    assert_eq!(translate(&pod(spec, json!({}))).unwrap().unsupported, want);
    let wishes = json!({"containers": [],
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}]}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]});
    assert!(translate(&pod(wishes, json!({}))).unwrap().unsupported.is_empty());
}

#[test]
fn claims_are_named_ephemeral_ones_too() {
    let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, {"name": "e", "emptyDir": {}}]);
    let names = claims(&pod(json!({"containers": [], "volumes": volumes}), json!({})));
    assert_eq!(names, ["data".into(), SharedStr::from("web-0-scratch")]);
}

#[test]
fn constraints_are_read_and_unknown_operators_match_nothing() {
    let spec = json!({"containers": [], "nodeSelector": {"disk": "ssd"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["b"]}],
             "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
            {"matchExpressions": [{"key": "zone", "operator": "Almost", "values": ["b"]}]}]}}},
        "tolerations": [{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoSchedule"},
            {"key": "n", "operator": "Gt", "value": "5"}]});
    let spec = translate(&pod(spec, json!({}))).unwrap();
    let read = &spec.constraint;
    let terms = read.affinity.as_ref().unwrap();
    assert_eq!((terms[0].labels[0].operator, terms[0].fields.len()), (Operator::NotIn, 1));
    assert_eq!((terms[1].labels[0].operator, terms[1].labels[0].values.len()), (Operator::In, 0));
    assert_eq!((read.tolerations.len(), read.selector.len()), (2, 1));
    let said = [("node affinity on zone", "'Almost'"), ("toleration of n", "'Gt'")];
    assert_eq!(spec.problems.len(), said.len(), "{:?}", spec.problems);
    for ((what, value), problem) in said.iter().zip(&spec.problems) {
        assert!(problem.contains(what) && problem.contains(value), "{problem}");
    }
}

#[test]
fn host_ports_are_those_on_the_node() {
    let ports = |extra: Value| {
        let mut spec = json!({"containers": [{"name": "c", "ports": [
            {"containerPort": 80}, {"containerPort": 81, "hostPort": 8081, "protocol": "UDP", "hostIP": "10.0.0.1"}]}]});
        spec.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        translate(&pod(spec, json!({}))).unwrap().ports
    };
    let udp = HostPort { protocol: Protocol::Udp, ip: "10.0.0.1".into(), port: 8081 };
    assert_eq!(ports(json!({})).as_ref(), std::slice::from_ref(&udp));
    let tcp = HostPort { protocol: Protocol::Tcp, ip: "".into(), port: 80 };
    assert_eq!(ports(json!({"hostNetwork": true})).as_ref(), [tcp, udp]);
}
