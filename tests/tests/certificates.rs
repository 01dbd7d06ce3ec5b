//! Certificates that change while somebody watches, and an authority that has expired while nobody ran.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, ensure};
use fluxion_tests::clock::Clock;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::programs::{self, Program};
use fluxion_tests::registration::SecurePort;
use fluxion_tests::stage::{SOON, Stage};
use fluxion_tests::tools::Tool;
use fluxion_tests::{Options, wait};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::Api;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// A program that watches, and all that it has written.
struct Watching {
    lines: Arc<Mutex<String>>,
    child: Child,
}

impl Watching {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = Arc::new(Mutex::new(String::new()));
        let (out, errors) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (first, second) = (Arc::clone(&lines), Arc::clone(&lines));
        tokio::spawn(keep(BufReader::new(out), first));
        tokio::spawn(keep(BufReader::new(errors), second));
        Self { lines, child }
    }

    fn text(&self) -> String {
        self.lines.lock().unwrap().clone()
    }

    /// Waits until it has told of all of these.
    async fn tells(&mut self, what: &str, jobs: &BTreeSet<String>) {
        wait::until(&format!("{what} tells of all"), SOON, || async {
            let text = self.text();
            let missing: Vec<_> = jobs.iter().filter(|job| !text.contains(*job)).collect();
            ensure!(missing.is_empty(), "{missing:?} are missing in {text}");
            Ok(())
        })
        .await
        .unwrap();
        assert!(self.child.try_wait().unwrap().is_none(), "{what} has ended: {}", self.text());
    }
}

async fn keep(reader: BufReader<impl tokio::io::AsyncRead + Unpin>, lines: Arc<Mutex<String>>) {
    let mut reader = reader.lines();
    while let Ok(Some(line)) = reader.next_line().await {
        let mut lines = lines.lock().unwrap();
        lines.push_str(&line);
        lines.push('\n');
    }
}

/// What the `APIService` trusts.
async fn trusted(stage: &Stage) -> Result<Vec<u8>> {
    let api: Api<APIService> = Api::all(stage.client.clone());
    let service = api.get("v1alpha1.fluxion.flux-framework.org").await?;
    Ok(service.spec.and_then(|spec| spec.ca_bundle).unwrap_or_default().0)
}

/// The authority is thrown away twice, and with it its serving certificate. Watches through kube-apiserver go on, and no event
/// is lost; new connections find what they trust.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_outlive_the_certificates() {
    let port = SecurePort::reserve().unwrap();
    let nodes = [NodeSpec::new("n1").with("cpu", "64")];
    let stage = Stage::start(Options::default(), &port.settings(), &nodes).await.unwrap();
    port.register(&stage.applier).await.unwrap();
    let kubeconfig = stage.cluster.kubeconfig();
    let home = stage.cluster.dir();
    let mut kubectl = Command::new(stage.cluster.tools().path(Tool::Kubectl));
    kubectl.arg("--kubeconfig").arg(kubeconfig).args(["get", "fj", "-A", "--watch"]).env("HOME", home);
    let mut plugin = Command::new(programs::path(Program::Plugin).unwrap());
    plugin.args(["jobs", "-A", "--watch"]).env("KUBECONFIG", kubeconfig).env("HOME", home);
    plugin.env_remove("XDG_STATE_HOME").env_remove("FLUXION_SERVER");
    let mut watching = [("kubectl", Watching::start(kubectl)), ("the plugin", Watching::start(plugin))];
    let mut jobs = BTreeSet::new();
    let mut come = async |count: usize| {
        for _ in 0..count {
            let name = format!("pod-{:03}", jobs.len());
            stage.create([PodManifest::new(&name).build()]).await.unwrap();
            jobs.insert(name);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        jobs.clone()
    };
    let all = come(3).await;
    for (what, one) in &mut watching {
        one.tells(what, &all).await;
    }
    for _ in 0..2 {
        let before = trusted(&stage).await.unwrap();
        let empty = json!([{ "op": "remove", "path": "/data" }]).to_string();
        let patch = [
            "--namespace",
            "fluxion-system",
            "patch",
            "secret",
            "fluxion-inspector-tls",
            "--type=json",
            "-p",
        ];
        stage.cluster.kubectl(&[&patch[..], &[&empty]].concat()).await.unwrap();
        let mut rounds = 0;
        while trusted(&stage).await.unwrap() == before {
            come(1).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
            rounds += 1;
            assert!(rounds < 180, "the authority is not made anew");
        }
        let all = come(20).await;
        for (what, one) in &mut watching {
            one.tells(what, &all).await;
        }
        port.becomes_available(&stage.client, true).await.unwrap();
        let listed = stage.cluster.kubectl(&["get", "fj", "-A"]).await.unwrap();
        assert!(all.iter().all(|job| listed.contains(job)), "{listed}");
        let direct = port.direct(&stage.client, None).await.unwrap();
        assert_eq!(direct.get(format!("{}/readyz", port.url())).send().await.unwrap().status(), 200);
    }
}

/// An installation that was left alone for four years: its authority has expired, and is replaced at the start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_that_has_expired_is_replaced() {
    const YEAR: i64 = 366 * 24 * 3600;
    let folder = tempfile::tempdir().unwrap();
    let Some(clock) = Clock::in_folder(folder.path()).unwrap() else { return };
    clock.set(-4 * YEAR).unwrap();
    let port = SecurePort::reserve().unwrap();
    let mut settings = port.settings();
    settings.environment = clock.environment();
    let mut stage = Stage::start(Options::default(), &settings, &[NodeSpec::new("n1")]).await.unwrap();
    let old =
        wait::until("there is an authority", SOON, || SecurePort::authority(&stage.client)).await.unwrap();
    stage.inspector.stop().await.unwrap();
    clock.set(0).unwrap();
    stage.inspector.restart(&stage.cluster).await.unwrap();
    port.register(&stage.applier).await.unwrap();
    assert_ne!(SecurePort::authority(&stage.client).await.unwrap(), old);
    stage.create([PodManifest::new("a").build()]).await.unwrap();
    stage.pod_bound("a").await.unwrap();
    let listed = stage.cluster.kubectl(&["get", "fj", "-A"]).await.unwrap();
    assert!(listed.contains("pod.a"), "{listed}");
    let direct = port.direct(&stage.client, None).await.unwrap();
    assert_eq!(direct.get(format!("{}/readyz", port.url())).send().await.unwrap().status(), 200);
}
