//! What fails inside an inspector, or between it and the API server, is noticed, told, and taken over by another.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use fluxion_api::{JobState, Role};
use fluxion_tests::inspector::{Inspector, Settings};
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::stage::Stage;
use fluxion_tests::{Options, wait};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

const GROUP: &str = "fluxion.flux-framework.org/group";
const PATIENCE: Duration = Duration::from_mins(2);

fn two_nodes() -> Vec<NodeSpec> {
    ["n1", "n2"].into_iter().map(NodeSpec::new).collect()
}

/// Creates a gang of two.
async fn gang(stage: &Stage, name: &str) {
    let pod = PodManifest::new("member").request("cpu", "100m").group(name, 2);
    stage.create((0..2).map(|index| pod.named(&format!("{name}-{index}")).build())).await.unwrap();
}

async fn leads(inspector: &Inspector) -> Result<()> {
    let standing = inspector.standing().await?;
    ensure!(standing.role == Role::Leader && standing.warning.is_none(), "{standing:?}");
    Ok(())
}

/// The faults, each planted by making a file.
struct Faults(tempfile::TempDir);

const FAULTS: [&str; 7] = [
    "engine=panic",
    "engine=hang",
    "watch=panic",
    "writer=panic",
    "lease=panic",
    "lease=hang",
    "engine=panic",
];

impl Faults {
    fn file(&self, inspector: usize, fault: &str) -> PathBuf {
        self.0.path().join(format!("{inspector}-{fault}"))
    }

    fn settings(&self, inspector: usize) -> Settings {
        let planted: Vec<String> =
            FAULTS.iter().map(|fault| format!("{fault}:{}", self.file(inspector, fault).display())).collect();
        Settings {
            arguments: vec!["--step-limit".to_owned(), "3".to_owned()],
            environment: vec![
                ("FLUXION_FAILPOINTS".to_owned(), planted.join(",")),
                // Both are taken for one machine's, whatever that is.
                ("HOSTNAME".to_owned(), "same-host".to_owned()),
            ],
            ..Settings::default()
        }
    }
}

/// Of two inspectors of one host, one leads; when a part of it panics or hangs, it ends with an error and gives its
/// Lease back, and the other goes on. They take turns.
#[cfg_attr(not(debug_assertions), ignore = "faults can be planted in debug builds only")]
#[tokio::test]
async fn a_panic_or_a_hang_ends_the_inspector_and_another_takes_over() {
    let faults = Faults(tempfile::tempdir().unwrap());
    let mut stage = Stage::start(Options::default(), &faults.settings(0), &two_nodes()).await.unwrap();
    let lease = async |stage: &Stage| {
        let lease = GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease");
        let found = stage.applier.get(&lease, "fluxion-system", "fluxion-inspector").await.unwrap().unwrap();
        found.data["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    };
    wait::until("the first leads", PATIENCE, || leads(&stage.inspector)).await.unwrap();
    let mut standby = Inspector::start(&stage.cluster, "standby", &faults.settings(1)).await.unwrap();
    let mut leader = 0;
    for (round, fault) in FAULTS.into_iter().enumerate() {
        let standing = standby.standing().await.unwrap();
        assert_eq!(standing.role, Role::Follower, "{fault}");
        let warning = standing.warning.unwrap();
        let holder = lease(&stage).await;
        assert!(holder.starts_with("same-host_") && warning.contains(&holder), "{warning} / {holder}");

        let file = faults.file(leader, fault);
        std::fs::write(&file, "").unwrap();
        // Whatever hears of a Pod, decides about it or writes something runs into the fault.
        gang(&stage, &format!("round-{round}")).await;
        let planted = Instant::now();
        let status = wait::until("it ends", PATIENCE, || {
            let ended = stage.inspector.ended();
            async move { ended.ok_or_else(|| anyhow::anyhow!("it runs")) }
        })
        .await
        .unwrap();
        let ended = planted.elapsed();
        let log = stage.inspector.log().unwrap();
        assert!(!status.success(), "{fault}: {status}");
        let told = log.lines().rfind(|line| line.starts_with("error: ")).unwrap_or_default().to_owned();
        let wanted =
            if fault.ends_with("panic") { "panicked: planted at failpoint" } else { "has not responded for" };
        assert!(told.contains(wanted), "{fault}: {told}");
        wait::until("the standby leads", PATIENCE, || leads(&standby)).await.unwrap();
        println!("{fault}: ended after {ended:?}, taken over after {:?} ({told})", planted.elapsed());
        assert_ne!(lease(&stage).await, holder);
        std::fs::remove_file(file).unwrap();
        stage.bound(&format!("{GROUP}=round-{round}"), 2).await.unwrap();

        // The one that ended comes back as the standby.
        std::mem::swap(&mut stage.inspector, &mut standby);
        standby.restart(&stage.cluster).await.unwrap();
        leader = 1 - leader;
    }
}

/// kill -9: the Lease is not given back, but on the same machine it is certain that its holder is dead.
#[tokio::test]
async fn one_that_was_killed_is_not_waited_for_on_its_own_machine() {
    let mut stage = Stage::with_nodes(&two_nodes()).await.unwrap();
    wait::until("it leads", PATIENCE, || leads(&stage.inspector)).await.unwrap();
    stage.inspector.restart(&stage.cluster).await.unwrap();
    wait::until("it leads again", PATIENCE, || leads(&stage.inspector)).await.unwrap();
    let log = stage.inspector.log().unwrap();
    assert!(log.contains("the previous holder of the Lease has exited: taking over"), "{log}");
    gang(&stage, "after").await;
    stage.bound(&format!("{GROUP}=after"), 2).await.unwrap();
}

fn watch_of_nodes(role: &mut Value, granted: bool) {
    for rule in role["rules"].as_array_mut().unwrap() {
        let resources = rule["resources"].as_array_mut().unwrap();
        resources.retain(|resource| resource != "nodes");
    }
    let verbs = if granted { json!(["list", "watch"]) } else { json!(["list"]) };
    let rules = role["rules"].as_array_mut().unwrap();
    rules.push(json!({"apiGroups": [""], "resources": ["nodes"], "verbs": verbs}));
    rules.retain(|rule| rule["resources"] != json!([]));
}

/// A role without `watch` on nodes: their list works, so what was seen once looks right for ever.
#[tokio::test]
async fn nothing_is_bound_on_data_that_nobody_watches() {
    let mut stage = Stage::with_nodes(&two_nodes()).await.unwrap();
    wait::until("it leads", PATIENCE, || leads(&stage.inspector)).await.unwrap();
    let kind = GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", "ClusterRole");
    let allow = async |stage: &Stage, granted: bool| {
        let mut role = stage.applier.get(&kind, "", "fluxion-inspector").await.unwrap().unwrap();
        watch_of_nodes(&mut role.data, granted);
        let rules = json!({ "rules": role.data["rules"] });
        stage.applier.patch(&kind, "", "fluxion-inspector", None, &rules).await.unwrap();
    };
    allow(&stage, false).await;
    let unready = async |inspector: &Inspector| -> Result<()> {
        let (well, text) = inspector.answers("/readyz").await?;
        ensure!(!well && text.contains("not allowed to watch nodes"), "{well}: {text}");
        Ok(())
    };
    // The watch that stands goes on until its end; then it is not granted again.
    wait::until("the watch is missed", PATIENCE, || unready(&stage.inspector)).await.unwrap();
    stage.cluster.kubectl(&["cordon", "n1"]).await.unwrap();
    gang(&stage, "blind").await;
    stage.stay_unbound(&format!("{GROUP}=blind")).await.unwrap();
    let findings = stage.audit().await.unwrap().findings;
    let finding = findings.iter().find(|finding| finding.class == "StaleWatch").unwrap();
    assert_eq!(finding.object, "watch/nodes");
    assert!(finding.text.contains("cannot watch resource \"nodes\""), "{finding:?}");
    let status = stage.plugin().unwrap().ask(&["status"]).await.unwrap();
    assert!(status.contains("binding is paused: not allowed to watch nodes"), "{status}");

    // One that starts so never gets as far as to decide.
    stage.inspector.launch(&stage.cluster).unwrap();
    stage.inspector.up().await.unwrap();
    wait::until("the watch is missed from the start", PATIENCE, || unready(&stage.inspector)).await.unwrap();
    stage.stay_unbound(&format!("{GROUP}=blind")).await.unwrap();
    let log = stage.inspector.log().unwrap();
    let said = log.lines().filter(|line| line.contains("not allowed to watch nodes")).count();
    assert_eq!(said, 2, "once in each of its lives:\n{log}");

    allow(&stage, true).await;
    let bound = wait::until("the gang is bound", PATIENCE, || async {
        match stage.bound(&format!("{GROUP}=blind"), 2).await {
            Ok(pods) => Ok(pods),
            Err(error) => bail!("{error:#}"),
        }
    })
    .await
    .unwrap();
    for pod in &bound {
        assert_eq!(fluxion_tests::stage::node_of(pod), Some("n2"));
    }
    stage.inspector.ready().await.unwrap();
    stage.inspector.healthy().unwrap();
}

/// An API server that answers nothing any more: what was known can still be read, with its age.
#[tokio::test]
async fn reads_go_on_without_an_api_server() {
    let mut stage = Stage::with_nodes(&two_nodes()).await.unwrap();
    gang(&stage, "before").await;
    stage.bound(&format!("{GROUP}=before"), 2).await.unwrap();
    stage.job_is("group/before", "Running").await.unwrap();
    stage.cluster.freeze_api_server(true).unwrap();
    let standing = wait::until("the Lease is lost", PATIENCE, || async {
        let standing = stage.inspector.standing().await?;
        ensure!(standing.role == Role::Follower, "{standing:?}");
        Ok(standing)
    })
    .await
    .unwrap();
    let warning = standing.warning.unwrap();
    assert!(warning.starts_with("not the leader: API server unreachable since 2"), "{warning}");
    assert!(warning.ends_with(&standing.observed_at), "as old as that: {warning} / {}", standing.observed_at);
    assert_eq!(stage.job("group/before").await.unwrap().status.state, JobState::Running);
    let status = stage.plugin().unwrap().ask(&["status"]).await.unwrap();
    assert!(status.contains(&warning), "{status}");
    stage.plugin().unwrap().ask(&["explain", "group/before"]).await.unwrap();

    stage.cluster.freeze_api_server(false).unwrap();
    wait::until("it leads again", PATIENCE, || leads(&stage.inspector)).await.unwrap();
    gang(&stage, "after").await;
    stage.bound(&format!("{GROUP}=after"), 2).await.unwrap();
    let log = stage.inspector.log().unwrap();
    assert!(log.lines().any(|line| line.contains("WARN") && line.contains("lost the Lease")), "{log}");
    stage.inspector.healthy().unwrap();
}
