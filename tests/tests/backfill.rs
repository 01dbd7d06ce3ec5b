//! Time limits, reservations, and what overtakes whom.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use fluxion_api::JobState;
use fluxion_tests::Options;
use fluxion_tests::inspector::Settings;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::stage::Stage;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

/// Seconds between two times.
fn differ_by(one: &str, other: &str) -> i64 {
    let second = |text: &str| text.parse::<Timestamp>().unwrap().as_second();
    (second(one) - second(other)).abs()
}

/// A wide job waits for a running one and gets a reservation; a short job overtakes it, a long one does not.
#[tokio::test]
async fn short_jobs_overtake_a_reservation_and_long_ones_do_not() {
    let nodes = [NodeSpec::new("n1"), NodeSpec::new("n2")];
    let options = Options::default().with_deadlines();
    let stage = Stage::start(options, &Settings::policy("easy"), &nodes).await.unwrap();
    let whole = |name: &str, limit: u32| PodManifest::new(name).request("cpu", "4").deadline(limit);
    stage.create([whole("running", 40).build()]).await.unwrap();
    stage.pod_bound("running").await.unwrap();
    let wide = whole("wide", 100).group("wide", 2);
    stage.create([wide.named("wide-0").build(), wide.named("wide-1").build()]).await.unwrap();
    let reserved = stage.job_is("group/wide", "Reserved").await.unwrap();

    let ends = stage.job("pod/running").await.unwrap().status.planned_end.unwrap();
    let starts = reserved.status.planned_start.clone().unwrap();
    assert!(differ_by(&starts, &ends) <= 1, "starts {starts}, the running job ends {ends}");
    let list: Value =
        serde_json::from_str(&stage.plugin().unwrap().ask(&["queue", "-o", "json"]).await.unwrap()).unwrap();
    let shown =
        list["items"].as_array().unwrap().iter().find(|job| job["metadata"]["name"] == "group.wide").unwrap();
    let shown_start = shown["status"]["plannedStart"].as_str().unwrap();
    assert!(differ_by(shown_start, &ends) <= 1, "shown {shown_start}, the running job ends {ends}");
    let mut reserved_nodes: Vec<&str> = shown["status"]["reservation"]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node.as_str().unwrap())
        .collect();
    reserved_nodes.sort_unstable();
    assert_eq!(reserved_nodes, ["n1", "n2"]);

    stage.next_second().await;
    stage.create([whole("long", 600).build()]).await.unwrap();
    stage
        .job_becomes("pod/long", "waiting for the reservation", |job| {
            let told = job
                .status
                .reason
                .as_ref()
                .map(|reason| format!("{} {}", reason.text, reason.details.join(" ")));
            ["Pending", "Reserved"].contains(&job.status.state.as_str())
                && told.is_some_and(|told| told.contains("wide"))
        })
        .await
        .unwrap();
    stage.next_second().await;
    stage.create([whole("short", 10).build()]).await.unwrap();
    stage.pod_bound("short").await.unwrap();

    // The running job is ended by its limit, and the wide one starts as it was told.
    let started = fluxion_tests::wait::until("wide runs", std::time::Duration::from_mins(1), || async {
        let job = stage.job("group/wide").await?;
        if job.status.state == JobState::Running { Ok(job) } else { anyhow::bail!("{}", job.status.state) }
    })
    .await
    .unwrap();
    let began = started.status.started_at.unwrap();
    assert!(differ_by(&began, &starts) <= 3, "planned {starts}, started {began}");
    assert_ne!(stage.job("pod/long").await.unwrap().status.state, JobState::Running);
}

/// A Job's own limit runs from the Job's start, time in the queue included: when it will end the Job before its
/// planned end, or before it starts, it says so.
#[tokio::test]
async fn a_job_whose_limit_runs_out_in_the_queue_is_warned() {
    let stage = Stage::with_nodes(&[NodeSpec::new("n1")]).await.unwrap();
    stage.create([PodManifest::new("running").request("cpu", "4").deadline(1000).build()]).await.unwrap();
    stage.pod_bound("running").await.unwrap();
    let mut job = PodManifest::new("template").request("cpu", "4").gang_job("late", 1);
    job["spec"]["activeDeadlineSeconds"] = serde_json::json!(300);
    stage.create([job]).await.unwrap();
    let told = |job: &fluxion_api::FluxionJob| {
        let reason = job.status.reason.clone().unwrap_or_default();
        format!("{} {} {}", reason.class, reason.text, job.status.warnings.join(" "))
    };
    let late = stage
        .job_becomes("job/late", "warned of its limit", |job| {
            let told = told(job);
            told.contains("DeadlineBeforeStart") || told.contains("activeDeadlineSeconds")
        })
        .await
        .unwrap();
    assert!(["Pending", "Reserved"].contains(&late.status.state.as_str()), "{:?}", late.status);
}
