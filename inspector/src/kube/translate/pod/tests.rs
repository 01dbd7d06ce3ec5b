use fluxion_scheduler::constraint::{HostPort, Operator, Protocol};
use fluxion_scheduler::model::ReservationRecord;
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
fn a_stored_reservation_comes_back_and_a_spoilt_one_is_none() {
    let record = ReservationRecord {
        at: 5,
        start: 60,
        assumed: true,
        domain: Some("r1".into()),
        slots: vec![(0, "n1".into(), 2), (1, "n1".into(), 1)],
    };
    let with = |status: &str, message: String| {
        let condition = json!({"type": reservation::RESERVED, "status": status, "message": message});
        translate(&pod(json!({"containers": []}), json!({"conditions": [condition]}))).unwrap()
    };
    let message = reservation::message(&record).unwrap();
    assert_eq!(with("True", message.clone()).reserved.as_deref(), Some(&record));
    let off = with("False", message.clone());
    assert!(off.reserved.is_none() && off.problems.is_empty());
    let too_long = ReservationRecord { slots: vec![(0, "node".into(), 1); 30_000], ..record };
    assert!(reservation::message(&too_long).is_none());
    let too_long = serde_json::to_string(&too_long).unwrap();
    for spoilt in [String::new(), message.replace("60", "'soon'"), message.replace("60", "1e99"), too_long] {
        let spec = with("True", spoilt);
        assert!(
            spec.reserved.is_none() && spec.problems[0].contains(reservation::RESERVED),
            "{:?}",
            spec.problems
        );
    }
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
    let read = translate(&pod(spec, json!({}))).unwrap();
    assert_eq!(read.unsupported, [Unsupported::ResourceClaim("gpu".into())]);
    let terms = read.terms.unwrap();
    assert_eq!((terms.affinity.len(), terms.anti_affinity.len(), terms.spread.len()), (1, 1, 1));
    let wishes = json!({"containers": [],
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}]}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]});
    let read = translate(&pod(wishes, json!({}))).unwrap();
    assert!(read.unsupported.is_empty() && read.terms.is_none());
    let preferences = read.preferences.unwrap();
    assert_eq!((preferences.nodes.len(), preferences.pods.len(), preferences.spread.len()), (0, 1, 1));
    assert!(preferences.pods[0].apart && preferences.pods[0].term.selector.namespaces.len() == 1);
}

#[test]
fn preferences_are_read_and_too_many_are_ignored() {
    let node = |weight: i32, operator: &str| {
        json!({"weight": weight, "preference": {"matchExpressions": [
            {"key": "disk", "operator": operator, "values": ["ssd"]}]}})
    };
    let read = |terms: Vec<Value>| {
        let affinity = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}});
        translate(&pod(json!({"containers": [], "affinity": affinity}), json!({}))).unwrap()
    };
    let few = read(vec![node(30, "In"), node(1_000, "Almost")]);
    let preferences = few.preferences.unwrap();
    let weights: Vec<u32> = preferences.nodes.iter().map(|preferred| preferred.weight).collect();
    assert_eq!(weights, [30, 100]);
    assert!(few.problems[0].contains("'Almost'"), "{:?}", few.problems);
    let many = read(vec![node(1, "In"); 65]);
    assert!(many.preferences.is_none() && many.problems[0].contains("more than 64"), "{:?}", many.problems);
    assert!(read(Vec::new()).preferences.is_none());
}

#[test]
fn constraints_between_pods_are_read_with_their_namespaces() {
    let term = |extra: Value| {
        let mut term = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"},
            "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}]}});
        term.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        term
    };
    let spread = json!({"maxSkew": 2, "minDomains": 3, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["rev", "none"],
        "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"});
    let terms = [
        json!({}),
        json!({"namespaces": ["b"]}),
        json!({"namespaceSelector": {}}),
        json!({"namespaceSelector": {"matchLabels": {"team": "red"}}, "labelSelector": null}),
    ];
    let spec = json!({"containers": [], "topologySpreadConstraints": [spread],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms.map(term)}}});
    let mut object = pod(spec, json!({}));
    object.metadata.labels = Some([("rev".to_owned(), "7".to_owned())].into());
    let own = SharedStr::from(object.metadata.namespace.as_deref().unwrap());
    let read = translate(&object).unwrap().terms.unwrap();
    let selectors: Vec<_> = read.anti_affinity.iter().map(|term| &term.selector).collect();
    let names: Vec<Vec<&str>> =
        selectors.iter().map(|selector| selector.namespaces.iter().map(AsRef::as_ref).collect()).collect();
    assert_eq!(names, [vec![&*own], vec!["b"], vec![], vec![]]);
    let by_labels: Vec<_> =
        selectors.iter().map(|selector| selector.namespace_selector.as_ref().map(Vec::len)).collect();
    assert_eq!(by_labels, [None, None, Some(0), Some(1)]);
    assert_eq!((selectors[0].labels.as_ref().unwrap().len(), &selectors[3].labels), (2, &None));
    let spread = &read.spread[0];
    assert_eq!((spread.max_skew, spread.min_domains, &*spread.topology), (2, 3, "rack"));
    assert_eq!((spread.honor_affinity, spread.honor_taints), (false, true));
    let labels: Vec<String> = spread.selector.labels.iter().flatten().map(ToString::to_string).collect();
    assert_eq!(labels, ["app=web", "rev=7"]);
}

#[test]
fn odd_constraints_between_pods_are_not_bound() {
    let bad = json!([{"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}}]);
    let many = vec![json!({"topologyKey": "zone"}); 65];
    for (terms, says) in [(bad, "unknown operator 'Gt'"), (Value::from(many), "more than 64")] {
        let spec = json!({"containers": [],
            "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}});
        let read = translate(&pod(spec, json!({}))).unwrap();
        let [Unsupported::PodTerms(why)] = read.unsupported.as_slice() else {
            panic!("{:?}", read.unsupported)
        };
        assert!(why.contains(says), "{why}");
    }
}

#[test]
fn claims_are_named_ephemeral_ones_too() {
    let volumes = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, {"name": "e", "emptyDir": {}},
        {"name": "w", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "r", "rbd": {"monitors": ["a", "b"], "image": "i", "readOnly": true}}]);
    let read = in_cluster(&pod(json!({"containers": [], "volumes": volumes}), json!({}))).unwrap();
    let volumes = read.volumes.unwrap();
    let names: Vec<_> = volumes.claims.iter().map(|claim| (&*claim.name, claim.ephemeral)).collect();
    assert_eq!(names, [("data", false), ("web-0-scratch", true)]);
    let disks: Vec<_> = volumes.disks.iter().map(|disk| (&*disk.id, disk.read_only)).collect();
    assert_eq!(disks, [("rbd a rbd i", true), ("rbd b rbd i", true)]);
    let none =
        in_cluster(&pod(json!({"containers": [], "volumes": [{"name": "e", "emptyDir": {}}]}), json!({})));
    assert_eq!(none.unwrap().volumes, None);
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
