//! Nodes come, go, are cordoned, and lose devices.

use anyhow::bail;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::{self, NodeSpec};
use fluxion_tests::stage::{SOON, Stage};
use fluxion_tests::wait;
use serde_json::json;

#[tokio::test]
async fn an_impossible_job_says_so_at_once_and_runs_when_a_node_is_added() {
    let stage = Stage::with_nodes(&[NodeSpec::new("n1")]).await.unwrap();
    stage.create([PodManifest::new("big").request("cpu", "20").build()]).await.unwrap();
    let job = stage.job_is("pod/big", "Unsatisfiable").await.unwrap();
    let reason = job.status.reason.unwrap();
    assert_eq!(
        reason.text,
        "0/1 nodes are available: 1 had too little cpu (20 requested, at most 4 per node)"
    );
    assert!(job.status.reservation.is_none());
    // One reason in the same words wherever it is told, written from the fields that programs read.
    assert_eq!(fluxion_api::reason::line(&reason.facts), reason.text);
    stage.pod_is_told("big", &format!("Unschedulable: {}", reason.text)).await.unwrap();
    let event = format!("FailedScheduling: {}", reason.text);
    wait::until("the Event says the reason", SOON, || async {
        let events = stage.events("big").await?;
        if events.contains(&event) { Ok(()) } else { bail!("{events:?}") }
    })
    .await
    .unwrap();
    for command in [["queue", "--output=wide"], ["explain", "pod/big"]] {
        let shown = stage.plugin().unwrap().ask(&command).await.unwrap();
        assert!(shown.contains(&reason.text), "{shown}");
    }

    nodes::create(&stage.client, &[NodeSpec::new("n2").with("cpu", "32")]).await.unwrap();
    assert_eq!(stage.pod_bound("big").await.unwrap(), "n2");
}

#[tokio::test]
async fn a_cordoned_node_keeps_what_it_has_and_takes_nothing_new() {
    let stage = Stage::with_nodes(&[NodeSpec::new("n1")]).await.unwrap();
    stage.create([PodManifest::new("old").request("cpu", "1").build()]).await.unwrap();
    stage.pod_bound("old").await.unwrap();
    stage.patch_node("n1", None, &json!({ "spec": { "unschedulable": true } })).await.unwrap();
    stage.node_becomes("n1", "cordoned", |node| !node.status.eligible).await.unwrap();
    stage.create([PodManifest::new("new").request("cpu", "1").label("who", "new").build()]).await.unwrap();
    stage.stay_unbound("who=new").await.unwrap();
    // A cordon is temporary.
    stage.job_is("pod/new", "Pending").await.unwrap();
    let books = stage.inspector.node("n1").await.unwrap().status;
    assert_eq!(books.allocated["cpu"], "1");
    stage.job_is("pod/old", "Running").await.unwrap();
    stage.patch_node("n1", None, &json!({ "spec": { "unschedulable": null } })).await.unwrap();
    assert_eq!(stage.pod_bound("new").await.unwrap(), "n1");
}

#[tokio::test]
async fn a_deleted_node_takes_its_members_with_it() {
    let stage = Stage::with_nodes(&[NodeSpec::new("n1"), NodeSpec::new("n2")]).await.unwrap();
    let pod = PodManifest::new("member").request("cpu", "3").group("pair", 2);
    stage.create([pod.named("a").build(), pod.named("b").build()]).await.unwrap();
    stage.bound("fluxion.flux-framework.org/group=pair", 2).await.unwrap();
    stage.job_is("group/pair", "Running").await.unwrap();
    stage.cluster.kubectl(&["delete", "node", "n2"]).await.unwrap();
    wait::until("the node is gone from the graph", SOON, || async {
        if stage.inspector.node("n2").await.is_err() { Ok(()) } else { bail!("it is known") }
    })
    .await
    .unwrap();
    // At once: the Pod garbage collector deletes Pods of a node that is gone only after most of a minute.
    let job = stage.job_becomes("group/pair", "degraded", |job| job.status.degraded).await.unwrap();
    let text = job.status.reason.unwrap().text;
    assert!(text.contains("deleted") && text.contains("n2"), "{text}");
    // What is left is still right: the other member holds its share.
    assert_eq!(stage.inspector.node("n1").await.unwrap().status.allocated["cpu"], "3");
}

/// The device plugin reports 0 GPUs while they are used: a deficit, no crash, nothing new, nothing freed.
#[tokio::test]
async fn lost_devices_are_a_deficit() {
    let mut stage = Stage::with_nodes(&[NodeSpec::new("gpu-1").with("nvidia.com/gpu", "4")]).await.unwrap();
    stage.create([PodManifest::new("uses").limit("nvidia.com/gpu", "4").build()]).await.unwrap();
    stage.pod_bound("uses").await.unwrap();
    let lost = json!({ "status": { "allocatable": { "nvidia.com/gpu": "0" } } });
    stage.patch_node("gpu-1", Some("status"), &lost).await.unwrap();
    let node = stage
        .node_becomes("gpu-1", "in deficit", |node| {
            node.status.deficit.get("nvidia.com/gpu").is_some_and(|gpus| gpus == "4")
        })
        .await
        .unwrap();
    assert_eq!(node.status.free["nvidia.com/gpu"], "0");
    assert_eq!(node.status.allocated["nvidia.com/gpu"], "4");
    stage
        .create([PodManifest::new("wants").limit("nvidia.com/gpu", "1").label("who", "wants").build()])
        .await
        .unwrap();
    stage.stay_unbound("who=wants").await.unwrap();
    // The device plugin has them still in capacity: it is broken, not gone.
    stage.job_is("pod/wants", "Pending").await.unwrap();
    stage.create([PodManifest::new("plain").request("cpu", "1").build()]).await.unwrap();
    stage.pod_bound("plain").await.unwrap();
    stage.inspector.healthy().unwrap();
    let back = json!({ "status": { "allocatable": { "nvidia.com/gpu": "4" } } });
    stage.patch_node("gpu-1", Some("status"), &back).await.unwrap();
    stage.node_becomes("gpu-1", "whole again", |node| node.status.deficit.is_empty()).await.unwrap();
}
