//! Cancelling: in every state, by whom it may be, and twice.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::time::Duration;

use fluxion_api::JobState;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::plugin::Ran;
use fluxion_tests::registration::SecurePort;
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

const JOBS: &str = "/apis/fluxion.flux-framework.org/v1alpha1/namespaces/default/fluxionjobs";

/// A user with a ServiceAccount, who may do what these rules allow in namespace `default`.
async fn user(stage: &Stage, name: &str, rules: serde_json::Value) -> reqwest::Client {
    let api = "rbac.authorization.k8s.io/v1";
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name });
    stage
        .create([
            json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name } }),
            json!({ "apiVersion": api, "kind": "Role", "metadata": { "name": name, "namespace": "default" }, "rules": rules }),
            json!({
                "apiVersion": api,
                "kind": "RoleBinding",
                "metadata": { "name": name, "namespace": "default" },
                "roleRef": role,
                "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": "default" }],
            }),
        ])
        .await
        .unwrap();
    let token = stage.cluster.service_account("default", name).await.unwrap().token.unwrap();
    let authority = std::fs::read(stage.cluster.dir().join("pki/ca.crt")).unwrap();
    let mut headers = reqwest::header::HeaderMap::new();
    headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
    headers.insert("content-type", "application/json".parse().unwrap());
    reqwest::Client::builder()
        .tls_certs_only(reqwest::Certificate::from_pem_bundle(&authority).unwrap())
        .default_headers(headers)
        .build()
        .unwrap()
}

/// Cancels through kube-apiserver; status and answer.
async fn cancel(stage: &Stage, user: &reqwest::Client, job: &str, query: &str) -> (u16, serde_json::Value) {
    let url = format!("{}{JOBS}/{job}/cancel{query}", stage.cluster.server());
    let answer = user.post(url).body("{}").send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

/// With `cancel.enabled`, the inspector deletes what the user may delete, for the user, asked through kube-apiserver.
#[tokio::test]
async fn the_inspector_cancels_for_users_who_may() {
    let port = SecurePort::reserve().unwrap();
    let mut settings = port.settings();
    settings.arguments.push("--allow-cancel".to_owned());
    let chart = ["--set", "cancel.enabled=true"];
    let stage = Stage::with_chart(&settings, &[NodeSpec::new("n1")], &chart).await.unwrap();
    port.register(&stage.applier).await.unwrap();
    let pod = |name: &str| PodManifest::new(name).request("cpu", "1");
    stage
        .create([pod("alone").build(), pod("member").gang_job("gang", 2), pod("stays").build()])
        .await
        .unwrap();
    stage.job_is("pod/alone", "Running").await.unwrap();
    stage.job_is("job/gang", "Running").await.unwrap();
    let cancels = json!({ "apiGroups": ["fluxion.flux-framework.org"], "resources": ["fluxionjobs/cancel"], "verbs": ["create"] });
    let deletes = |group: &str, resource: &str| json!({ "apiGroups": [group], "resources": [resource], "verbs": ["delete"] });
    let may = user(&stage, "may", json!([cancels, deletes("", "pods"), deletes("batch", "jobs")])).await;
    let may_not_delete = user(&stage, "may-not-delete", json!([cancels, deletes("batch", "jobs")])).await;
    let may_not_cancel = user(&stage, "may-not-cancel", json!([deletes("", "pods")])).await;

    for (who, user) in [("without delete", &may_not_delete), ("without cancel", &may_not_cancel)] {
        let (status, answer) = cancel(&stage, user, "pod.alone", "").await;
        assert_eq!((status, &answer["reason"]), (403, &"Forbidden".into()), "{who}: {answer}");
    }
    let (status, answer) = cancel(&stage, &may, "pod.alone", "?dryRun=All").await;
    assert_eq!((status, &answer["outcome"]), (200, &"DryRun".into()), "{answer}");
    assert_eq!(
        (&answer["targets"][0]["kind"], &answer["targets"][0]["name"]),
        (&"Pod".into(), &"alone".into())
    );
    assert_eq!(answer["frees"]["cpu"], "1");
    assert_eq!(stage.job("pod/alone").await.unwrap().status.state, JobState::Running);

    for (job, shown) in [("pod.alone", "pod/alone"), ("job.gang", "job/gang")] {
        let (status, answer) = cancel(&stage, &may, job, "").await;
        assert_eq!((status, &answer["outcome"]), (200, &"Cancelled".into()), "{answer}");
        let ended = stage.job_is(shown, "Cancelled").await.unwrap();
        let told = serde_json::to_string(&ended.status.history).unwrap();
        assert!(told.contains("system:serviceaccount:default:may"), "{told}");
        let (status, answer) = cancel(&stage, &may, job, "").await;
        let outcome = answer["outcome"].as_str().unwrap();
        assert!(status == 200 && outcome.starts_with("Already"), "{answer}");
    }
    let (status, answer) = cancel(&stage, &may, "pod.never-was", "").await;
    assert_eq!((status, &answer["reason"]), (404, &"NotFound".into()), "{answer}");
    wait::until("the Pods are gone", Duration::from_secs(30), || async {
        let left = stage.pods("").await?;
        let names: Vec<_> = left.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
        anyhow::ensure!(names == ["stays"], "{names:?}");
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(stage.job("pod/stays").await.unwrap().status.state, JobState::Running);
    let findings = stage.audit().await.unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");
}
