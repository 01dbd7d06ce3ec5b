//! Certificates that change while somebody watches, and an authority that has expired while nobody ran.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::collections::BTreeSet;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use fluxion_tests::apply::Applier;
use fluxion_tests::clock::Clock;
use fluxion_tests::inspector::Inspector;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::programs::{self, Program};
use fluxion_tests::registration::SecurePort;
use fluxion_tests::stage::{SOON, Stage};
use fluxion_tests::tools::Tool;
use fluxion_tests::trial::{Prober, Replicas};
use fluxion_tests::{Cluster, Options, wait};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::Api;
use kube::api::DeleteParams;
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

/// How often each of the two has issued a serving certificate.
fn issued(replicas: &Replicas) -> [usize; 2] {
    let count =
        |inspector: &Inspector| inspector.log().unwrap().matches("issued a serving certificate").count();
    replicas.all.each_ref().map(count)
}

/// Somebody deletes both Secrets while two inspectors run: one of the two creates them again, both take over what it made,
/// and requests are answered all the time, also those that one has to forward to the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_secrets_are_created_again_while_requests_are_answered() {
    const SECRETS: [&str; 2] = ["fluxion-inspector-tls", "fluxion-inspector-replicas"];
    // Each inspector looks once a minute, and again after 5 s before it shows what was issued by a new authority.
    const LIMIT: Duration = Duration::from_secs(75);
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = cluster.client().await.unwrap();
    let replicas = Replicas::start(&cluster, &Applier::new(client.clone()), "").await.unwrap();
    let (leader, _) = replicas.some_leader(SOON).await.unwrap();
    let follower = replicas.port(1 - leader);
    let prober = Prober::start(client.clone());
    wait::until("both have a certificate", SOON, || async {
        ensure!(issued(&replicas) == [1, 1]);
        Ok(())
    })
    .await
    .unwrap();
    let viewer = ["create", "clusterrolebinding", "viewer", "--clusterrole=fluxion-cluster-viewer"];
    cluster.kubectl(&[&viewer[..], &["--serviceaccount=default:default"]].concat()).await.unwrap();
    let token = cluster.service_account("default", "default").await.unwrap().token.unwrap();
    let forwarded = async || {
        let http = follower.direct(&client, None).await?;
        let path = format!("{}/apis/fluxion.flux-framework.org/v1alpha1/fluxionjobs", follower.url());
        let answer = http.get(path).bearer_auth(&token).send().await?;
        ensure!(answer.status() == 200, "{answer:?}");
        anyhow::Ok(())
    };
    wait::until("the other one forwards requests", SOON, &forwarded).await.unwrap();

    let secrets: Api<Secret> = Api::namespaced(client.clone(), "fluxion-system");
    let old = SecurePort::authority(&client).await.unwrap();
    prober.since_now();
    let began = Instant::now();
    for name in SECRETS {
        secrets.delete(name, &DeleteParams::default()).await.unwrap();
    }
    wait::until("the Secrets are there", LIMIT, || async {
        for name in SECRETS {
            let data = secrets.get(name).await?.data.unwrap_or_default();
            ensure!(data.len() == 2, "{name} has {:?}", data.keys());
        }
        Ok(())
    })
    .await
    .unwrap();
    let created = began.elapsed();
    let new = SecurePort::authority(&client).await.unwrap();
    assert!(new != old && new.ends_with(&old), "what the old one has issued is still trusted");
    wait::until("the APIService trusts the new authority", SOON, || async {
        let api: Api<APIService> = Api::all(client.clone());
        let spec = api.get("v1alpha1.fluxion.flux-framework.org").await?.spec.unwrap_or_default();
        ensure!(spec.ca_bundle.unwrap_or_default().0 == new);
        Ok(())
    })
    .await
    .unwrap();
    forwarded().await.unwrap();
    let trusted = began.elapsed();
    wait::until("both show a certificate of the new authority", LIMIT, || async {
        forwarded().await?;
        let issued = issued(&replicas);
        ensure!(issued == [2, 2], "{issued:?}");
        Ok(())
    })
    .await
    .unwrap();
    forwarded().await.unwrap();
    let probed = prober.probed();
    println!(
        "created again after {created:.1?}, trusted after {trusted:.1?}, shown by both after {:.1?}; {} answers, {} failures \
         ({}), longest without an answer {:.1?}",
        began.elapsed(),
        probed.answers,
        probed.failures,
        probed.last_failure,
        probed.longest_gap
    );
    assert_eq!((probed.failures, probed.wrong), (0, Vec::new()));
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
