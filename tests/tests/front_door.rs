//! Who means harm: connections that are held, bodies without end, watches that nobody reads. Others are served, gangs are
//! bound, and memory stays bounded.
//!
//! For more connections: `FLUXION_CONNECTIONS=10000 cargo test -p fluxion-tests --test front_door -- --nocapture`.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::random::number;
use fluxion_tests::registration::SecurePort;
use fluxion_tests::slow::{Manner, SlowClients};
use fluxion_tests::stage::Stage;
use fluxion_tests::{Options, wait};
use futures::StreamExt as _;
use reqwest::StatusCode;
use serde_json::{Value, json};

const BASE: &str = "/apis/fluxion.flux-framework.org/v1alpha1";
/// However busy the machine is.
const ANSWERED: Duration = Duration::from_secs(10);

/// A cluster whose inspector has a secure port, and the ways to ask it.
struct Asked {
    stage: Stage,
    port: SecurePort,
    /// Of somebody who may do everything, and of somebody known who may nothing.
    tokens: [String; 2],
}

impl Asked {
    async fn start() -> Self {
        let port = SecurePort::reserve().unwrap();
        let stage =
            Stage::start(Options::default(), &port.settings(), &[NodeSpec::new("n1").with("cpu", "64")])
                .await
                .unwrap();
        port.register(&stage.applier).await.unwrap();
        let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "root" } });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": { "name": "root" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "kind": "ServiceAccount", "name": "root", "namespace": "default" }],
        });
        stage.create([account, binding]).await.unwrap();
        let mut tokens = Vec::new();
        for name in ["root", "default"] {
            tokens.push(stage.cluster.service_account("default", name).await.unwrap().token.unwrap());
        }
        Self { stage, port, tokens: tokens.try_into().unwrap() }
    }

    /// Each of the ways by which the inspector is asked: on loopback, directly, through kube-apiserver. Each client is new,
    /// and so are its connections.
    async fn ways(&self) -> Result<Vec<(&'static str, reqwest::Client, String, String)>> {
        let authority = std::fs::read(self.stage.cluster.dir().join("pki/ca.crt"))?;
        let authority = reqwest::Certificate::from_pem_bundle(&authority)?;
        let through = reqwest::Client::builder().tls_certs_only(authority).no_proxy().build()?;
        let direct = self.port.direct(&self.stage.client, None).await?;
        let (root, inspector) = (self.tokens[0].clone(), &self.stage.inspector);
        Ok(vec![
            ("loopback", reqwest::Client::new(), inspector.url().to_owned(), inspector.token().to_owned()),
            ("direct", direct, self.port.url(), root.clone()),
            ("through kube-apiserver", through, self.stage.cluster.server().to_owned(), root),
        ])
    }

    /// The longest time that any of the ways takes to answer.
    async fn answers(&self) -> Result<Duration> {
        let mut longest = Duration::ZERO;
        for (way, http, url, token) in self.ways().await? {
            let began = Instant::now();
            let asked = http.get(format!("{url}{BASE}/fluxionjobs?limit=1")).bearer_auth(token).send();
            let answer = tokio::time::timeout(ANSWERED, asked).await;
            let answer = answer.with_context(|| format!("{way}: no answer"))?;
            let answer = answer.with_context(|| way.to_owned())?;
            ensure!(answer.status().is_success(), "{way}: {}", answer.status());
            longest = longest.max(began.elapsed());
        }
        Ok(longest)
    }

    /// A gang comes, is bound, and goes.
    async fn schedules(&self, gang: &str) -> Result<Duration> {
        let began = Instant::now();
        let pod = PodManifest::new("member").request("cpu", "1").group(gang, 4);
        self.stage.create((0..4).map(|index| pod.named(&format!("{gang}-{index}")).build())).await?;
        let selector = format!("fluxion.flux-framework.org/group={gang}");
        self.stage.bound(&selector, 4).await?;
        let took = began.elapsed();
        for index in 0..4 {
            self.stage.delete_pod(&format!("{gang}-{index}")).await?;
        }
        Ok(took)
    }
}

/// The head of a request for which nobody has a reason to wait.
fn head(method: &str, path: &str, more: &str) -> String {
    format!("{method} {BASE}/{path} HTTP/1.1\r\nhost: localhost\r\n{more}")
}

/// Connections that are silent, whose handshake does not begin, whose headers and bodies come byte by byte: in all as many as
/// are asked for, each kind from this machine, where everybody else asks from too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_connections_hold_up_nobody() {
    let count = number("FLUXION_CONNECTIONS", 2_000);
    let asked = Asked::start().await;
    asked.schedules("before").await.unwrap();
    let usual = asked.answers().await.unwrap();
    let before = asked.stage.inspector.usage().unwrap();
    let tls = Some(Arc::new(SecurePort::tls(&asked.stage.client).await.unwrap()));
    let own: SocketAddr = asked.stage.inspector.url().strip_prefix("http://").unwrap().parse().unwrap();
    let secure = asked.port.address();
    let known = format!("authorization: Bearer {}\r\n", asked.tokens[1]);
    let body = |more: &str| {
        let length = "content-type: application/json\r\ncontent-length: 60000\r\n";
        Some(head("POST", "namespaces/default/fluxionjobs/pod.a/cancel", &format!("{more}{length}\r\n{{")))
    };
    let headers = |more: &str| Some(head("GET", "fluxionjobs", &format!("{more}x-slow: ")));
    let manner = |tls: &Option<_>, says, drips| Manner { tls: tls.clone(), says, drips };
    let clients: Vec<SlowClients> = [
        // (where, how, percent of all, milliseconds between two)
        (secure, manner(&None, None, ""), 30, 5),
        (own, manner(&None, headers(""), "x"), 30, 5),
        (own, manner(&None, body(""), " "), 20, 10),
        (secure, manner(&tls, headers(""), "x"), 8, 25),
        (secure, manner(&tls, headers(&known), "x"), 6, 25),
        (secure, manner(&tls, body(&known), " "), 6, 25),
    ]
    .into_iter()
    .map(|(address, manner, percent, pause)| {
        SlowClients::start(address, manner, count * percent / 100, Duration::from_millis(pause))
    })
    .collect();
    let (began, mut longest, mut bound, mut rounds) = (Instant::now(), Duration::ZERO, Duration::ZERO, 0);
    let opened = || clients.iter().map(SlowClients::opened).sum::<usize>();
    while opened() < count * 95 / 100 {
        longest = longest.max(asked.answers().await.unwrap());
        bound = bound.max(asked.schedules(&format!("gang-{rounds}")).await.unwrap());
        rounds += 1;
        assert!(began.elapsed() < Duration::from_mins(5), "only {} connections were opened", opened());
    }
    longest = longest.max(asked.answers().await.unwrap());
    let after = asked.stage.inspector.usage().unwrap();
    let ended: usize = clients.iter().map(SlowClients::ended).sum();
    println!(
        "{} connections in {:.0?}, {ended} closed; answers within {longest:.2?} (before: {usual:.2?}), gangs within \
         {bound:.2?}, {rounds} rounds; memory {} MB, before {} MB",
        opened(),
        began.elapsed(),
        after.peak,
        before.resident
    );
    assert!(rounds > 3 && ended > count / 4, "{rounds} rounds, {ended} closed");
    assert!(after.peak < before.resident + 200, "{before:?} {after:?}");
    drop(clients);
    asked.schedules("after").await.unwrap();
    asked.answers().await.unwrap();
}

/// A gigabyte, sent as long as somebody takes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_without_end_are_refused() {
    const ALL: u64 = 1 << 30;
    let asked = Asked::start().await;
    asked.answers().await.unwrap();
    let before = asked.stage.inspector.usage().unwrap();
    for (way, http, url, token) in asked.ways().await.unwrap() {
        for (known, path) in [
            (true, "namespaces/default/fluxionjobs/pod.a/cancel"),
            (true, "namespaces/default/fluxionjobs"),
            (true, "fluxionwhatifs"),
            (false, "namespaces/default/fluxionjobs/pod.a/cancel"),
        ] {
            let sent = Arc::new(std::sync::atomic::AtomicU64::new(0));
            let counted = Arc::clone(&sent);
            let chunks = futures::stream::iter(0..ALL >> 16).map(move |_| {
                counted.fetch_add(1 << 16, std::sync::atomic::Ordering::Relaxed);
                Ok::<_, std::io::Error>(vec![b' '; 1 << 16])
            });
            let request = http
                .post(format!("{url}{BASE}/{path}"))
                .header("content-type", "application/json")
                .bearer_auth(if known { &token } else { "nonsense" })
                .body(reqwest::Body::wrap_stream(chunks));
            let answer = tokio::time::timeout(Duration::from_secs(30), request.send()).await.unwrap();
            // Who goes on sending may find the connection closed before there was an answer.
            if let Ok(answer) = answer {
                let refused = [
                    StatusCode::PAYLOAD_TOO_LARGE,
                    StatusCode::METHOD_NOT_ALLOWED,
                    StatusCode::NOT_FOUND,
                    StatusCode::UNAUTHORIZED,
                    StatusCode::BAD_GATEWAY,
                    StatusCode::SERVICE_UNAVAILABLE,
                ];
                assert!(refused.contains(&answer.status()), "{way}, {path}: {}", answer.status());
            }
            let sent = sent.load(std::sync::atomic::Ordering::Relaxed);
            assert!(sent < 64 << 20, "{way}, {path}: {sent} bytes were taken");
        }
        asked.answers().await.unwrap();
    }
    let after = asked.stage.inspector.usage().unwrap();
    assert!(after.peak < before.peak + 48, "{before:?} {after:?}");
}

/// Watches of thousands of jobs that nobody reads: they are dropped, and cost little until then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_that_nobody_reads_are_dropped() {
    const JOBS: usize = 2_000;
    const WATCHES: usize = 300;
    let asked = Asked::start().await;
    let pod = PodManifest::new("waits").request("cpu", "65");
    let pods: Vec<Value> = (0..JOBS).map(|index| pod.named(&format!("waits-{index:04}")).build()).collect();
    futures::stream::iter(pods)
        .map(|pod| asked.stage.applier.create(pod))
        .buffer_unordered(16)
        .for_each(|created| async { drop(created.unwrap()) })
        .await;
    wait::until("all jobs are seen", Duration::from_mins(1), || async {
        let list = asked.stage.inspector.client()?.list_head::<fluxion_api::FluxionJob>("default").await?;
        let seen =
            asked.stage.inspector.metric("fluxion_jobs{queue=\"default\",state=\"Unsatisfiable\"}").await?;
        if seen >= JOBS as f64 { Ok(()) } else { bail!("{seen} of {JOBS}: {list:?}") }
    })
    .await
    .unwrap();
    asked.answers().await.unwrap();
    let before = asked.stage.inspector.usage().unwrap();
    let own: SocketAddr = asked.stage.inspector.url().strip_prefix("http://").unwrap().parse().unwrap();
    let token = format!("authorization: Bearer {}\r\n\r\n", asked.stage.inspector.token());
    let manner = Manner { says: Some(head("GET", "fluxionjobs?watch=true", &token)), ..Manner::default() };
    let began = Instant::now();
    let clients = SlowClients::start(own, manner, WATCHES, Duration::from_millis(2));
    let stalled = "fluxion_connections_dropped_total{reason=\"stalled\"}";
    let (mut peak, mut longest, mut rounds) = (0, Duration::ZERO, 0);
    loop {
        longest = longest.max(asked.answers().await.unwrap());
        asked.schedules(&format!("gang-{rounds}")).await.unwrap();
        rounds += 1;
        let usage = asked.stage.inspector.usage().unwrap();
        peak = peak.max(usage.resident);
        let dropped = asked.stage.inspector.metric(stalled).await.unwrap();
        if dropped >= WATCHES as f64 {
            break;
        }
        assert!(began.elapsed() < Duration::from_mins(3), "{dropped} of {WATCHES} are dropped");
    }
    println!(
        "{} watches dropped after {:.0?}; answers within {longest:.2?}; memory at most {peak} MB, before {} MB",
        clients.opened(),
        began.elapsed(),
        before.resident
    );
    assert!(peak < before.resident + 120, "{peak} MB, before {before:?}");
}
