use serde_json::json;

use super::*;

const NOW: i64 = 1_700_000_000;

fn cluster() -> Cluster {
    Cluster::new(vec!["fluxion".into()], 60)
}

fn job(name: &str, run_time: &str, parallelism: u32, completions: u32) -> Object {
    Object::from_value(json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "annotations": {kubelet::RUN_TIME: run_time}},
        "spec": {"parallelism": parallelism, "completions": completions,
            "template": {"spec": {"containers": [{"name": "c"}]}}}}))
    .unwrap()
}

fn pods(cluster: &Cluster) -> Vec<(Uid, String)> {
    let all = cluster.store().iter().filter_map(|object| match object {
        Object::Pod(pod) => Some((Uid::from(object.uid()), kubelet::phase(pod).to_owned())),
        _ => None,
    });
    all.collect()
}

fn reference(cluster: &Cluster, uid: &str) -> ObjectRef {
    let object = cluster.store().get(uid).unwrap();
    ObjectRef {
        namespace: object.namespace().into(),
        kind: object.kind().into(),
        api_version: object.api_version().into(),
        name: object.name().into(),
        uid: uid.into(),
    }
}

fn bind_all(cluster: &mut Cluster, now: i64) {
    for (uid, phase) in pods(cluster) {
        if phase == "Pending" {
            let record = AllocationRecord { job: "job.j".into(), start: now, planned_end: None, size: 1 };
            let pod = reference(cluster, &uid);
            assert_eq!(cluster.bind(&pod, "n1", &record, now), BindOutcome::Done);
        }
    }
}

fn phases(cluster: &Cluster) -> Vec<String> {
    let mut phases: Vec<String> = pods(cluster).into_iter().map(|(_, phase)| phase).collect();
    phases.sort();
    phases
}

#[test]
fn a_job_lives_and_goes() {
    let mut cluster = cluster();
    let uid = cluster.create(job("j", "30s", 2, 3), NOW).unwrap();
    assert_eq!(cluster.settle(NOW).len(), 3, "the Job and two Pods");
    assert_eq!(phases(&cluster), ["Pending", "Pending"]);
    bind_all(&mut cluster, NOW + 5);
    cluster.settle(NOW + 5);
    assert_eq!(phases(&cluster), ["Running", "Running"]);
    assert_eq!(cluster.next_due(), Some(NOW + 35));
    assert!(cluster.settle(NOW + 34).is_empty());
    cluster.settle(NOW + 35);
    assert_eq!(phases(&cluster), ["Pending", "Succeeded", "Succeeded"]);
    bind_all(&mut cluster, NOW + 36);
    cluster.settle(NOW + 36);
    cluster.settle(NOW + 66);
    let Some(Object::Job(ended)) = cluster.store().get(&uid) else { panic!("still there") };
    assert_eq!(ended.status.as_ref().unwrap().succeeded, Some(3));
    assert_eq!(cluster.next_due(), Some(NOW + 126));
    let gone = cluster.settle(NOW + 126);
    assert_eq!(gone.len(), 4, "the Job and its Pods: {gone:?}");
    assert_eq!(cluster.store().iter().count(), 0);
}

#[test]
fn what_happened_while_nobody_looked_happened_at_its_time() {
    let mut cluster = cluster();
    cluster.create(job("j", "30s", 1, 1), NOW).unwrap();
    cluster.settle(NOW);
    bind_all(&mut cluster, NOW);
    cluster.settle(NOW);
    let kept: Vec<Object> = cluster.store().iter().cloned().collect();

    let mut again = Cluster::new(vec!["fluxion".into()], 600);
    again.restore(kept);
    again.settle(NOW + 500);
    let ended = again.store().iter().find_map(|object| match object {
        Object::Job(job) => job.status.as_ref().and_then(job::ended_since),
        _ => None,
    });
    assert_eq!(ended, Some(NOW + 30));
}

#[test]
fn cancelled_pods_stop_and_stay_away() {
    let mut cluster = cluster();
    let uid = cluster.create(job("j", "30s", 2, 2), NOW).unwrap();
    cluster.settle(NOW);
    bind_all(&mut cluster, NOW);
    cluster.settle(NOW);
    cluster.delete(&uid, NOW + 3);
    cluster.settle(NOW + 3);
    assert!(cluster.store().get(&uid).unwrap().meta().deletion_timestamp.is_some());
    assert_eq!(phases(&cluster), ["Running", "Running"], "they hold their nodes until they have stopped");
    cluster.settle(NOW + 4);
    assert_eq!(cluster.store().iter().count(), 0);
}

#[test]
fn bindings_are_answered_as_an_api_server_does() {
    let mut cluster = cluster();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}});
    let uid = cluster.create(Object::from_value(pod).unwrap(), NOW).unwrap();
    let pod = reference(&cluster, &uid);
    let record = AllocationRecord { job: "pod.p".into(), start: NOW, planned_end: Some(NOW + 10), size: 1 };
    assert_eq!(cluster.bind(&pod, "n1", &record, NOW), BindOutcome::Done);
    assert_eq!(cluster.bind(&pod, "n1", &record, NOW), BindOutcome::Done);
    assert_eq!(cluster.bind(&pod, "n2", &record, NOW), BindOutcome::Elsewhere("n1".into()));
    cluster.settle(NOW);
    assert_eq!(cluster.next_due(), Some(NOW + 10), "it runs until its planned end");
    cluster.delete(&uid, NOW);
    assert!(matches!(cluster.bind(&pod, "n1", &record, NOW), BindOutcome::Gone(_)));
    cluster.settle(NOW + 1);
    assert!(matches!(cluster.bind(&pod, "n1", &record, NOW), BindOutcome::Gone(_)));
}

#[test]
fn replicas_are_replaced() {
    let mut cluster = cluster();
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}});
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {"replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "web"}}, "template": template}});
    cluster.create(Object::from_value(deployment).unwrap(), NOW).unwrap();
    cluster.create(Object::from_value(set).unwrap(), NOW).unwrap();
    cluster.settle(NOW);
    assert_eq!(pods(&cluster).len(), 3, "two of web, and db-1 waits for db-0");
    bind_all(&mut cluster, NOW);
    cluster.settle(NOW);
    assert_eq!(pods(&cluster).len(), 4);
    let (first, _) = pods(&cluster)[0].clone();
    cluster.delete(&first, NOW);
    cluster.settle(NOW + 1);
    assert_eq!(pods(&cluster).len(), 4);
    assert!(cluster.store().get(&first).is_none());
}

#[test]
fn objects_that_own_each_other_are_deleted_once() {
    let mut cluster = cluster();
    let pod = |name: &str, uid: &str, owner: &str| {
        Object::from_value(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "uid": uid,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": owner, "controller": true}]},
            "spec": {"containers": [{"name": "c"}], "nodeName": "n1"}, "status": {"phase": "Running"}}))
        .unwrap()
    };
    cluster.create(pod("a", "u1", "u2"), NOW).unwrap();
    cluster.create(pod("b", "u2", "u1"), NOW).unwrap();
    cluster.create(pod("c", "u3", "u3"), NOW).unwrap();
    cluster.settle(NOW);
    cluster.delete("u1", NOW);
    cluster.delete("u3", NOW);
    cluster.settle(NOW + 1);
    assert_eq!(cluster.store().iter().count(), 0);
}
