//! Volumes on a real control plane, with a provisioner that is slow, full or stopped. The verdicts are compared with those
//! of kube-scheduler in `volume_verdicts`.

#![allow(clippy::unwrap_used, reason = "tests panic")]

use std::time::Duration;

use anyhow::{Result, bail};
use fluxion_tests::inspector::Settings;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::provisioner::{Behaviour, Provisioner, ZONE};
use fluxion_tests::stage::{SOON, Stage, node_of};
use fluxion_tests::{Options, wait};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

fn class(name: &str, provisioner: &str) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"})
}

fn claim(name: &str, class: &str, mode: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"storageClassName": class, "accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}})
}

fn mounting(pod: PodManifest, claims: &[&str]) -> PodManifest {
    let volumes: Vec<Value> = claims
        .iter()
        .enumerate()
        .map(|(at, name)| json!({"name": format!("v{at}"), "persistentVolumeClaim": {"claimName": name}}))
        .collect();
    pod.spec("volumes", json!(volumes))
}

/// Two nodes in zone a, and two in zone b.
fn nodes() -> Vec<NodeSpec> {
    let zones = [("n1", "a"), ("n2", "a"), ("n3", "b"), ("n4", "b")];
    zones.map(|(name, zone)| NodeSpec::new(name).label(ZONE, zone)).into()
}

/// What a CSI driver says about a node.
fn csi_node(name: &str, uid: &str, count: Option<u32>) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
        "metadata": {"name": name, "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}]},
        "spec": {"drivers": [{"name": "csi.test", "nodeID": name, "topologyKeys": [ZONE],
            "allocatable": count.map(|count| json!({"count": count}))}]}})
}

async fn stage(settings: &Settings, behaviour: Behaviour) -> Result<(Stage, Provisioner)> {
    let stage = Stage::start(Options::default(), settings, &nodes()).await?;
    let driver = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "csi.test"},
        "spec": {"attachRequired": false}});
    stage.create([class("slow", "csi.test"), driver]).await?;
    let all: Api<k8s_openapi::api::core::v1::Node> = Api::all(stage.client.clone());
    for (name, count) in [("n1", Some(2)), ("n2", None), ("n3", None), ("n4", None)] {
        let uid = all.get(name).await?.uid().unwrap_or_default();
        stage.create([csi_node(name, &uid, count)]).await?;
    }
    let provisioner = Provisioner::start(stage.client.clone(), behaviour);
    Ok((stage, provisioner))
}

async fn get_claim(stage: &Stage, name: &str) -> Result<PersistentVolumeClaim> {
    Ok(Api::<PersistentVolumeClaim>::default_namespaced(stage.client.clone()).get(name).await?)
}

/// Waits until the claim's volume is asked for on a node that `right` likes.
async fn selected(stage: &Stage, name: &str, right: impl Fn(&str) -> bool) -> String {
    wait::until(&format!("a node is selected for claim {name}"), SOON, || async {
        let claim = get_claim(stage, name).await?;
        match claim.annotations().get(SELECTED_NODE) {
            Some(node) if right(node) => Ok(node.clone()),
            other => bail!("{other:?}"),
        }
    })
    .await
    .unwrap()
}

/// A gang of these Pods, `g-0` and so on, with a claim each.
async fn gang(stage: &Stage, size: usize) {
    for index in 0..size {
        let name = format!("data-{index}");
        stage.create([claim(&name, "slow", "ReadWriteOnce")]).await.unwrap();
        let pod =
            PodManifest::new(&format!("g-{index}")).request("cpu", "3").group("g", size).label("app", "g");
        stage.create([mounting(pod, &[&name]).build()]).await.unwrap();
    }
}

#[tokio::test]
async fn a_gang_waits_for_a_slow_provisioner_also_if_the_inspector_is_killed() {
    let behaviour = Behaviour { delay: Duration::from_secs(4), ..Behaviour::default() };
    let (mut stage, provisioner) = stage(&Settings::default(), behaviour).await.unwrap();
    gang(&stage, 4).await;
    let mut places = Vec::new();
    for index in 0..4 {
        places.push(selected(&stage, &format!("data-{index}"), |_| true).await);
    }
    let job = stage.job_is("group/g", "Binding").await.unwrap();
    let text = job.status.reason.as_ref().map(|reason| reason.text.clone()).unwrap_or_default();
    assert!(text.contains("waiting for volumes: 0 of 4"), "{text}");
    let bound = stage.bound("app=g", 4).await.unwrap();
    for pod in &bound {
        let index: usize = pod.name_any()[2..].parse().unwrap();
        assert_eq!(node_of(pod), Some(places[index].as_str()), "{}", pod.name_any());
    }
    for pod in bound {
        stage.delete_pod(&pod.name_any()).await.unwrap();
    }

    // The next one is interrupted: the claims tell the new inspector where to go on.
    provisioner.set(|behaviour| behaviour.stopped = true);
    for name in ["late-0", "late-1"] {
        stage.create([claim(name, "slow", "ReadWriteOnce")]).await.unwrap();
        let pod = PodManifest::new(name).request("cpu", "3").group("late", 2).label("app", "late");
        stage.create([mounting(pod, &[name]).build()]).await.unwrap();
    }
    let first = selected(&stage, "late-0", |_| true).await;
    let second = selected(&stage, "late-1", |_| true).await;
    stage.inspector.kill();
    stage.inspector.restart(&stage.cluster).await.unwrap();
    stage.job_is("group/late", "Binding").await.unwrap();
    stage.stay_unbound("app=late").await.unwrap();
    provisioner.set(|behaviour| (behaviour.stopped, behaviour.delay) = (false, Duration::ZERO));
    stage.bound("app=late", 2).await.unwrap();
    assert_eq!(stage.pod_bound("late-0").await.unwrap(), first);
    assert_eq!(stage.pod_bound("late-1").await.unwrap(), second);
}

#[tokio::test]
async fn another_zone_is_tried_when_one_is_full_and_another_node_when_it_takes_too_long() {
    let behaviour = Behaviour { full: ["a".to_owned()].into(), ..Behaviour::default() };
    let settings = Settings { config: Some("bindDeadline: 6s\n".to_owned()), ..Settings::default() };
    let (stage, provisioner) = stage(&settings, behaviour).await.unwrap();
    gang(&stage, 2).await;
    let bound = stage.bound("app=g", 2).await.unwrap();
    let mut on: Vec<&str> = bound.iter().filter_map(node_of).collect();
    on.sort_unstable();
    assert_eq!(on, ["n3", "n4"]);
    let told: Vec<String> = [stage.events("g-0").await.unwrap(), stage.events("g-1").await.unwrap()].concat();
    assert!(told.iter().any(|text| text.contains("zone a is full")), "{told:?}");

    provisioner.set(|behaviour| *behaviour = Behaviour { stopped: true, ..Behaviour::default() });
    stage.create([claim("late", "slow", "ReadWriteOnce")]).await.unwrap();
    stage.create([mounting(PodManifest::new("late").request("cpu", "1"), &["late"]).build()]).await.unwrap();
    let first = selected(&stage, "late", |_| true).await;
    selected(&stage, "late", |node| node != first).await;
    let told = stage.events("late").await.unwrap();
    assert!(told.iter().any(|text| text.contains("no volume within 6 s")), "{told:?}");
    provisioner.set(|behaviour| behaviour.stopped = false);
    stage.pod_bound("late").await.unwrap();
}

#[tokio::test]
async fn limits_claims_for_one_pod_and_existing_volumes_are_respected() {
    let (stage, _provisioner) = stage(&Settings::default(), Behaviour::default()).await.unwrap();
    // n1 takes two volumes.
    let on_first =
        |name: &str| PodManifest::new(name).spec("nodeSelector", json!({"kubernetes.io/hostname": "n1"}));
    for index in 0..3 {
        let name = format!("v{index}");
        let mode = if index == 0 { "ReadWriteOncePod" } else { "ReadWriteOnce" };
        stage.create([claim(&name, "slow", mode)]).await.unwrap();
    }
    for name in ["v0", "v1"] {
        stage.create([mounting(on_first(name), &[name]).build()]).await.unwrap();
        stage.pod_bound(name).await.unwrap();
    }
    stage.create([mounting(on_first("v2"), &["v2"]).build()]).await.unwrap();
    stage.pod_is_told("v2", "would exceed the maximum volume count of csi.test").await.unwrap();
    stage.create([mounting(PodManifest::new("again"), &["v0"]).build()]).await.unwrap();
    stage.pod_is_told("again", "ReadWriteOncePod claim v0 is in use").await.unwrap();
    stage.delete_pod("v0").await.unwrap();
    stage.pod_bound("again").await.unwrap();
    stage.delete_pod("again").await.unwrap();
    stage.pod_bound("v2").await.unwrap();

    // Volumes that exist already, and are reserved for the claims of a gang.
    stage.create([class("local", "kubernetes.io/no-provisioner")]).await.unwrap();
    for (name, node) in [("pv-2", "n2"), ("pv-3", "n3")] {
        let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
                "local": {"path": "/x"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}}}});
        stage.create([volume]).await.unwrap();
    }
    for name in ["l-0", "l-1", "l-2"] {
        let pod = PodManifest::new(name).request("cpu", "1").group("l", 3).label("app", "l");
        stage.create([claim(name, "local", "ReadWriteOnce"), mounting(pod, &[name]).build()]).await.unwrap();
    }
    stage.pod_is_told("l-0", "limited by other Pods or volumes").await.unwrap();
    stage.stay_unbound("app=l").await.unwrap();
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-any"},
        "spec": {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
            "hostPath": {"path": "/x"}}});
    stage.create([volume]).await.unwrap();
    let bound = stage.bound("app=l", 3).await.unwrap();
    let on: Vec<&str> = bound.iter().filter_map(node_of).collect();
    assert!(on.contains(&"n2") && on.contains(&"n3"), "{on:?}");

    // The claim of a generic ephemeral volume is created for the Pod.
    let template = json!({"spec": {"storageClassName": "slow", "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    let scratch = PodManifest::new("scratch")
        .spec("volumes", json!([{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}]));
    stage.create([scratch.build()]).await.unwrap();
    stage.pod_bound("scratch").await.unwrap();
    let bound = get_claim(&stage, "scratch-v").await.unwrap();
    assert!(bound.spec.unwrap().volume_name.is_some());
}
