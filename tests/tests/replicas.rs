//! Two inspectors guard each other: the leader is killed, stopped, cut off, and nothing is lost or done twice.
//!
//! In the short form each trial is made a few times. For more, set the number of each: `FLUXION_KILLS=100
//! FLUXION_STOPS=20 FLUXION_RESTARTS=10 cargo test -p fluxion-tests --test replicas -- --nocapture`.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use fluxion_api::job::Reservation;
use fluxion_api::{FluxionJob, JobState};
use fluxion_tests::apply::Applier;
use fluxion_tests::inspector::Inspector;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::{self, NodeSpec};
use fluxion_tests::random::number;
use fluxion_tests::trial::{Load, Prober, Replicas, Witness};
use fluxion_tests::{Cluster, Options, wait};
use http::Request;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use serde_json::Value;

/// How long a gang may be bound in part, and the time in which another leader is found.
const CONFIG: &str = "bindDeadline: 60s\n";
const BIND_DEADLINE: Duration = Duration::from_mins(1);
const TAKEOVER: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_mins(3);
const NODES: usize = 8;
const JOBS: &str = "/apis/fluxion.flux-framework.org/v1alpha1/fluxionjobs";

/// Durations of one kind of trial.
#[derive(Default)]
struct Figures(Vec<Duration>);

impl Figures {
    fn text(&self) -> String {
        let mut sorted = self.0.clone();
        sorted.sort();
        let Some(longest) = sorted.last() else { return "none".to_owned() };
        let median = sorted[sorted.len() / 2];
        format!(
            "{} times, median {:.1} s, longest {:.1} s",
            sorted.len(),
            median.as_secs_f64(),
            longest.as_secs_f64()
        )
    }
}

struct Trial {
    cluster: Cluster,
    replicas: Replicas,
    witness: Witness,
    prober: Prober,
    load: Load,
}

impl Trial {
    async fn start() -> Self {
        let cluster = Cluster::start(Options::default()).await.unwrap();
        let client = cluster.client().await.unwrap();
        let specs: Vec<NodeSpec> = (0..NODES).map(|index| NodeSpec::new(format!("n{index}"))).collect();
        nodes::create(&client, &specs).await.unwrap();
        let applier = Applier::new(client.clone());
        let replicas = Replicas::start(&cluster, &applier, CONFIG).await.unwrap();
        let witness = Witness::start(client.clone(), 4000);
        let prober = Prober::start(client.clone());
        let load = Load::start(applier, Duration::from_millis(600));
        Self { cluster, replicas, witness, prober, load }
    }

    /// Waits until gangs become whole again, which takes some time after the API server was away.
    async fn works(&self) -> Result<()> {
        self.witness.works(2, PATIENCE).await
    }

    /// Fails when something was seen that must not be.
    async fn holds(&mut self, what: &str) {
        let (seen, probed) = (self.witness.seen(), self.prober.probed());
        assert_eq!(seen.wrong, Vec::<String>::new(), "{what}");
        assert_eq!(probed.wrong, Vec::<String>::new(), "{what}");
        assert!(seen.longest_partial < BIND_DEADLINE + TAKEOVER, "{what}: {seen:?}");
        let (leader, _) = self.replicas.some_leader(PATIENCE).await.unwrap();
        wait::until("the audit is clean", Duration::from_secs(30), || async {
            let findings = self.replicas.all[leader].client()?.audit().await?.findings;
            if findings.is_empty() { Ok(()) } else { bail!("{what}: {findings:?}") }
        })
        .await
        .unwrap();
        for inspector in &mut self.replicas.all {
            inspector.healthy().unwrap();
        }
    }

    /// Waits for a gang that is being bound, for a moment.
    async fn between_bindings(&self) {
        let until = Instant::now() + Duration::from_secs(2);
        while self.witness.seen().partial == 0 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// kill -9 of the leader under load.
    async fn kill(&mut self, figures: &mut Figures) {
        let (leader, _) = self.replicas.some_leader(PATIENCE).await.unwrap();
        self.between_bindings().await;
        self.replicas.all[leader].kill();
        figures.0.push(self.replicas.leads(1 - leader, TAKEOVER).await.unwrap());
        self.replicas.revive(leader, &self.cluster).await.unwrap();
        self.works().await.unwrap();
    }

    /// The leader is stopped until another leads, and then goes on: it must not write any more.
    async fn stop(&mut self, figures: &mut Figures) {
        let (leader, _) = self.replicas.some_leader(PATIENCE).await.unwrap();
        self.between_bindings().await;
        self.replicas.all[leader].freeze(true).unwrap();
        figures.0.push(self.replicas.leads(1 - leader, TAKEOVER).await.unwrap());
        self.works().await.unwrap();
        self.replicas.all[leader].freeze(false).unwrap();
        wait::until("it knows that it does not lead", Duration::from_secs(10), || async {
            let standing = self.replicas.all[leader].standing().await?;
            ensure!(standing.role == fluxion_api::Role::Follower, "{standing:?}");
            Ok(())
        })
        .await
        .unwrap();
        self.works().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_inspectors_guard_each_other() {
    let began = Instant::now();
    let mut trial = Trial::start().await;
    trial.works().await.unwrap();
    println!("started after {:.0?}", began.elapsed());

    let (mut kills, mut answers) = (Figures::default(), Figures::default());
    for round in 0..number("FLUXION_KILLS", 6) {
        trial.prober.since_now();
        trial.kill(&mut kills).await;
        answers.0.push(trial.prober.probed().longest_gap);
        trial.holds(&format!("kill {round}")).await;
    }
    println!("killed: taken over {}; no answer for {}", kills.text(), answers.text());

    let (mut stops, mut answers) = (Figures::default(), Figures::default());
    for round in 0..number("FLUXION_STOPS", 1) {
        trial.prober.since_now();
        trial.stop(&mut stops).await;
        answers.0.push(trial.prober.probed().longest_gap);
        trial.holds(&format!("stop {round}")).await;
    }
    println!("stopped: taken over {}; no answer for {}", stops.text(), answers.text());

    let mut restarts = Figures::default();
    for round in 0..number("FLUXION_RESTARTS", 1) {
        let began = Instant::now();
        trial.cluster.restart_api_server(Duration::from_secs(5)).await.unwrap();
        trial.works().await.unwrap();
        restarts.0.push(began.elapsed());
        trial.holds(&format!("restart {round}")).await;
    }
    println!("API server killed and away for 5 s: gangs are bound again {}", restarts.text());

    let frozen = Instant::now();
    trial.cluster.freeze_etcd(true).unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    trial.cluster.freeze_etcd(false).unwrap();
    let thawed = Instant::now();
    trial.works().await.unwrap();
    println!(
        "etcd stopped for {:.0?}: gangs are bound again after {:.1?}",
        thawed - frozen,
        thawed.elapsed()
    );
    trial.holds("etcd stopped").await;

    let (seen, probed) = (trial.witness.seen(), trial.prober.probed());
    println!(
        "{} gangs created ({} failed), {} whole, {} Pods bound, longest in part {:.1?}; {} answers, {} failures \
         (last: {}), {} connections; {:.0?} in all",
        trial.load.created(),
        trial.load.failed(),
        seen.whole,
        seen.bound,
        seen.longest_partial,
        probed.answers,
        probed.failures,
        probed.last_failure,
        trial.replicas.service.connections(),
        began.elapsed()
    );
    assert!(probed.answers > probed.failures, "{probed:?}");
    orderly_shutdown(&mut trial).await;
}

/// SIGTERM under load: the other one leads at once, a watch through kube-apiserver ends with the reason, and requests are
/// answered all the time.
async fn orderly_shutdown(trial: &mut Trial) {
    let (leader, _) = trial.replicas.some_leader(PATIENCE).await.unwrap();
    let client = trial.cluster.client().await.unwrap();
    let request = Request::get(format!("{JOBS}?watch=true")).body(Vec::new()).unwrap();
    let watch = tokio::spawn(async move {
        use futures::{AsyncBufReadExt as _, StreamExt as _};
        let mut lines = client.request_stream(request).await.unwrap().lines();
        let mut last = String::new();
        while let Some(Ok(line)) = lines.next().await {
            last = line;
        }
        last
    });
    tokio::time::sleep(Duration::from_secs(2)).await;
    let began = Instant::now();
    trial.replicas.all[leader].stop_within(Duration::from_secs(25)).await.unwrap();
    let ended = began.elapsed();
    let taken = trial.replicas.leads(1 - leader, Duration::from_secs(5)).await.unwrap();
    println!("orderly shutdown within {ended:.1?}, taken over {taken:.1?} later");
    let last: Value = serde_json::from_str(&watch.await.unwrap()).unwrap();
    assert_eq!((&last["type"], &last["object"]["code"]), (&"ERROR".into(), &410.into()), "{last}");
    trial.replicas.revive(leader, &trial.cluster).await.unwrap();
    trial.works().await.unwrap();
    trial.holds("orderly shutdown").await;
}

/// `late` has been promised its start before `early`, which is older, was whole. Planned from nothing, `early` would start
/// first; the promise holds under another leader, who knows it from the status of the Pods.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promised_start_outlives_the_leader_that_promised_it() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = cluster.client().await.unwrap();
    nodes::create(&client, &[NodeSpec::new("n0")]).await.unwrap();
    let applier = Applier::new(client.clone());
    let config = "queues: [{name: default, policy: conservative}]\n";
    let mut replicas = Replicas::start(&cluster, &applier, config).await.unwrap();
    let (leader, _) = replicas.some_leader(PATIENCE).await.unwrap();
    let create = |pod: PodManifest| applier.create(pod.build());
    let early = |name: &str| PodManifest::new(name).request("cpu", "2").deadline(300).group("early", 2);
    let whole = |name: &str, seconds| PodManifest::new(name).request("cpu", "4").deadline(seconds);

    create(whole("runs", 3600)).await.unwrap();
    let first = &replicas.all[leader];
    wait::until("the node is taken", PATIENCE, || async {
        ensure!(first.job("default", "pod/runs").await?.status.members.bound == 1);
        Ok(())
    })
    .await
    .unwrap();
    create(early("early-0")).await.unwrap();
    // It is older than what is created in the next second.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    create(whole("late", 600)).await.unwrap();
    let late = planned(first, "pod/late").await;
    create(early("early-1")).await.unwrap();
    let early = planned(first, "group/early").await;
    assert_eq!(planned(first, "pod/late").await, late);
    assert_eq!(Some(&early.start), late.end.as_ref(), "it is planned behind the one that was promised first");

    let pods: Api<Pod> = Api::default_namespaced(client);
    wait::until("both reservations are stored", PATIENCE, || async {
        let mut stored = 0;
        for name in ["late", "early-0", "early-1"] {
            let status = pods.get(name).await?.status.unwrap_or_default();
            let is_stored = |kind: &str| kind == "fluxion.flux-framework.org/reserved";
            stored +=
                status.conditions.iter().flatten().filter(|condition| is_stored(&condition.type_)).count();
        }
        ensure!(stored == 2, "{stored} are");
        Ok(())
    })
    .await
    .unwrap();
    replicas.all[leader].kill();
    replicas.leads(1 - leader, PATIENCE).await.unwrap();
    let second = &replicas.all[1 - leader];
    assert_eq!(planned(second, "pod/late").await, late);
    assert_eq!(planned(second, "group/early").await, early);
}

/// Waits for the job's reservation.
async fn planned(inspector: &Inspector, job: &str) -> Reservation {
    let found: FluxionJob = wait::until("it has a reservation", PATIENCE, || async {
        let job = inspector.job("default", job).await?;
        ensure!(job.status.state == JobState::Reserved, "{:?}", job.status);
        Ok(job)
    })
    .await
    .unwrap();
    found.status.reservation.unwrap()
}
