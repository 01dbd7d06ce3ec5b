//! Other schedulers place Pods on the same nodes: they count, they race, they preempt.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use fluxion_tests::inspector::Settings;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::stage::{Stage, node_of};
use fluxion_tests::{Options, wait};
use serde_json::json;

async fn stage(nodes: &[NodeSpec]) -> Stage {
    Stage::start(Options::default().with_scheduler(), &Settings::default(), nodes).await.unwrap()
}

#[tokio::test]
async fn pods_of_others_count_and_so_do_nominated_ones() {
    let stage = stage(&[NodeSpec::new("n1")]).await;
    stage.create([PodManifest::new("web").foreign().request("cpu", "3").build()]).await.unwrap();
    stage.pod_bound("web").await.unwrap();
    let node = stage
        .node_becomes("n1", "holding the foreign Pod", |node| {
            node.status.foreign.get("cpu").is_some_and(|cpu| cpu == "3")
        })
        .await
        .unwrap();
    assert_eq!(node.status.free["cpu"], "1");
    stage.create([PodManifest::new("mine").request("cpu", "2").label("who", "us").build()]).await.unwrap();
    stage.stay_unbound("who=us").await.unwrap();
    assert!(stage.job("pod/web").await.is_err(), "a foreign Pod is no job of ours");

    // Another scheduler has a Pod for which it made room on the node: the room is its.
    let other =
        PodManifest::new("nominated").spec("schedulerName", json!("third")).request("cpu", "3").build();
    stage.create([other]).await.unwrap();
    stage.patch_pod_status("nominated", &json!({ "status": { "nominatedNodeName": "n1" } })).await.unwrap();
    stage.delete_pod("web").await.unwrap();
    stage.stay_unbound("who=us").await.unwrap();
    stage
        .node_becomes("n1", "keeping the nominated Pod's room", |node| node.status.free["cpu"] == "1")
        .await
        .unwrap();
    stage.delete_pod("nominated").await.unwrap();
    stage.pod_bound("mine").await.unwrap();
}

#[tokio::test]
async fn a_pod_that_kube_scheduler_preempts_is_shown_as_that() {
    let stage = stage(&[NodeSpec::new("n1")]).await;
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": { "name": "urgent" },
        "value": 1000,
    });
    stage.create([class, PodManifest::new("victim").request("cpu", "3").build()]).await.unwrap();
    stage.pod_bound("victim").await.unwrap();
    stage.job_is("pod/victim", "Running").await.unwrap();
    let urgent =
        PodManifest::new("urgent").foreign().request("cpu", "3").spec("priorityClassName", json!("urgent"));
    stage.create([urgent.build()]).await.unwrap();
    stage.pod_bound("urgent").await.unwrap();
    let job = stage
        .job_becomes("pod/victim", "ended", |job| {
            ["Failed", "Cancelled", "Completed"].contains(&job.status.state.as_str())
        })
        .await
        .unwrap();
    let told = serde_json::to_string(&job.status).unwrap().to_lowercase();
    assert!(told.contains("preempt"), "{told}");
}

/// 200 Pods of two schedulers on the same nodes. What was bound a second before our decision is never overlooked;
/// where both decide within that second, the audit names the node.
#[tokio::test]
async fn two_schedulers_share_nodes_and_the_audit_tells_where_they_raced() {
    let nodes: Vec<NodeSpec> =
        (0..20).map(|index| NodeSpec::new(format!("n{index}")).with("cpu", "8")).collect();
    let stage = stage(&nodes).await;
    for index in 0..100 {
        let ours = PodManifest::new(&format!("ours-{index}")).request("cpu", "1").label("mix", "ours");
        let theirs =
            PodManifest::new(&format!("theirs-{index}")).foreign().request("cpu", "1").label("mix", "theirs");
        stage.create([ours.build(), theirs.build()]).await.unwrap();
    }
    // 160 fit. Wait until nothing moves any more.
    let mut last = 0;
    let mut since = tokio::time::Instant::now();
    while since.elapsed() < Duration::from_secs(5) {
        let bound = stage.pods("mix").await.unwrap().iter().filter(|pod| node_of(pod).is_some()).count();
        if bound != last {
            (last, since) = (bound, tokio::time::Instant::now());
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    assert!(last >= 160, "only {last} of the 160 that fit are bound");

    // By node: when each Pod was bound, and by whom.
    let mut on_node: BTreeMap<String, Vec<(i64, bool)>> = BTreeMap::new();
    for pod in stage.pods("mix").await.unwrap() {
        let Some(node) = node_of(&pod) else { continue };
        let ours = pod.metadata.labels.as_ref().unwrap()["mix"] == "ours";
        let conditions = pod.status.as_ref().unwrap().conditions.clone().unwrap();
        let at =
            conditions.iter().find(|one| one.type_ == "PodScheduled").unwrap().last_transition_time.clone();
        on_node.entry(node.to_owned()).or_default().push((at.unwrap().0.as_second(), ours));
    }
    let mut raced = Vec::new();
    for (node, pods) in &mut on_node {
        pods.sort_unstable();
        if pods.len() > 8 {
            raced.push(node.clone());
            // Times are whole seconds: more than one second before is at least two apart.
            let last_ours = pods.iter().rev().find(|(_, ours)| *ours).map_or(0, |(at, _)| *at);
            let before = pods.iter().filter(|(at, _)| *at < last_ours - 1).count();
            assert!(before < 8, "{node} was full for more than a second when we bound to it: {pods:?}");
        }
    }
    wait::until("the audit names exactly the overcommitted nodes", Duration::from_secs(5), || async {
        let findings = stage.audit().await?.findings;
        let mut named: Vec<String> = findings
            .iter()
            .filter(|finding| finding.class == "Overcommitted")
            .map(|finding| finding.object.trim_start_matches("node/").to_owned())
            .collect();
        named.sort();
        if named == raced { Ok(()) } else { bail!("it names {named:?}, overcommitted are {raced:?}") }
    })
    .await
    .unwrap();
}
