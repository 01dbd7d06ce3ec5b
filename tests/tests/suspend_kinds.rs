//! Kinds besides Job that have a field to suspend them: queued as one gang before they have Pods. The CRDs are stand-ins, and
//! the test plays their controllers.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use anyhow::ensure;
use fluxion_tests::inspector::Settings;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::stage::{Stage, node_of};
use fluxion_tests::{Options, wait};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);

fn nodes(count: usize) -> Vec<NodeSpec> {
    (1..=count).map(|index| NodeSpec::new(format!("n{index}")).with("cpu", "4")).collect()
}

/// A Pod as anybody writes it: it names no scheduler.
fn plain(name: &str, cpu: &str) -> PodManifest {
    PodManifest::new(name).request("cpu", cpu).spec("schedulerName", Value::Null)
}

/// A Pod template.
fn template(cpu: &str) -> Value {
    let mut spec = plain("t", cpu).build()["spec"].clone();
    spec.as_object_mut().unwrap().remove("schedulerName");
    json!({ "spec": spec })
}

fn object(api_version: &str, kind: &str, name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name }, "spec": spec })
}

fn job_set(name: &str, cpu: &str) -> Value {
    let job = |name: &str, replicas: u32, parallelism: u32, cpu: &str| {
        json!({ "name": name, "replicas": replicas, "template": { "spec": {
            "parallelism": parallelism, "completions": parallelism, "template": template(cpu) } } })
    };
    let spec = json!({ "replicatedJobs": [job("leader", 1, 1, "100m"), job("worker", 2, 1, cpu)] });
    object("jobset.x-k8s.io/v1alpha2", "JobSet", name, &spec)
}

/// One of each kind, each with one Pod that requests 100m and two that request so much; with the path of their field.
fn kinds(cpu: &str) -> Vec<(&'static str, &'static str, Value)> {
    let mut kinds = all_kinds(cpu);
    for (at, (.., object)) in kinds.iter_mut().enumerate() {
        // Of two that were created in the same second, the first one by name comes first.
        object["metadata"]["name"] = json!(format!("x{at}"));
    }
    kinds
}

fn all_kinds(cpu: &str) -> Vec<(&'static str, &'static str, Value)> {
    let replicas = |first: &str, second: &str| {
        json!({
        first: { "replicas": 1, "template": template("100m") }, second: { "replicas": 2, "template": template(cpu) } })
    };
    let mpi = json!({ "mpiReplicaSpecs": replicas("Launcher", "Worker") });
    let torch = json!({ "runPolicy": {}, "pytorchReplicaSpecs": replicas("Master", "Worker") });
    let ray = json!({ "headGroupSpec": { "template": template("100m") },
        "workerGroupSpecs": [{ "groupName": "w", "replicas": 2, "template": template(cpu) }] });
    let ray_job = json!({ "shutdownAfterJobFinishes": true, "rayClusterSpec": ray });
    vec![
        ("jobset.jobset.x-k8s.io", ".spec.suspend", job_set("x", cpu)),
        (
            "mpijob.kubeflow.org",
            ".spec.runPolicy.suspend",
            object("kubeflow.org/v2beta1", "MPIJob", "x", &mpi),
        ),
        (
            "pytorchjob.kubeflow.org",
            ".spec.runPolicy.suspend",
            object("kubeflow.org/v1", "PyTorchJob", "x", &torch),
        ),
        ("rayjob.ray.io", ".spec.suspend", object("ray.io/v1", "RayJob", "x", &ray_job)),
        ("raycluster.ray.io", ".spec.suspend", object("ray.io/v1", "RayCluster", "x", &ray)),
    ]
}

async fn install_kinds(stage: &Stage) {
    stage.applier.apply_yaml(include_str!("../crds/owners.yaml")).await.unwrap();
    stage.cluster.serves_all_kinds().await.unwrap();
}

/// Whether the object is suspended, and its annotation.
async fn suspended(stage: &Stage, kind: &str, name: &str, field: &str) -> String {
    let path =
        format!(r"jsonpath={{{field}}} {{.metadata.annotations.fluxion\.flux-framework\.org/admission}}");
    stage.cluster.kubectl(&["get", kind, name, "-o", &path]).await.unwrap()
}

/// What its controller makes once it is resumed.
fn pods_of(object: &Value, kind: &str, name: &str, uid: &str, cpus: &[&str]) -> Vec<Value> {
    let owner = json!([{ "apiVersion": object["apiVersion"], "kind": kind, "name": name, "uid": uid, "controller": true }]);
    let pod = |(at, cpu): (usize, &&str)| {
        let mut pod = plain(&format!("{}-{name}-{at}", kind.to_lowercase()), cpu).label("of", name).build();
        pod["metadata"]["ownerReferences"] = owner.clone();
        pod
    };
    cpus.iter().enumerate().map(pod).collect()
}

async fn kinds_queue_without_pods(stage: &Stage) {
    install_kinds(stage).await;
    // Nothing fits, so each of them waits, and says for what.
    stage.create([plain("blocker", "2").spec("nodeName", json!("n1")).build()]).await.unwrap();
    for (at, (kind, field, object)) in kinds("3").into_iter().enumerate() {
        let name = format!("x{at}");
        stage.create([object]).await.unwrap();
        assert_eq!(suspended(stage, kind, &name, field).await, "true suspend", "{kind}");
        let job = stage
            .job_becomes(&format!("{kind}/{name}"), "waiting for CPUs", |job| {
                job.status.reason.as_ref().is_some_and(|reason| reason.text.contains("cpu"))
            })
            .await
            .unwrap();
        let shapes: Vec<_> =
            job.spec.shapes.iter().map(|shape| (shape.count, shape.requests["cpu"].as_str())).collect();
        assert_eq!(shapes, [(1, "100m"), (2, "3")], "{kind}");
    }
    let told = stage.plugin().unwrap().ask(&["explain", "mpijob.kubeflow.org/x1"]).await.unwrap();
    assert!(told.contains("cpu"), "{told}");
    // What its user suspended, what has a controller, and what says no is left alone.
    let mut own = job_set("own", "1");
    own["spec"]["suspend"] = json!(true);
    let mut exempt = job_set("exempt", "1");
    exempt["metadata"]["labels"] = json!({ "fluxion.flux-framework.org/admission": "none" });
    let mut other = job_set("other", "1");
    other["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["schedulerName"] =
        json!("volcano");
    stage.create([own, exempt, other]).await.unwrap();
    for (name, seen) in [("own", "true "), ("exempt", " "), ("other", " ")] {
        assert_eq!(suspended(stage, "jobset", name, ".spec.suspend").await, seen, "{name}");
    }
    // Room for one after the other: each is resumed as a whole, and its Pods are bound where it was planned.
    stage.cluster.kubectl(&["delete", "pod", "blocker", "--force"]).await.unwrap();
    for (at, (kind, field, object)) in kinds("3").into_iter().enumerate() {
        let name = format!("x{at}");
        let selector = format!("of={name}");
        wait::until(&format!("{kind} is resumed"), SOON, || async {
            let seen = suspended(stage, kind, &name, field).await;
            ensure!(seen == "false resumed", "{seen}");
            Ok(())
        })
        .await
        .unwrap();
        let uid =
            stage.cluster.kubectl(&["get", kind, &name, "-o", "jsonpath={.metadata.uid}"]).await.unwrap();
        let of = object["kind"].as_str().unwrap();
        let pods = pods_of(&object, of, &name, &uid, &["100m", "3", "3"]);
        stage.create(pods[..2].to_vec()).await.unwrap();
        stage.stay_unbound(&selector).await.unwrap();
        stage.create(pods[2..].to_vec()).await.unwrap();
        let bound = stage.bound(&selector, 3).await.unwrap();
        assert!(bound.iter().all(|pod| node_of(pod).is_some()), "{kind}");
        stage.job_is(&format!("{kind}/{name}"), "Running").await.unwrap();
        stage.cluster.kubectl(&["delete", kind, &name]).await.unwrap();
        stage.cluster.kubectl(&["delete", "pods", "-l", &selector, "--force"]).await.unwrap();
    }
    let findings = stage.audit().await.unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");
}

#[tokio::test]
async fn in_mode_suspend_kinds_with_such_a_field_queue_without_pods() {
    let options = Options::default().with_scheduler();
    let stage = Stage::with_admission(options, &Settings::default(), &nodes(2), "suspend").await.unwrap();
    kinds_queue_without_pods(&stage).await;
}

#[tokio::test]
async fn the_webhook_suspends_them_too() {
    let stage = Stage::with_webhook(Options::default(), &nodes(2), "suspend").await.unwrap();
    install_kinds(&stage).await;
    for (at, (kind, field, object)) in kinds("64").into_iter().enumerate() {
        let name = format!("x{at}");
        stage.create([object]).await.unwrap();
        assert_eq!(suspended(&stage, kind, &name, field).await, "true suspend", "{kind}");
        stage.job_is(&format!("{kind}/{name}"), "Unsatisfiable").await.unwrap();
    }
}

/// An administrator who mistypes a mode is told by kubectl.
#[tokio::test]
async fn an_unknown_mode_is_pointed_out() {
    let stage =
        Stage::with_admission(Options::default(), &Settings::default(), &nodes(1), "gate").await.unwrap();
    let label = |value: &'static str| {
        let stage = &stage;
        async move {
            let set = format!("fluxion.flux-framework.org/admission={value}");
            let arguments = ["label", "--overwrite", "--dry-run=server", "namespace", "kube-public", &set];
            stage.cluster.kubectl_with_warnings(&arguments).await
        }
    };
    // kube-apiserver takes up each policy at its own time: that namespaces are admitted does not show this one.
    wait::until("an unknown mode is pointed out", Duration::from_secs(30), || async {
        let told = label("gated").await?;
        ensure!(told.contains("Warning:") && told.contains("must be one of bind, gate, suspend"), "{told}");
        Ok(())
    })
    .await
    .unwrap();
    for mode in ["bind", "gate", "suspend"] {
        let told = label(mode).await.unwrap();
        assert!(!told.contains("Warning:"), "{told}");
    }
}
