//! Figures with a limit, measured on the real control plane: what suspended Jobs take in memory, and what admission adds to
//! the creation of a Pod. `--nocapture` prints them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::{Duration, Instant};

use fluxion_tests::Options;
use fluxion_tests::admission::label;
use fluxion_tests::inspector::Settings;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::stage::{Stage, node_of};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

/// Pods of all suspended Jobs together.
const QUEUED: usize = 100_000;
const PODS_OF_JOB: usize = 500;
const MEMORY_MAX: u64 = 200;
/// Pods created in each namespace.
const CREATED: usize = 300;
const ADDED_MAX: Duration = Duration::from_millis(5);

/// A Pod as anybody writes it: it names no scheduler.
fn plain(name: &str, cpu: &str) -> PodManifest {
    PodManifest::new(name).request("cpu", cpu).spec("schedulerName", Value::Null)
}

#[tokio::test]
async fn a_hundred_thousand_pods_of_suspended_jobs_take_little_memory() {
    let node = NodeSpec::new("n1").with("cpu", "500").with("pods", "2000");
    let stage =
        Stage::with_admission(Options::default(), &Settings::default(), &[node], "suspend").await.unwrap();
    let before = stage.inspector.resident_mib().unwrap();
    // Every Job would fit on the empty node.
    let blocker = plain("blocker", "1").spec("nodeName", json!("n1"));
    stage.create([blocker.foreign().build()]).await.unwrap();
    assert_eq!(stage.pod("blocker").await.ok().as_ref().and_then(node_of), Some("n1"));
    let count = QUEUED / PODS_OF_JOB;
    for index in 0..count {
        let job =
            plain("t", "1").label("of", &format!("job-{index}")).job(&format!("job-{index}"), PODS_OF_JOB);
        stage.create([job]).await.unwrap();
    }
    for index in [0, count / 2, count - 1] {
        let job = stage
            .job_becomes(&format!("job/job-{index}"), "queued", |job| job.status.reason.is_some())
            .await
            .unwrap();
        assert_eq!((job.spec.shapes[0].count as usize, job.is_queued()), (PODS_OF_JOB, true), "{job:?}");
    }
    let after = stage.inspector.resident_mib().unwrap();
    println!("{count} Jobs of {PODS_OF_JOB} Pods: {before} MiB before, {after} MiB queued");
    assert!(after < MEMORY_MAX, "{after} MiB");
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// In turn in a labelled namespace and one that is not; in both, the Pods stay where they are.
#[tokio::test]
async fn admission_adds_little_to_the_creation_of_a_pod() {
    let stage =
        Stage::with_admission(Options::default(), &Settings::default(), &[NodeSpec::new("n1")], "none")
            .await
            .unwrap();
    stage.cluster.kubectl(&["create", "namespace", "gated"]).await.unwrap();
    label(&stage.cluster, "gated", "gate").await.unwrap();
    let apis = ["default", "gated"].map(|namespace| Api::<Pod>::namespaced(stage.client.clone(), namespace));
    let mut times = [Vec::new(), Vec::new()];
    for index in 0..CREATED {
        let mut pod = plain(&format!("p{index}"), "64").build();
        pod["metadata"].as_object_mut().unwrap().remove("namespace");
        let pod: Pod = serde_json::from_value(pod).unwrap();
        for which in [index % 2, (index + 1) % 2] {
            let began = Instant::now();
            let made = apis[which].create(&PostParams::default(), &pod).await.unwrap();
            times[which].push(began.elapsed());
            let gates = made.spec.and_then(|spec| spec.scheduling_gates).unwrap_or_default();
            assert_eq!(gates.len(), which);
        }
    }
    let [without, with] = times.map(median);
    println!("{CREATED} Pods in turn, median: {without:?} without, {with:?} with admission");
    assert!(with < without + ADDED_MAX, "{without:?} without, {with:?} with");
}
