//! Owners whose Pods can't come to be are jobs with the cause, and become ordinary ones when it is solved; and nodes that Pods
//! prefer.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use anyhow::ensure;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::stage::{SOON, Stage};
use fluxion_tests::wait;
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

const JOB: &str = "batch.kubernetes.io/job-name";

fn nodes() -> Vec<NodeSpec> {
    (1..=3).map(|index| NodeSpec::new(format!("n{index}")).with("cpu", "4")).collect()
}

fn quota(pods: u32) -> Value {
    json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "few" },
        "spec": { "hard": { "pods": pods.to_string() } } })
}

async fn says(stage: &Stage, job: &str, words: &str) {
    stage
        .job_becomes(job, words, |job| {
            job.status.reason.as_ref().is_some_and(|reason| {
                let all = [&*reason.text, &reason.details.join(" "), &reason.line()].join(" ");
                all.contains(words)
            })
        })
        .await
        .unwrap();
}

#[tokio::test]
async fn what_the_api_server_rejects_is_seen_until_it_is_solved() {
    let stage = Stage::with_nodes(&nodes()).await.unwrap();
    let range = json!({ "apiVersion": "v1", "kind": "LimitRange", "metadata": { "name": "small" },
        "spec": { "limits": [{ "type": "Container", "max": { "cpu": "2" } }] } });
    stage.create([quota(2), range]).await.unwrap();
    wait::until("the quota is in effect", SOON, || async {
        let used =
            stage.cluster.kubectl(&["get", "quota", "few", "-o", "jsonpath={.status.hard.pods}"]).await?;
        ensure!(used == "2", "{used}");
        Ok(())
    })
    .await
    .unwrap();
    let limited = |cpu: &str| PodManifest::new("t").request("cpu", cpu).limit("cpu", cpu);
    let mut own = limited("1").job("own", 1);
    own["spec"]["suspend"] = json!(true);
    stage.create([own, limited("3").gang_job("large", 2)]).await.unwrap();
    stage.job_is("job/own", "Suspended").await.unwrap();
    stage.job_is("job/large", "Gathering").await.unwrap();
    says(&stage, "job/large", "maximum cpu usage per Container is 2").await;
    stage.create([limited("1").gang_job("many", 4)]).await.unwrap();
    stage.gathers("job/many", 2, 4).await.unwrap();
    says(&stage, "job/many", "exceeded quota: few").await;
    let told = stage.plugin().unwrap().ask(&["explain", "job/many"]).await.unwrap();
    assert!(told.contains("exceeded quota: few"), "{told}");
    // A ReplicaSet has a condition.
    let mut template = limited("1").label("app", "web").build();
    let spec = template["spec"].take();
    let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" }, "spec": {
        "replicas": 1, "selector": { "matchLabels": { "app": "web" } },
        "template": { "metadata": { "labels": { "app": "web" } }, "spec": spec } } });
    stage.create([deployment]).await.unwrap();
    stage.job_is("deployment/web", "Gathering").await.unwrap();
    says(&stage, "deployment/web", "exceeded quota: few").await;

    stage.cluster.kubectl(&["delete", "quota", "few"]).await.unwrap();
    wait::until("the gang is whole", SOON * 3, || async {
        let job = stage.job("job/many").await?;
        ensure!(
            job.status.state.as_str() == "Running" && job.status.members.bound == 4,
            "{:?}",
            job.status.state
        );
        ensure!(job.status.reason.is_none(), "{:?}", job.status.reason);
        Ok(())
    })
    .await
    .unwrap();
    wait::until("the Deployment has its Pod, which is a job by itself", SOON * 3, || async {
        let pods = stage.pods("app=web").await?;
        ensure!(pods.len() == 1, "{} Pods", pods.len());
        ensure!(stage.job("deployment/web").await.is_err());
        Ok(())
    })
    .await
    .unwrap();
    let resume = json!({ "spec": { "suspend": false } }).to_string();
    stage.cluster.kubectl(&["patch", "job", "own", "--type=merge", "-p", &resume]).await.unwrap();
    stage.bound(&format!("{JOB}=own"), 1).await.unwrap();
    let findings = stage.audit().await.unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");
}

/// Grants or refuses the inspector to read Events.
async fn events(stage: &Stage, granted: bool) {
    let kind = GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", "ClusterRole");
    let role = stage.applier.get(&kind, "", "fluxion-inspector").await.unwrap().unwrap();
    let mut rules = role.data["rules"].clone();
    let of_events = json!({ "apiGroups": [""], "resources": ["events"], "verbs": ["list", "watch"] });
    let all = rules.as_array_mut().unwrap();
    all.retain(|rule| *rule != of_events);
    if granted {
        all.push(of_events);
    } else {
        assert_eq!(all.len() + 1, role.data["rules"].as_array().unwrap().len());
    }
    stage.applier.patch(&kind, "", "fluxion-inspector", None, &json!({ "rules": rules })).await.unwrap();
}

/// The watch of Events is refused when it is due to be renewed, and meanwhile Pods are rejected.
#[tokio::test]
async fn an_event_that_comes_late_is_a_reason_all_the_same() {
    let mut stage = Stage::with_nodes(&nodes()).await.unwrap();
    events(&stage, false).await;
    wait::until("the watch of Events is refused", SOON * 2, || async {
        ensure!(stage.inspector.log()?.contains("not allowed to watch events"));
        Ok(())
    })
    .await
    .unwrap();
    stage.create([quota(0)]).await.unwrap();
    stage.create([PodManifest::new("t").request("cpu", "1").gang_job("late", 2)]).await.unwrap();
    wait::until("the Pods are rejected", SOON, || async {
        let of_job = "--field-selector=reason=FailedCreate,involvedObject.name=late";
        let told = stage.cluster.kubectl(&["get", "events", of_job, "-o", "name"]).await?;
        ensure!(!told.is_empty());
        Ok(())
    })
    .await
    .unwrap();
    // Nothing else depends on that watch.
    stage
        .create([PodManifest::new("pod").namespace("kube-public").request("cpu", "1").build()])
        .await
        .unwrap();
    let bound =
        ["--namespace=kube-public", "wait", "pod/pod", "--for=condition=PodScheduled", "--timeout=30s"];
    stage.cluster.kubectl(&bound).await.unwrap();
    let (ready, text) = stage.inspector.answers("/readyz").await.unwrap();
    assert!(ready, "{text}");
    let told = stage.plugin().unwrap().ask(&["jobs", "-A", "-o", "json"]).await.unwrap();
    assert!(!told.contains("exceeded quota"), "{told}");

    events(&stage, true).await;
    wait::until("the cause is known", SOON * 3, || async {
        let reason = serde_json::to_string(&stage.job("job/late").await?.status.reason)?;
        ensure!(reason.contains("exceeded quota: few"), "{reason}");
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(stage.job("job/late").await.unwrap().status.state.as_str(), "Gathering");
    stage.inspector.healthy().unwrap();
}

#[tokio::test]
async fn preferred_nodes_are_taken_and_explained() {
    let mut nodes = nodes();
    nodes[1] = NodeSpec::new("n2").with("cpu", "4").label("disk", "ssd");
    let stage = Stage::with_nodes(&nodes).await.unwrap();
    let node = json!({ "preferredDuringSchedulingIgnoredDuringExecution": [
        { "weight": 30, "preference": { "matchExpressions": [{ "key": "disk", "operator": "In", "values": ["ssd"] }] } }] });
    let pods = json!({ "preferredDuringSchedulingIgnoredDuringExecution": [
        { "weight": 10, "podAffinityTerm": { "topologyKey": "kubernetes.io/hostname",
            "labelSelector": { "matchLabels": { "app": "web" } } } }] });
    let fast = PodManifest::new("fast").request("cpu", "1").spec("affinity", json!({ "nodeAffinity": node }));
    stage.create([fast.build()]).await.unwrap();
    assert_eq!(stage.pod_bound("fast").await.unwrap(), "n2");
    let apart = |name: &str| {
        let affinity = json!({ "podAntiAffinity": pods });
        PodManifest::new(name).request("cpu", "1").label("app", "web").spec("affinity", affinity).build()
    };
    for (name, node) in [("w1", "n1"), ("w2", "n2"), ("w3", "n3"), ("w4", "n1")] {
        stage.create([apart(name)]).await.unwrap();
        assert_eq!(stage.pod_bound(name).await.unwrap(), node, "{name}");
    }
    let plugin = stage.plugin().unwrap();
    let told = plugin.ask(&["explain", "pod/fast"]).await.unwrap();
    assert!(told.contains("node affinity to disk=ssd: met  weight 30"), "{told}");
    let told = plugin.ask(&["explain", "pod/w4"]).await.unwrap();
    assert!(
        told.contains("pod anti-affinity to app=web by kubernetes.io/hostname: not met  weight 10"),
        "{told}"
    );
}
