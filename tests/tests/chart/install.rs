//! `helm install`, `upgrade`, `test` and `uninstall` on a real API server.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use fluxion_tests::apply::{Applier, documents};
use fluxion_tests::helm::{Helm, NAMESPACE, RELEASE, chart, path};
use fluxion_tests::inspector::{Inspector, job_becomes};
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::plugin::{Ran, ran};
use fluxion_tests::programs::{self, Program};
use fluxion_tests::registration::SecurePort;
use fluxion_tests::tools::Tool;
use fluxion_tests::{Cluster, Options, nodes, wait};
use serde_json::{Value, json};

use super::{EVERYTHING, metrics};

const SOON: Duration = Duration::from_secs(30);
/// Ends the Pod of `helm test`, which the fake kubelets don't run.
const TEST_ENDS: &str = r"test.podAnnotations.fluxion\.flux-framework\.org/run-time=1s";

/// The chart as if it were an earlier version.
fn earlier_version(dir: &Path) -> Result<()> {
    let status = std::process::Command::new("cp").arg("-R").arg(chart()).arg(dir).status()?;
    ensure!(status.success());
    let file = dir.join("fluxion/Chart.yaml");
    let text = std::fs::read_to_string(&file)?;
    let changed = text.replace("\nversion: 0.1.0", "\nversion: 0.0.1");
    ensure!(changed != text, "{text}");
    Ok(std::fs::write(&file, changed)?)
}

/// One field of an object, by kubectl.
async fn field(cluster: &Cluster, kind: &str, name: &str, field: &str) -> Result<String> {
    let output = format!("jsonpath={{{field}}}");
    cluster.kubectl(&["--namespace", NAMESPACE, "get", kind, name, "-o", &output]).await
}

/// The inspector with the rights that the release gives it.
async fn inspector(cluster: &Cluster, port: &SecurePort) -> Result<Inspector> {
    let access = cluster.service_account(NAMESPACE, "fluxion-inspector").await?;
    let mut settings = port.settings();
    settings.arguments.extend(["--namespace".to_owned(), NAMESPACE.to_owned()]);
    Inspector::start_as(cluster, "inspector", &settings, access).await
}

/// What the Pod of `helm test` does, with its rights.
async fn status_as_the_test(cluster: &Cluster, helm: &Helm, applier: &Applier) -> Result<Ran> {
    let rendered = helm.template(&["--show-only", "templates/tests/status.yaml"]).await?;
    let mut command = Vec::new();
    for object in documents(&rendered)? {
        if object["kind"] == "Pod" {
            let words = object.pointer("/spec/containers/0/command").and_then(Value::as_array);
            command.extend(words.into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)));
        } else {
            applier.apply(object).await?;
        }
    }
    let access = cluster.service_account(NAMESPACE, "fluxion-inspector-test").await?;
    ensure!(command.first().is_some_and(|name| name == Program::Plugin.name()), "{command:?}");
    let mut process = tokio::process::Command::new(programs::path(Program::Plugin)?);
    process.args(&command[1..]).env_clear().env("KUBECONFIG", &access.kubeconfig).env("HOME", cluster.dir());
    let ran = ran(&mut process).await?;
    let file = cluster.dir().join("test.yaml");
    std::fs::write(&file, rendered)?;
    cluster.kubectl(&["delete", "--ignore-not-found", "-f", path(&file)?]).await?;
    Ok(ran)
}

/// Objects of the release that are there, of every kind that can be listed, but Helm's own record.
async fn left(cluster: &Cluster) -> Result<Vec<String>> {
    let kinds = cluster.kubectl(&["api-resources", "--verbs=list,delete", "-o", "name"]).await?;
    let kinds = kinds.lines().filter(|kind| !kind.starts_with("events") && !kind.contains("metrics"));
    let kinds = kinds.collect::<Vec<_>>().join(",");
    let label = format!("app.kubernetes.io/instance={RELEASE}");
    let listed = cluster.kubectl(&["get", &kinds, "-A", "-l", &label, "-o", "name"]).await?;
    Ok(listed.lines().map(str::to_owned).collect())
}

#[tokio::test]
async fn a_release_is_installed_works_is_upgraded_tested_and_leaves_nothing_behind() {
    let cluster = Cluster::start(Options::default().with_scheduler()).await.unwrap();
    let client = cluster.client().await.unwrap();
    nodes::create_many(&client, 3).await.unwrap();
    let applier = Applier::new(client.clone());
    applier.apply_yaml(include_str!("../../crds/monitoring.yaml")).await.unwrap();
    // The strictest standard for Pods, enforced.
    let restricted = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": NAMESPACE,
            "labels": { "pod-security.kubernetes.io/enforce": "restricted" },
        },
    });
    applier.apply(restricted).await.unwrap();
    cluster.namespace_usable(&client, NAMESPACE).await.unwrap();

    let helm = Helm::of(cluster.kubeconfig()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    earlier_version(dir.path()).unwrap();
    let earlier = dir.path().join("fluxion");
    let earlier = path(&earlier).unwrap();
    let told = helm.ask(&["install", RELEASE, earlier, "--wait", "--timeout", "90s"]).await.unwrap();
    assert!(told.contains("kubectl fluxion status"), "{told}");
    assert_eq!(
        field(&cluster, "deployment", "fluxion-inspector", ".status.readyReplicas").await.unwrap(),
        "2"
    );

    let port = SecurePort::reserve().unwrap();
    let mut inspector = inspector(&cluster, &port).await.unwrap();
    let gang = PodManifest::new("template").request("cpu", "100m").runs_for(2).gang_job("first", 3);
    applier.create(gang).await.unwrap();
    job_becomes(&inspector, "default", "job/first", "completed", |job| {
        job.status.state.as_str() == "Completed"
    })
    .await
    .unwrap();
    assert_eq!(
        field(&cluster, "validatingadmissionpolicy", "fluxion-inspector-term", ".status.typeChecking")
            .await
            .unwrap(),
        "{}",
        "checked, without warnings"
    );

    // What it writes at run time survives an upgrade.
    let api_service = "v1alpha1.fluxion.flux-framework.org";
    let authority = wait::until("the APIService trusts the inspector", SOON, || async {
        let bundle = field(&cluster, "apiservice", api_service, ".spec.caBundle").await?;
        ensure!(!bundle.is_empty());
        Ok(bundle)
    })
    .await
    .unwrap();
    let key = field(&cluster, "secret", "fluxion-inspector-tls", r".data.ca\.key").await.unwrap();
    assert!(!key.is_empty());
    let chart = chart();
    let chart = path(&chart).unwrap();
    let mut upgrade = vec!["upgrade", RELEASE, chart, "--wait", "--timeout", "90s", "--set", "replicas=3"];
    upgrade.extend(["--set", "config.bindDeadline=1m", "--set", TEST_ENDS].iter().chain(&EVERYTHING));
    helm.ask(&upgrade).await.unwrap();
    assert_eq!(field(&cluster, "apiservice", api_service, ".spec.caBundle").await.unwrap(), authority);
    assert_eq!(field(&cluster, "secret", "fluxion-inspector-tls", r".data.ca\.key").await.unwrap(), key);
    wait::until("three inspectors are ready", SOON, || async {
        let ready = field(&cluster, "deployment", "fluxion-inspector", ".status.readyReplicas").await?;
        ensure!(ready == "3", "{ready}");
        Ok(())
    })
    .await
    .unwrap();
    let metrics = reqwest::Client::new().get(format!("{}/metrics", inspector.url()));
    let answer = metrics.bearer_auth(inspector.token()).send().await.unwrap();
    assert!(answer.status().is_success(), "{answer:?}");
    metrics::all_exist(&answer.text().await.unwrap());

    let tested = helm.ask(&["test", RELEASE, "--timeout", "60s"]).await.unwrap();
    assert!(tested.contains("Succeeded"), "{tested}");
    // The chart's leads to Pods, in which nothing runs here.
    cluster.kubectl(&["--namespace", NAMESPACE, "delete", "service", "fluxion-inspector"]).await.unwrap();
    port.register(&applier).await.unwrap();
    let status = status_as_the_test(&cluster, &helm, &applier).await.unwrap();
    assert!(status.code == Some(0) && status.stdout.contains("Audit"), "{status:?}");
    let jobs = cluster.kubectl(&["get", "fluxionjobs", "-o", "name"]).await.unwrap();
    assert!(jobs.contains("fluxionjob.fluxion.flux-framework.org/job.first"), "{jobs}");
    inspector.healthy().unwrap();
    inspector.stop().await.unwrap();

    helm.ask(&["uninstall", RELEASE, "--wait", "--timeout", "60s"]).await.unwrap();
    wait::until("nothing of the release is left", SOON, || async {
        let left = left(&cluster).await?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })
    .await
    .unwrap();
    cluster.kubectl(&["delete", "namespace", NAMESPACE, "--timeout=60s"]).await.unwrap();
}

/// The commands of a section of the README that begin with one of these words.
fn commands(section: &str, words: [&str; 2]) -> Vec<String> {
    let readme = include_str!("../../../README.md").replace("\\\n", "");
    let section = readme.split("\n## ").find(|text| text.starts_with(section)).unwrap();
    let lines = section.lines().filter_map(|line| line.strip_prefix("$ "));
    lines.filter(|line| words.iter().any(|word| line.starts_with(word))).map(str::to_owned).collect()
}

/// Line by line, but for the image: nothing runs in the Pods here.
#[tokio::test]
async fn the_commands_of_the_readme_work() {
    let cluster = Cluster::start(Options::default().with_scheduler()).await.unwrap();
    nodes::create_many(&cluster.client().await.unwrap(), 2).await.unwrap();
    let helm = Helm::of(cluster.kubeconfig()).await.unwrap();
    let kubectl = cluster.tools().path(Tool::Kubectl);
    let commands = commands("Install on a cluster\n", ["helm ", "kubectl "]);
    assert_eq!(commands.len(), 5, "{commands:?}");
    for command in commands {
        let run = helm.shell(&command, kubectl);
        let ends = async {
            let annotation = "fluxion.flux-framework.org/run-time=1s";
            let annotate = ["-n", NAMESPACE, "annotate", "pod", "fluxion-inspector-test", annotation];
            while cluster.kubectl(&annotate).await.is_err() {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            std::future::pending::<()>().await;
        };
        let ran = tokio::select! {
            ran = run => ran.unwrap(),
            () = ends => unreachable!("it is pending for ever"),
        };
        assert_eq!(ran.code, Some(0), "{command}: {}{}", ran.stdout, ran.stderr);
    }
}
