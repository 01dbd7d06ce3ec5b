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
    let all = cluster.store().iter().filter_map(|object| match &*object {
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
            let record =
                AllocationRecord { job: "job.j".into(), start: now, planned_end: None, size: 1, pin: None };
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
    let Some(Object::Job(ended)) = cluster.store().get(&uid).map(Cow::into_owned) else {
        panic!("still there")
    };
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
    let kept: Vec<Object> = cluster.store().iter().map(Cow::into_owned).collect();

    let mut again = Cluster::new(vec!["fluxion".into()], 600);
    for object in kept {
        again.restore(object);
    }
    again.restored();
    again.settle(NOW + 500);
    let ended = again.store().iter().find_map(|object| match &*object {
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
    let record =
        AllocationRecord { job: "pod.p".into(), start: NOW, planned_end: Some(NOW + 10), size: 1, pin: None };
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

#[test]
fn much_happens_bit_by_bit_and_in_the_end_all_of_it() {
    let mut cluster = cluster();
    let wide = u32::try_from(CHANGES_MAX).unwrap() * 2 + 100;
    let uid = cluster.create(job("j", "30s", wide, wide), NOW).unwrap();
    let mut rounds = 0;
    let mut settle = |cluster: &mut Cluster, now: i64, given: usize| {
        let mut told = BTreeSet::new();
        loop {
            let changes = cluster.settle(now);
            rounds += 1;
            assert!(changes.len() <= given.max(2 * CHANGES_MAX), "{} at once", changes.len());
            told.extend(changes.into_iter().filter_map(|change| match change {
                Change::Set(uid) => Some(uid),
                Change::Gone(_) => None,
            }));
            if !cluster.unfinished(now) {
                return told;
            }
        }
    };
    assert_eq!(settle(&mut cluster, NOW, 0).len(), wide as usize + 1);
    assert_eq!(cluster.store().pods_of(&uid).count(), wide as usize);
    bind_all(&mut cluster, NOW);
    // All of them start, and end, in the same second.
    assert_eq!(settle(&mut cluster, NOW, wide as usize).len(), wide as usize + 1);
    assert!(phases(&cluster).iter().all(|phase| phase == "Running"));
    settle(&mut cluster, NOW + 30, 0);
    let Some(Object::Job(ended)) = cluster.store().get(&uid).map(Cow::into_owned) else {
        panic!("still there")
    };
    assert_eq!(ended.status.and_then(|status| status.succeeded), i32::try_from(wide).ok());
    assert!(rounds >= 9, "in {rounds} rounds");
}

#[test]
fn a_run_time_is_the_templates_or_that_of_whoever_made_the_pod() {
    let template = |own: Option<&str>| {
        let labels = json!({"app": "x"});
        json!({"metadata": {"labels": labels, "annotations": own.map(|own| json!({kubelet::RUN_TIME: own}))},
            "spec": {"containers": [{"name": "c"}]}})
    };
    let owner = |kind: &str, owners: Option<&str>, own: Option<&str>| {
        let selector = (kind != "Job").then(|| json!({"matchLabels": {"app": "x"}}));
        let api_version = if kind == "Job" { "batch/v1" } else { "apps/v1" };
        let annotations = owners.map(|time| json!({kubelet::RUN_TIME: time}));
        let value = json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": "x", "annotations": annotations},
            "spec": {"selector": selector, "template": template(own)}});
        Object::from_value(value).unwrap()
    };
    for kind in ["Job", "Deployment", "ReplicaSet", "StatefulSet"] {
        for (owners, own, wanted) in
            [(Some("30s"), None, 30), (None, Some("40s"), 40), (Some("30s"), Some("40s"), 40)]
        {
            let mut cluster = cluster();
            cluster.create(owner(kind, owners, own), NOW).unwrap();
            cluster.settle(NOW);
            bind_all(&mut cluster, NOW);
            cluster.settle(NOW);
            assert_eq!(cluster.next_due(), Some(NOW + wanted), "{kind}, {owners:?}, {own:?}");
        }
    }
}
