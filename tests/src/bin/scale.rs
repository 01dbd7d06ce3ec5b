//! Measures the inspector at scale on a real control plane, everything on this machine: memory, bindings a second beside
//! what kube-apiserver takes at most and beside kube-scheduler, passes with many waiting jobs, answers, watches, readers.

use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use fluxion_api::Role;
use fluxion_tests::apply::Applier;
use fluxion_tests::cluster::Access;
use fluxion_tests::inspector::{self, Inspector, Settings};
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::{self, NodeSpec};
use fluxion_tests::registration::SecurePort;
use fluxion_tests::scale::ask::{Asker, Watchers};
use fluxion_tests::scale::readers::{Passes, Readers};
use fluxion_tests::scale::{Spread, bindings, pods};
use fluxion_tests::tools::Tool;
use fluxion_tests::{Cluster, Options, wait};
use kube::Client;
use serde_json::json;

/// Writes a line at once: a run takes long.
macro_rules! say {
    ($($text:tt)*) => {
        let _ = writeln!(std::io::stdout(), $($text)*);
    };
}

/// Measures the inspector at scale on a real control plane.
#[derive(Parser)]
struct Arguments {
    /// Nodes, with CPUs for their share of the Pods.
    #[arg(long, default_value_t = 200)]
    nodes: usize,
    /// Pods of 1 CPU.
    #[arg(long, default_value_t = 2000)]
    pods: usize,
    /// Members of each gang.
    #[arg(long, default_value_t = 8)]
    gang: usize,
    /// How often bindings are measured, in turns.
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Pods that kube-scheduler binds; all if not given. 0 leaves it out.
    #[arg(long)]
    theirs: Option<usize>,
    /// Measure bindings without the fence too, before those with it.
    #[arg(long)]
    unfenced: bool,
    /// Jobs that wait.
    #[arg(long, default_value_t = 10_000)]
    waiting: usize,
    /// Watches that wait for an event.
    #[arg(long, default_value_t = 1000)]
    watches: usize,
    /// Readers that list and watch.
    #[arg(long, default_value_t = 100)]
    readers: usize,
    /// Seconds between two lists of a reader.
    #[arg(long, default_value_t = 10.0)]
    every: f64,
    /// Leave out what needs no waiting jobs, and the readers.
    #[arg(long)]
    short: bool,
}

impl Arguments {
    /// All nodes together have just enough for all Pods.
    fn cpus(&self) -> usize {
        self.pods.div_ceil(self.nodes)
    }
}

/// Namespaces of the waiting jobs.
const NAMESPACES: usize = 50;
/// Different requests among them.
const REQUESTS: usize = 500;
/// How long an inspector rests before its memory is looked at.
const REST: Duration = Duration::from_secs(30);
/// Repetitions of a question.
const TIMES: usize = 21;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let cluster = Cluster::start(Options::default().with_seldom_renewed_nodes()).await?;
    let client = cluster.client().await?;
    let cpus = arguments.cpus().to_string();
    let specs: Vec<NodeSpec> = (0..arguments.nodes)
        .map(|index| NodeSpec::new(format!("node-{index}")).with("cpu", &cpus).with("memory", "1Ti"))
        .collect();
    nodes::create(&client, &specs).await?;
    say!("{} nodes with {cpus} CPUs, {} Pods", arguments.nodes, arguments.pods);
    if !arguments.short {
        ceiling(&client, &arguments).await.context("the ceiling")?;
    }
    for round in 1..=arguments.rounds {
        if !arguments.short && arguments.theirs != Some(0) {
            kube_scheduler(&cluster, &client, &arguments).await.context("kube-scheduler's turn")?;
        }
        let turns: &[bool] = if arguments.unfenced { &[false, true] } else { &[true] };
        for &fenced in turns {
            let access = fence(&cluster, fenced).await.context("the fence")?;
            let what = format!("round-{round}-{}", if fenced { "fenced" } else { "unfenced" });
            let mut inspector =
                bound(&cluster, &client, &arguments, access, &what).await.context("the inspector's turn")?;
            inspector.stop_within(Duration::from_secs(25)).await?;
            if !fenced || round < arguments.rounds {
                pods::remove_all(&client).await?;
            }
        }
    }
    let port = SecurePort::reserve()?;
    let access = inspector::rights(&cluster).await?;
    let inspector = started(&cluster, "synced", &port.settings(), access).await?;
    waiting(&client, &inspector, &arguments).await.context("waiting jobs")?;
    let asker = Asker::of(&inspector);
    answers(&asker, &inspector, arguments.waiting).await.context("answers")?;
    if !arguments.short {
        readers(&client, &inspector, &asker, &arguments).await.context("readers")?;
    }
    watches(&client, &inspector, &asker, &arguments).await.context("watches")?;
    ways(&cluster, &client, &inspector, &port).await.context("ways to ask")?;
    let usage = inspector.usage()?;
    say!("at the end: {} MB resident, peak {} MB", usage.resident, usage.peak);
    Ok(())
}

/// Raw requests, with several numbers of them in flight.
async fn ceiling(client: &Client, arguments: &Arguments) -> Result<()> {
    let count = arguments.pods.min(4000);
    let manifests = (0..count)
        .map(|index| PodManifest::new(&format!("raw-{index}")).spec("schedulerName", "none".into()));
    pods::create(client, manifests.map(|pod| pod.request("cpu", "1").build())).await?;
    let names = bindings::names(client).await?;
    let (mut best, tried) = ((0, 0.0), [4, 8, 16, 32, 64]);
    for (some, in_flight) in names.chunks(names.len().div_ceil(tried.len()).max(2)).zip(tried) {
        let rate = bindings::raw(client, in_flight, some, arguments.nodes).await?;
        say!("ceiling: {rate:.0} bindings/s with {in_flight} requests in flight");
        if rate > best.1 {
            best = (in_flight, rate);
        }
    }
    say!("ceiling: best {:.0} bindings/s, {} in flight", best.1, best.0);
    pods::remove_all(client).await
}

async fn kube_scheduler(cluster: &Cluster, client: &Client, arguments: &Arguments) -> Result<()> {
    let count = arguments.theirs.unwrap_or(arguments.pods).min(arguments.pods);
    let manifests = (0..count).map(|index| PodManifest::new(&format!("theirs-{index}")).foreign());
    pods::create(client, manifests.map(|pod| pod.request("cpu", "1").build())).await?;
    let rate = bindings::rate(client, count).await?;
    let mut command = Command::new(cluster.tools().path(Tool::Scheduler));
    command.arg(format!("--kubeconfig={}", cluster.kubeconfig().display())).args([
        "--leader-elect=false",
        "--kube-api-qps=5000",
        "--kube-api-burst=5000",
        "--secure-port=0",
    ]);
    let mut scheduler = cluster.run("kube-scheduler", command)?;
    let rate = rate.await??;
    scheduler.kill();
    say!("kube-scheduler: {rate:.0} single Pods/s of {count}");
    pods::remove_all(client).await
}

/// The inspector's permissions, with or without the fence. Once it was without, kube-apiserver does not watch Leases again.
async fn fence(cluster: &Cluster, fenced: bool) -> Result<Access> {
    let access = inspector::rights(cluster).await?;
    if !fenced {
        cluster.kubectl(&["delete", "validatingadmissionpolicybinding", "fluxion-inspector-term"]).await?;
    }
    // kube-apiserver looks at its policies once a second.
    tokio::time::sleep(Duration::from_secs(3)).await;
    Ok(access)
}

/// Starts an inspector, and tells how long that takes.
async fn started(cluster: &Cluster, name: &str, settings: &Settings, access: Access) -> Result<Inspector> {
    let began = Instant::now();
    let inspector = Inspector::start_as(cluster, name, settings, access).await?;
    let ready = began.elapsed();
    wait::until("it leads", Duration::from_mins(1), || async {
        let standing = inspector.standing().await?;
        if standing.role == Role::Leader { Ok(()) } else { bail!("{standing:?}") }
    })
    .await?;
    let usage = inspector.usage()?;
    say!(
        "{name}: ready after {:.1} s, leads after {:.1} s; {} MB resident, processor time {:.1} s",
        ready.as_secs_f64(),
        began.elapsed().as_secs_f64(),
        usage.resident,
        usage.processor.as_secs_f64()
    );
    Ok(inspector)
}

/// All Pods are there before it starts, and bound at the end.
async fn bound(
    cluster: &Cluster,
    client: &Client,
    arguments: &Arguments,
    access: Access,
    what: &str,
) -> Result<Inspector> {
    let manifests = (0..arguments.pods).map(|index| {
        let gang = format!("gang-{}", index / arguments.gang);
        let size = arguments.gang.min(arguments.pods - index / arguments.gang * arguments.gang);
        PodManifest::new(&format!("ours-{index}")).group(&gang, size).request("cpu", "1").build()
    });
    let began = Instant::now();
    pods::create(client, manifests).await?;
    say!("{} Pods created in {:.0} s", arguments.pods, began.elapsed().as_secs_f64());
    let rate = bindings::rate(client, arguments.pods).await?;
    let before = cluster.api_server_usage()?.processor;
    let inspector = started(cluster, what, &Settings::default(), access).await?;
    let rate = rate.await??;
    let usage = inspector.usage()?;
    let server = cluster.api_server_usage()?.processor.saturating_sub(before);
    say!(
        "{what}: {rate:.0} Pods/s in gangs of {}; peak {} MB, processor time {:.1} s, of kube-apiserver {:.2} s",
        arguments.gang,
        usage.peak,
        usage.processor.as_secs_f64(),
        server.as_secs_f64()
    );
    tokio::time::sleep(REST).await;
    say!("{what}: {} MB resident {} s later", inspector.usage()?.resident, REST.as_secs());
    Ok(inspector)
}

/// Jobs of one Pod that don't fit, with many different requests, in several namespaces.
async fn waiting(client: &Client, inspector: &Inspector, arguments: &Arguments) -> Result<()> {
    let names: Vec<String> = (0..NAMESPACES).map(namespace).collect();
    pods::namespaces(client, &names).await?;
    let manifests = (0..arguments.waiting).map(|index| waiting_pod(index, arguments.cpus()));
    pods::create(client, manifests).await?;
    wait::until("all jobs wait", Duration::from_mins(10), || async {
        let waiting = waits(inspector).await?;
        #[allow(clippy::cast_precision_loss, reason = "some ten thousand jobs")]
        if waiting >= arguments.waiting as f64 { Ok(()) } else { bail!("{waiting}") }
    })
    .await?;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let before = Passes::of(inspector).await?;
    trigger(client, arguments, "alone").await?;
    let (count, wall, engine) = Passes::of(inspector).await?.since(before);
    let usage = inspector.usage()?;
    say!(
        "{} jobs wait: {count:.0} passes of {wall:.1} ms, the engine's processor time {engine:.1} ms for each; \
         {} MB resident, peak {} MB",
        arguments.waiting,
        usage.resident,
        usage.peak
    );
    Ok(())
}

async fn waits(inspector: &Inspector) -> Result<f64> {
    let of = |state: &str| format!("fluxion_jobs{{queue=\"default\",state=\"{state}\"}}");
    Ok(inspector.metric(&of("Pending")).await? + inspector.metric(&of("Reserved")).await?)
}

fn namespace(index: usize) -> String {
    format!("team-{index}")
}

fn waiting_pod(index: usize, cpus: usize) -> serde_json::Value {
    let cpu = 1 + index % cpus.max(1);
    PodManifest::new(&format!("waits-{index}"))
        .namespace(&namespace(index % NAMESPACES))
        .request("cpu", &cpu.to_string())
        .request("memory", &format!("{}Mi", 1 + index % REQUESTS))
        .build()
}

/// Pods that come one by one, each in a second of its own, and so in a pass of its own.
async fn trigger(client: &Client, arguments: &Arguments, name: &str) -> Result<()> {
    for index in 0..20 {
        let pod = PodManifest::new(&format!("{name}-{index}")).namespace(&namespace(0));
        let pod = pod.request("cpu", &arguments.cpus().to_string()).request("memory", "600Mi");
        pods::create(client, std::iter::once(pod.build())).await?;
        tokio::time::sleep(Duration::from_millis(1050)).await;
    }
    Ok(())
}

async fn answers(asker: &Asker, inspector: &Inspector, waiting: usize) -> Result<()> {
    let mut questions = vec![
        ("all jobs", "fluxionjobs".to_owned()),
        ("a page of 500", "fluxionjobs?limit=500".to_owned()),
        ("the jobs of a namespace", format!("namespaces/{}/fluxionjobs", namespace(1))),
    ];
    if waiting > 0 {
        questions.push(("one job", format!("namespaces/{}/fluxionjobs/pod.waits-0", namespace(0))));
    }
    questions.extend([("all nodes", "fluxionnodes".to_owned()), ("the queues", "fluxionqueues".to_owned())]);
    for (what, path) in questions {
        answer(asker, inspector, what, &path).await?;
    }
    Ok(())
}

async fn answer(asker: &Asker, inspector: &Inspector, what: &str, path: &str) -> Result<()> {
    let before = inspector.usage()?.processor;
    let (spread, size) = asker.times(path, TIMES).await?;
    let processor =
        inspector.usage()?.processor.saturating_sub(before).as_secs_f64() * 1e3 / (TIMES + 1) as f64;
    say!("{what} ({} KiB): {spread}; processor time {processor:.1} ms", size / 1024);
    Ok(())
}

/// The largest answer, with TLS from the inspector itself and from kube-apiserver.
async fn ways(cluster: &Cluster, client: &Client, inspector: &Inspector, port: &SecurePort) -> Result<()> {
    let applier = Applier::new(client.clone());
    port.register(&applier).await?;
    applier
        .apply(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": "asker" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "kind": "ServiceAccount", "name": "default", "namespace": "default" }],
        }))
        .await?;
    let token = cluster.service_account("default", "default").await?.token.context("a token")?;
    let authority = std::fs::read(cluster.dir().join("pki/ca.crt"))?;
    let authority = reqwest::Certificate::from_pem_bundle(&authority)?;
    let through = reqwest::Client::builder().tls_certs_only(authority).no_proxy().build()?;
    for (way, asker) in [
        ("with TLS", Asker::at(port.direct(client, None).await?, &port.url(), &token)),
        ("through kube-apiserver", Asker::at(through, cluster.server(), &token)),
    ] {
        answer(&asker, inspector, &format!("all jobs, {way}"), "fluxionjobs").await?;
    }
    Ok(())
}

async fn readers(client: &Client, inspector: &Inspector, asker: &Asker, arguments: &Arguments) -> Result<()> {
    for round in 0..2 {
        let before = Passes::of(inspector).await?;
        trigger(client, arguments, &format!("quiet-{round}")).await?;
        let (count, wall, engine) = Passes::of(inspector).await?.since(before);
        say!("without readers: {count:.0} passes of {wall:.1} ms, engine {engine:.1} ms");
        let every = Duration::from_secs_f64(arguments.every);
        let reading = Readers::start(asker, arguments.readers, |index| namespace(index % NAMESPACES), every);
        tokio::time::sleep(Duration::from_secs(15)).await;
        let (before, lists) = (Passes::of(inspector).await?, reading.lists());
        trigger(client, arguments, &format!("read-{round}")).await?;
        let (count, wall, engine) = Passes::of(inspector).await?.since(before);
        say!(
            "with {} readers ({} lists): {count:.0} passes of {wall:.1} ms, engine {engine:.1} ms",
            arguments.readers,
            reading.lists() - lists
        );
        drop(reading);
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    Ok(())
}

async fn watches(client: &Client, inspector: &Inspector, asker: &Asker, arguments: &Arguments) -> Result<()> {
    for count in [1, arguments.watches] {
        let mut watchers = Watchers::open(asker, count).await?;
        tokio::time::sleep(Duration::from_secs(5)).await;
        let mut took = Vec::new();
        for index in 0..10 {
            let name = format!("seen-{count}-{index}");
            let pod = PodManifest::new(&name)
                .namespace(&namespace(2))
                .request("cpu", "1")
                .request("memory", "700Mi");
            let change = pods::create(client, std::iter::once(pod.build()));
            took.extend(watchers.time(&format!("\"pod.{name}\""), change).await?);
            tokio::time::sleep(Duration::from_millis(700)).await;
        }
        say!("an event reaches {count} watches: {}; {} MB", Spread::of(took), inspector.usage()?.resident);
    }
    Ok(())
}
