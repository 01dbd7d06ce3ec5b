//! Cancelling: in every state, by whom it may be, and twice.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::time::Duration;

use fluxion_api::JobState;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::plugin::Ran;
use fluxion_tests::stage::Stage;
use fluxion_tests::wait;
use serde_json::json;

fn said(ran: &Ran) -> (Option<i32>, String) {
    (ran.code, ran.stdout.trim().to_owned())
}

async fn empty(stage: &Stage, node: &str) {
    stage
        .node_becomes(node, "empty", |node| {
            node.status.allocated.values().all(|amount| amount == "0")
                && node.status.reserved.values().all(|amount| amount == "0")
        })
        .await
        .unwrap();
}

/// A running, a reserved, a pending and a gathering job; each goes, and everything is free afterwards.
#[tokio::test]
async fn a_job_is_cancelled_in_every_state() {
    let stage = Stage::with_nodes(&[NodeSpec::new("n1")]).await.unwrap();
    let pod = |name: &str| PodManifest::new(name).request("cpu", "4").deadline(600);
    stage.create([pod("running").build()]).await.unwrap();
    stage.job_is("pod/running", "Running").await.unwrap();
    stage.create([pod("reserved").build()]).await.unwrap();
    stage.job_is("pod/reserved", "Reserved").await.unwrap();
    stage.next_second().await;
    stage
        .create([pod("pending").build(), PodManifest::new("alone").group("gathering", 2).build()])
        .await
        .unwrap();
    stage.job_is("pod/pending", "Pending").await.unwrap();
    stage.job_is("group/gathering", "Gathering").await.unwrap();

    for job in ["group/gathering", "pod/pending", "pod/reserved", "pod/running"] {
        let ran = stage.run(&["cancel", "-y", job]).await.unwrap();
        assert_eq!(said(&ran), (Some(0), format!("{job} cancelled")), "{}", ran.stderr);
        stage.job_is(job, "Cancelled").await.unwrap();
        let again = stage.run(&["cancel", "-y", job]).await.unwrap();
        assert_eq!(again.code, Some(0), "{}", again.stderr);
        assert!(again.stdout.contains("already "), "{}", again.stdout);
    }
    empty(&stage, "n1").await;
}

/// A Pod that a Job owns comes back unless its Job goes: so that goes.
#[tokio::test]
async fn the_owner_goes_so_that_nothing_comes_back() {
    let stage = Stage::with_nodes(&[NodeSpec::new("n1")]).await.unwrap();
    stage.create([PodManifest::new("template").request("cpu", "1").job("sweep", 1)]).await.unwrap();
    let pods = stage.bound("batch.kubernetes.io/job-name=sweep", 1).await.unwrap();
    let name = format!("pod/{}", pods[0].metadata.name.as_deref().unwrap());
    let jobs = stage.plugin().unwrap().ask(&["jobs", "-o", "name"]).await.unwrap();
    assert!(jobs.lines().any(|line| line == name), "{jobs}");
    let preview = stage.run(&["cancel", "--dry-run", &name]).await.unwrap();
    assert_eq!(preview.code, Some(0), "{}", preview.stderr);
    assert!(preview.stderr.contains("sweep"), "{}", preview.stderr);
    assert_eq!(
        stage.pods("batch.kubernetes.io/job-name=sweep").await.unwrap().len(),
        1,
        "a dry run changes nothing"
    );

    let ran = stage.run(&["cancel", "-y", &name]).await.unwrap();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let kind = kube::core::GroupVersionKind::gvk("batch", "v1", "Job");
    wait::until("the Job is gone", Duration::from_secs(10), || async {
        match stage.applier.get(&kind, "default", "sweep").await? {
            None => Ok(()),
            Some(_) => anyhow::bail!("it exists"),
        }
    })
    .await
    .unwrap();
    wait::until("its Pod is gone", Duration::from_secs(10), || async {
        let left = stage.pods("batch.kubernetes.io/job-name=sweep").await?.len();
        if left == 0 { Ok(()) } else { anyhow::bail!("{left} are there") }
    })
    .await
    .unwrap();
    wait::throughout("no Pod of it comes back", Duration::from_secs(5), || async {
        let back = stage.pods("batch.kubernetes.io/job-name=sweep").await?.len();
        if back == 0 { Ok(()) } else { anyhow::bail!("{back} came back") }
    })
    .await
    .unwrap();
    empty(&stage, "n1").await;
}

/// One that has just ended, one that never was, and several at once.
#[tokio::test]
async fn outcomes_are_told_apart() {
    let stage = Stage::with_nodes(&[NodeSpec::new("n1")]).await.unwrap();
    stage
        .create([PodManifest::new("quick").runs_for(1).build(), PodManifest::new("stays").build()])
        .await
        .unwrap();
    stage.job_is("pod/quick", "Completed").await.unwrap();
    stage.job_is("pod/stays", "Running").await.unwrap();
    assert_eq!(
        said(&stage.run(&["cancel", "-y", "pod/quick"]).await.unwrap()),
        (Some(0), "pod/quick already finished".to_owned())
    );
    let unknown = stage.run(&["cancel", "-y", "pod/never-was"]).await.unwrap();
    assert_eq!(unknown.code, Some(3), "{}", unknown.stdout);
    assert!(unknown.stdout.contains("not found"), "{}", unknown.stdout);
    let both = stage.run(&["cancel", "-y", "pod/never-was", "pod/stays"]).await.unwrap();
    assert_eq!(both.code, Some(6), "{}", both.stdout);
    // Without a terminal and without -y nothing is done.
    stage.create([PodManifest::new("safe").build()]).await.unwrap();
    stage.job_is("pod/safe", "Running").await.unwrap();
    let refused = stage.run(&["cancel", "pod/safe"]).await.unwrap();
    assert_eq!(refused.code, Some(7), "{}", refused.stdout);
    assert_eq!(stage.job("pod/safe").await.unwrap().status.state, JobState::Running);
}

/// Who may not delete the Pod may not cancel the job, whatever token the inspector was asked with.
#[tokio::test]
async fn a_user_who_may_not_is_refused_by_the_cluster() {
    let stage = Stage::with_nodes(&[NodeSpec::new("n1")]).await.unwrap();
    stage.create([PodManifest::new("theirs").build()]).await.unwrap();
    stage.job_is("pod/theirs", "Running").await.unwrap();
    let nobody = stage.cluster.user("nobody", None).unwrap();
    let ran =
        stage.plugin_of(&nobody.kubeconfig).unwrap().run(&["cancel", "-y", "pod/theirs"]).await.unwrap();
    assert_eq!(ran.code, Some(4), "{} {}", ran.stdout, ran.stderr);
    assert_eq!(stage.job("pod/theirs").await.unwrap().status.state, JobState::Running);

    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": { "name": "canceller", "namespace": "default" },
        "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["delete"] }],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": { "name": "canceller", "namespace": "default" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "canceller" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "somebody" }],
    });
    stage.create([role, binding]).await.unwrap();
    let somebody = stage.cluster.user("somebody", None).unwrap();
    wait::until("the API server knows of the new right", Duration::from_secs(10), || async {
        stage.cluster.kubectl(&["auth", "can-i", "delete", "pods", "--as", "somebody"]).await
    })
    .await
    .unwrap();
    let ran =
        stage.plugin_of(&somebody.kubeconfig).unwrap().run(&["cancel", "-y", "pod/theirs"]).await.unwrap();
    assert_eq!(said(&ran), (Some(0), "pod/theirs cancelled".to_owned()), "{}", ran.stderr);
}
