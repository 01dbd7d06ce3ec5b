//! An inspector that is killed at the worst moment goes on where it was, with no file of its own.

use std::time::Duration;

use anyhow::bail;
use fluxion_api::JobState;
use fluxion_tests::gang_watch::GangWatch;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::stage::{Stage, node_of};
use fluxion_tests::wait;

const GANG: &str = "fluxion.flux-framework.org/group";
const SIZE: usize = 50;

/// kill -9 between the first and the last binding of a gang of 50, twenty times. How far the binding is when it
/// dies differs from round to round, since the kill waits for one more Pod each time.
#[tokio::test]
async fn a_gang_becomes_whole_after_a_kill_between_its_bindings() {
    let nodes: Vec<NodeSpec> = (0..10).map(|index| NodeSpec::new(format!("n{index}"))).collect();
    let mut stage = Stage::with_nodes(&nodes).await.unwrap();
    let mut cut = 0;
    for round in 0..20 {
        let name = format!("round-{round}");
        let watch = GangWatch::start(stage.client.clone(), GANG, &[(&name, SIZE)]);
        let pod = PodManifest::new("member").request("cpu", "500m").group(&name, SIZE);
        stage.create((0..SIZE).map(|index| pod.named(&format!("{name}-{index}")).build())).await.unwrap();
        let goal = 1 + round * 2;
        let began = tokio::time::Instant::now();
        while watch.ever_bound(&name) < goal && began.elapsed() < Duration::from_secs(20) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        stage.inspector.kill();
        let selector = format!("{GANG}={name}");
        let bound = stage.pods(&selector).await.unwrap().iter().filter(|pod| node_of(pod).is_some()).count();
        assert!(bound > 0, "nothing was bound within 20 s");
        cut += usize::from(bound < SIZE);

        stage.inspector.restart_without_state(&stage.cluster).await.unwrap();
        stage.bound(&selector, SIZE).await.unwrap();
        assert_eq!(watch.rebound(), Vec::<String>::new());
        stage
            .job_becomes(&format!("group/{name}"), "running whole", |job| {
                job.status.state == JobState::Running && usize::try_from(job.status.members.bound) == Ok(SIZE)
            })
            .await
            .unwrap();
        wait::until("the audit is clean", Duration::from_secs(5), || async {
            let findings = stage.audit().await?.findings;
            if findings.is_empty() { Ok(()) } else { bail!("{findings:?}") }
        })
        .await
        .unwrap();
        stage.cluster.kubectl(&["delete", "pods", "-l", &selector, "--wait=false"]).await.unwrap();
        stage.bound(&selector, 0).await.unwrap();
    }
    assert!(cut >= 5, "only {cut} of 20 kills came between the first and the last binding");
    stage.inspector.healthy().unwrap();
}
