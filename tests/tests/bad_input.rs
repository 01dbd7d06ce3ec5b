//! Malformed and hostile objects get a reason and an Event, and hinder nobody.

use std::time::Duration;

use anyhow::bail;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::stage::{Stage, scheduled_condition};
use fluxion_tests::wait;
use serde_json::json;

const SIZE: &str = "fluxion.flux-framework.org/group-size";
const GROUP: &str = "fluxion.flux-framework.org/group";

#[tokio::test]
async fn what_is_not_understood_waits_with_a_reason_and_others_run() {
    let mut stage = Stage::with_nodes(&[NodeSpec::new("n1").with("cpu", "64")]).await.unwrap();
    let pod = |name: &str| PodManifest::new(name).request("cpu", "1").label("bad", "yes");
    let sized = |name: &str, size: &str| pod(name).annotation(GROUP, name).annotation(SIZE, size);
    let timed = |name: &str, time: &str| pod(name).annotation("fluxion.flux-framework.org/duration", time);
    let bad = [
        (sized("word", "abc"), "abc"),
        (sized("negative", "-1"), "-1"),
        (sized("billion", "1000000000"), "1000000000"),
        (sized("digits", "99999999999999999999999"), "99999999999999999999999"),
        (timed("backwards", "-5m"), "-5m"),
        (timed("absurd", "1e400d"), "1e400d"),
        (timed("text", "soon"), "soon"),
        (
            pod("overflow").request("memory", "8Ei").limit("example.com/units", "9223372036854775807"),
            "example.com/units",
        ),
    ];
    for (manifest, _) in &bad {
        stage.create([manifest.clone().build()]).await.unwrap();
    }
    stage.create([PodManifest::new("healthy").request("cpu", "1").build()]).await.unwrap();
    stage.pod_bound("healthy").await.unwrap();
    stage.stay_unbound("bad=yes").await.unwrap();
    for (manifest, word) in bad {
        let name = manifest.build()["metadata"]["name"].as_str().unwrap().to_owned();
        wait::until(&format!("Pod {name} is told about {word}"), Duration::from_secs(15), || async {
            let condition = scheduled_condition(&stage.pod(&name).await?).unwrap_or_default();
            let events = stage.events(&name).await?.join("; ");
            if condition.contains(word) && !events.is_empty() {
                return Ok(());
            }
            bail!("condition '{condition}', Events '{events}'")
        })
        .await
        .unwrap();
    }
    stage.inspector.healthy().unwrap();
    // Nothing is said again and again.
    let events = stage.events("word").await.unwrap().len();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(stage.events("word").await.unwrap().len() <= events + 1);
}

#[tokio::test]
async fn a_group_that_vanishes_and_sums_that_overflow_stop_nobody() {
    let mut stage = Stage::with_nodes(&[NodeSpec::new("n1")]).await.unwrap();
    let group = json!({
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": { "name": "gone" },
        "spec": { "schedulingPolicy": { "gang": { "minCount": 3 } } },
    });
    let member = |name: &str| {
        PodManifest::new(name)
            .label("g", "gone")
            .spec("schedulingGroup", json!({ "podGroupName": "gone" }))
            .build()
    };
    stage.create([group, member("g-0"), member("g-1")]).await.unwrap();
    stage.job_is("podgroup/gone", "Gathering").await.unwrap();
    // Protected by its Pods it is only terminating; without protection it is gone under them.
    stage.cluster.kubectl(&["delete", "podgroups.scheduling.k8s.io", "gone", "--wait=false"]).await.unwrap();
    stage
        .cluster
        .kubectl(&[
            "patch",
            "podgroups.scheduling.k8s.io",
            "gone",
            "--type=merge",
            "-p",
            r#"{"metadata":{"finalizers":null}}"#,
        ])
        .await
        .ok();
    stage.create([member("g-2")]).await.unwrap();
    stage.stay_unbound("g=gone").await.unwrap();

    let huge = json!({ "name": "d", "image": "pause", "resources": { "requests": { "memory": "9223372036854775807" } } });
    let overflow = PodManifest::new("overflow")
        .label("bad", "yes")
        .spec("containers", json!([huge, { "name": "e", "image": "pause", "resources": { "requests": { "memory": "9223372036854775807" } } },
            { "name": "f", "image": "pause", "resources": { "requests": { "memory": "9223372036854775807" } } }]));
    stage.create([overflow.build(), PodManifest::new("healthy").build()]).await.unwrap();
    stage.pod_bound("healthy").await.unwrap();
    stage.stay_unbound("bad=yes").await.unwrap();
    stage.inspector.healthy().unwrap();
}
