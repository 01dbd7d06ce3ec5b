//! The leader's connection to kube-apiserver is blocked, its clock is wrong: another one leads in time, nothing is lost or done
//! twice, no plan is lost, and what arrives late is refused.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use fluxion_api::{FluxionJob, JobState, Role};
use fluxion_tests::apply::Applier;
use fluxion_tests::clock::Clock;
use fluxion_tests::inspector::{self, Inspector, Settings};
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::{self, NodeSpec};
use fluxion_tests::stage::Stage;
use fluxion_tests::trial::{Load, Replicas, Witness};
use fluxion_tests::valve::Valve;
use fluxion_tests::{Cluster, Options, wait};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

const CONFIG: &str = "bindDeadline: 60s\n";
const TAKEOVER: Duration = Duration::from_secs(20);
const PATIENCE: Duration = Duration::from_mins(2);
const HOUR: i64 = 3600;
/// The inspector's user.
const USER: &str = "system:serviceaccount:fluxion-system:fluxion-inspector";
/// The number of the leader's term, on the Lease.
const TERM: &str = "fluxion.flux-framework.org/term";

/// A job that runs on a node of its own, and one that waits for its end.
async fn planned(applier: &Applier) {
    let only = |name: &str| {
        let pod = PodManifest::new(name).request("cpu", "4");
        pod.spec("nodeSelector", json!({ "only": "planned" })).deadline(7200).build()
    };
    applier.create(only("first")).await.unwrap();
    applier.create(only("second")).await.unwrap();
}

async fn plan(inspector: &Inspector) -> FluxionJob {
    inspector::job_becomes(inspector, "default", "pod/second", "reserved", |job| {
        job.status.state == JobState::Reserved && job.status.planned_start.is_some()
    })
    .await
    .unwrap()
}

async fn clean(inspector: &Inspector) {
    wait::until("the audit is clean", Duration::from_secs(30), || async {
        let findings = inspector.client()?.audit().await?.findings;
        if findings.is_empty() { Ok(()) } else { bail!("{findings:?}") }
    })
    .await
    .unwrap();
}

fn some_nodes() -> Vec<NodeSpec> {
    let mut specs: Vec<NodeSpec> = (0..8).map(|index| NodeSpec::new(format!("n{index}"))).collect();
    specs.push(NodeSpec::new("planned").label("only", "planned"));
    specs
}

/// Two inspectors, each with a valve between it and kube-apiserver.
async fn behind_valves(cluster: &Cluster, applier: &Applier) -> ([Valve; 2], Replicas) {
    let access = inspector::rights(cluster).await.unwrap();
    let valves = [Valve::before(cluster).await.unwrap(), Valve::before(cluster).await.unwrap()];
    let ways =
        [0, 1].map(|index: usize| valves[index].access(cluster, &access, &format!("way-{index}")).unwrap());
    let replicas = Replicas::start_as(cluster, applier, CONFIG, ways, Default::default()).await.unwrap();
    (valves, replicas)
}

/// Nothing passes between the leader and kube-apiserver, though no connection is closed. What it had sent before arrives once
/// the connection is open again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_writes_no_more_and_another_one_leads() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = cluster.client().await.unwrap();
    nodes::create(&client, &some_nodes()).await.unwrap();
    let applier = Applier::new(client.clone());
    let (valves, mut replicas) = behind_valves(&cluster, &applier).await;
    let witness = Witness::start(client.clone(), 4000);
    planned(&applier).await;
    let _load = Load::start(applier, Duration::from_millis(600));
    witness.works(3, PATIENCE).await.unwrap();
    for round in 0..2 {
        let (leader, _) = replicas.some_leader(PATIENCE).await.unwrap();
        let before = plan(&replicas.all[leader]).await.status;
        // In the midst of a gang, if there is one.
        let until = Instant::now() + Duration::from_secs(2);
        while witness.seen().partial == 0 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let blocked = Instant::now();
        valves[leader].block(true);
        replicas.leads(1 - leader, TAKEOVER).await.unwrap();
        let taken = blocked.elapsed();
        assert!(taken < TAKEOVER, "{taken:?}");
        let standing = replicas.all[leader].standing().await.unwrap();
        assert_eq!(standing.role, Role::Follower, "{standing:?}");
        witness.works(3, PATIENCE).await.unwrap();
        let after = plan(&replicas.all[1 - leader]).await.status;
        assert_eq!(before.planned_start, after.planned_start, "the plan of the job is kept");
        let nodes = [&before, &after].map(|status| status.reservation.as_ref().map(|one| one.nodes.clone()));
        assert_eq!(nodes[0], nodes[1]);
        valves[leader].block(false);
        wait::until("it follows", PATIENCE, || async {
            let standing = replicas.all[leader].standing().await?;
            let cut_off = standing.warning.as_deref().is_some_and(|text| text.contains("unreachable"));
            ensure!(standing.role == Role::Follower && !cut_off, "{standing:?}");
            let (ready, text) = replicas.all[leader].answers("/readyz").await?;
            ensure!(ready, "{text}");
            Ok(())
        })
        .await
        .unwrap();
        witness.works(3, PATIENCE).await.unwrap();
        let seen = witness.seen();
        println!("round {round}: taken over after {taken:.1?}; {} Pods bound, {seen:?}", seen.bound);
        assert_eq!(seen.wrong, Vec::<String>::new());
        clean(&replicas.all[1 - leader]).await;
    }
    for inspector in &mut replicas.all {
        inspector.healthy().unwrap();
    }
}

/// The Pods of a gang, each like this one.
fn gang(name: &str, size: usize, pod: &PodManifest) -> Vec<Value> {
    let pod = pod.clone().group(name, size);
    (0..size).map(|index| pod.named(&format!("{name}-{index}")).build()).collect()
}

/// What kube-apiserver has answered the inspectors to bindings of Pods whose names begin like this.
fn answers(cluster: &Cluster, prefix: &str) -> anyhow::Result<Vec<Value>> {
    let mut events = cluster.audit_log()?;
    events.retain(|event| {
        let object = &event["objectRef"];
        object["subresource"] == "binding"
            && object["name"].as_str().is_some_and(|name| name.starts_with(prefix))
    });
    Ok(events.into_iter().map(|mut event| event["responseStatus"].take()).collect())
}

fn refused_by_the_fence(answer: &Value) -> bool {
    answer["code"] == 403 && answer["message"].as_str().is_some_and(|text| text.contains(TERM))
}

/// No binding counts as refused by the cluster, which would be held against the node.
async fn no_node_is_blamed(inspector: &Inspector) {
    let refused = inspector.metric("fluxion_binds_total{outcome=\"refused\"}").await.unwrap();
    assert!(refused.abs() < f64::EPSILON, "{refused}");
}

/// What the leader sends is held up on its way, and arrives once another one has taken over and given the room to others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bindings_that_arrive_after_another_leader_has_decided_are_refused() {
    let cluster = Cluster::start(Options::default().with_audit_of(USER)).await.unwrap();
    let client = cluster.client().await.unwrap();
    nodes::create(&client, &[NodeSpec::new("only")]).await.unwrap();
    let applier = Applier::new(client.clone());
    let create = async |pods: Vec<Value>| applier.create_all(pods).await.unwrap();
    let urgent = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": { "name": "urgent" }, "value": 1000,
    });
    applier.create(urgent).await.unwrap();
    let (valves, mut replicas) = behind_valves(&cluster, &applier).await;
    let witness = Witness::start(client.clone(), 4000);
    let (leader, _) = replicas.some_leader(PATIENCE).await.unwrap();
    let [old, new] = [&replicas.all[leader], &replicas.all[1 - leader]];

    // Its connections are open afterwards, so that requests need no answer to be sent.
    create(gang("first", 16, &PodManifest::new("first").request("cpu", "250m").runs_for(1))).await;
    let ended = |job: &FluxionJob| job.status.state == JobState::Completed;
    inspector::job_becomes(old, "default", "group/first", "completed", ended).await.unwrap();
    valves[leader].hold(true);
    let whole = PodManifest::new("pod").request("cpu", "500m");
    create(gang("late", 8, &whole)).await;
    let binding = |job: &FluxionJob| job.status.state == JobState::Binding;
    inspector::job_becomes(old, "default", "group/late", "being bound", binding).await.unwrap();
    wait::until("bindings are on their way", PATIENCE, || async {
        ensure!(valves[leader].held() >= 4, "{} requests", valves[leader].held());
        Ok(())
    })
    .await
    .unwrap();
    create(gang("urgent", 8, &whole.spec("priorityClassName", json!("urgent")))).await;
    replicas.leads(1 - leader, TAKEOVER).await.unwrap();
    wait::until("the room is taken", PATIENCE, || async {
        ensure!(witness.bound_of("urgent") == 8, "{:?}", witness.seen());
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(answers(&cluster, "late-").unwrap(), Vec::<Value>::new(), "nothing has arrived yet");

    valves[leader].hold(false);
    wait::until("the bindings arrive", PATIENCE, || async {
        ensure!(!answers(&cluster, "late-")?.is_empty());
        Ok(())
    })
    .await
    .unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let late = answers(&cluster, "late-").unwrap();
    assert!(late.iter().all(refused_by_the_fence), "{late:#?}");
    println!("{} bindings arrived late: {}", late.len(), late[0]["message"]);
    assert_eq!(witness.bound_of("late"), 0);
    assert_eq!(witness.seen().wrong, Vec::<String>::new());
    clean(new).await;
    for inspector in [old, new] {
        no_node_is_blamed(inspector).await;
    }

    // They are bound by the one that leads now, to the same node.
    for index in 0..8 {
        cluster.kubectl(&["delete", "pod", &format!("urgent-{index}"), "--wait=false"]).await.unwrap();
    }
    wait::until("the late gang is bound", PATIENCE, || async {
        ensure!(witness.bound_of("late") == 8, "{:?}", witness.seen());
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(witness.seen().wrong, Vec::<String>::new());
    for inspector in &mut replicas.all {
        inspector.healthy().unwrap();
    }
}

/// What the only inspector sends is held up on its way until it has lost its right and regained it: it arrives too late,
/// though nobody else has been elected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_bindings_of_a_leader_that_has_regained_the_lease_are_refused() {
    let cluster = Cluster::start(Options::default().with_audit_of(USER)).await.unwrap();
    let client = cluster.client().await.unwrap();
    nodes::create(&client, &[NodeSpec::new("only")]).await.unwrap();
    let applier = Applier::new(client.clone());
    let create = async |pods: Vec<Value>| applier.create_all(pods).await.unwrap();
    let access = inspector::rights(&cluster).await.unwrap();
    let valve = Valve::before(&cluster).await.unwrap();
    let access = valve.access(&cluster, &access, "way").unwrap();
    let settings = Settings { config: Some(CONFIG.to_owned()), ..Settings::default() };
    let mut inspector = Inspector::start_as(&cluster, "inspector", &settings, access).await.unwrap();
    let witness = Witness::start(client.clone(), 4000);

    // Its connections are open afterwards.
    create(gang("first", 16, &PodManifest::new("first").request("cpu", "250m").runs_for(1))).await;
    let ended = |job: &FluxionJob| job.status.state == JobState::Completed;
    inspector::job_becomes(&inspector, "default", "group/first", "completed", ended).await.unwrap();
    valve.hold(true);
    create(gang("late", 8, &PodManifest::new("late").request("cpu", "500m"))).await;
    wait::until("bindings are on their way", PATIENCE, || async {
        ensure!(valve.held() >= 4, "{} requests", valve.held());
        Ok(())
    })
    .await
    .unwrap();
    let has = async |role: Role| {
        wait::until(&format!("it is {role:?}"), PATIENCE, || async {
            let standing = inspector.standing().await?;
            ensure!(standing.role == role, "{standing:?}");
            Ok(())
        })
        .await
        .unwrap();
    };
    has(Role::Follower).await;
    assert_eq!(answers(&cluster, "late-").unwrap(), Vec::<Value>::new(), "nothing has arrived yet");
    valve.hold_only_these();
    has(Role::Leader).await;
    wait::until("the gang is bound in the next term", PATIENCE, || async {
        ensure!(witness.bound_of("late") == 8, "{:?}", witness.seen());
        Ok(())
    })
    .await
    .unwrap();

    valve.hold(false);
    let late = wait::until("the bindings of the first term arrive", PATIENCE, || async {
        let mut late = answers(&cluster, "late-")?;
        late.retain(|answer| answer["code"] != 201);
        ensure!(!late.is_empty());
        Ok(late)
    })
    .await
    .unwrap();
    assert!(late.iter().all(refused_by_the_fence), "{late:#?}");
    println!("{} of {} arrived late: {}", late.len(), valve.held(), late[0]["message"]);
    assert_eq!(witness.seen().wrong, Vec::<String>::new());
    no_node_is_blamed(&inspector).await;
    clean(&inspector).await;
    inspector.healthy().unwrap();
}

/// Somebody writes another term into the Lease, so that the bindings of its holder are refused until it renews it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_by_the_fence_is_held_against_no_node() {
    let options = Options::default().with_audit_of(USER);
    let mut stage = Stage::start(options, &Settings::default(), &[NodeSpec::new("only")]).await.unwrap();
    let lease = ["--namespace", "fluxion-system", "lease", "fluxion-inspector"];
    let mut refused = Vec::new();
    for round in 0..20 {
        let path = format!("jsonpath={{.metadata.annotations.{}}}", TERM.replace('.', "\\."));
        let term = stage.cluster.kubectl(&[&["get"], &lease[..], &["-o", &path]].concat()).await.unwrap();
        let another = format!("{TERM}={}", term.parse::<u64>().unwrap() + 1);
        stage
            .cluster
            .kubectl(&[&["annotate"], &lease[..], &["--overwrite", &another]].concat())
            .await
            .unwrap();
        let name = format!("pod-{round}");
        stage.create([PodManifest::new(&name).request("cpu", "10m").build()]).await.unwrap();
        stage.pod_bound(&name).await.unwrap();
        refused = answers(&stage.cluster, "pod-").unwrap();
        refused.retain(|answer| answer["code"] != 201);
        if !refused.is_empty() {
            break;
        }
    }
    assert!(!refused.is_empty() && refused.iter().all(refused_by_the_fence), "{refused:#?}");
    no_node_is_blamed(&stage.inspector).await;
    clean(&stage.inspector).await;
    stage.inspector.healthy().unwrap();
}

/// The clock of an inspector is set forward and back by an hour while it decides.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_set_changes_no_decision_for_the_worse() {
    let folder = tempfile::tempdir().unwrap();
    let Some(clock) = Clock::in_folder(folder.path()).unwrap() else { return };
    let settings =
        Settings { environment: clock.environment(), config: Some(CONFIG.to_owned()), ..Settings::default() };
    let mut stage = Stage::start(Options::default(), &settings, &some_nodes()).await.unwrap();
    let witness = Witness::start(stage.client.clone(), 4000);
    // Runs for a quarter of an hour, by its limit.
    let only = |name: &str| {
        let pod = PodManifest::new(name).request("cpu", "4").deadline(900);
        pod.spec("nodeSelector", json!({ "only": "planned" })).build()
    };
    stage.create([only("first")]).await.unwrap();
    stage.job_is("pod/first", "Running").await.unwrap();
    stage.create([only("second")]).await.unwrap();
    stage.job_is("pod/second", "Reserved").await.unwrap();
    let load = Load::start(Applier::new(stage.client.clone()), Duration::from_secs(1));
    witness.works(3, PATIENCE).await.unwrap();
    for offset in [HOUR, -HOUR, 0, HOUR] {
        clock.set(offset).unwrap();
        tokio::time::sleep(Duration::from_secs(4)).await;
        witness.works(3, PATIENCE).await.unwrap();
        // Its node is held for as long as it runs, whatever the clock says.
        let first = stage.job("pod/first").await.unwrap();
        assert_eq!(first.status.state, JobState::Running, "{offset}");
        let second = stage.job("pod/second").await.unwrap();
        assert!(
            matches!(second.status.state, JobState::Reserved | JobState::Pending),
            "{offset}: {second:?}"
        );
        let standing = stage.inspector.standing().await.unwrap();
        assert_eq!(standing.role, Role::Leader, "{offset}");
        let observed: Timestamp = standing.observed_at.parse().unwrap();
        let ahead = observed.as_second() - Timestamp::now().as_second();
        assert!((ahead - offset).abs() < 30, "it goes by that clock: {ahead} s");
        let (ready, text) = stage.inspector.answers("/readyz").await.unwrap();
        assert!(ready, "{offset}: {text}");
        let seen = witness.seen();
        println!("clock {offset:+} s: {seen:?}");
        assert_eq!(seen.wrong, Vec::<String>::new());
        assert!(seen.longest_partial < Duration::from_mins(1), "{seen:?}");
    }
    drop(load);
    stage.delete_pod("first").await.unwrap();
    stage.pod_bound("second").await.unwrap();
    // Restarted with the wrong clock, it knows the same.
    stage.inspector.restart_without_state(&stage.cluster).await.unwrap();
    stage.job_is("pod/second", "Running").await.unwrap();
    clean(&stage.inspector).await;
    stage.inspector.healthy().unwrap();
}

/// Of two inspectors, the clock of one is an hour fast: who leads is decided all the same, in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inspectors_whose_clocks_differ_take_over_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let Some(clock) = Clock::in_folder(folder.path()).unwrap() else { return };
    clock.set(HOUR).unwrap();
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = cluster.client().await.unwrap();
    nodes::create(&client, &some_nodes()).await.unwrap();
    let applier = Applier::new(client.clone());
    let access = inspector::rights(&cluster).await.unwrap();
    let environments = [clock.environment(), Vec::new()];
    let ways = [access.clone(), access];
    let mut replicas = Replicas::start_as(&cluster, &applier, CONFIG, ways, environments).await.unwrap();
    let witness = Witness::start(client.clone(), 4000);
    planned(&applier).await;
    let _load = Load::start(applier, Duration::from_millis(600));
    witness.works(3, PATIENCE).await.unwrap();
    for round in 0..4 {
        let (leader, _) = replicas.some_leader(PATIENCE).await.unwrap();
        plan(&replicas.all[leader]).await;
        replicas.all[leader].freeze(true).unwrap();
        let taken = replicas.leads(1 - leader, TAKEOVER).await.unwrap();
        replicas.all[leader].freeze(false).unwrap();
        witness.works(3, PATIENCE).await.unwrap();
        plan(&replicas.all[1 - leader]).await;
        let seen = witness.seen();
        println!("round {round}: inspector {} leads after {taken:.1?}; {seen:?}", 1 - leader);
        assert_eq!(seen.wrong, Vec::<String>::new());
    }
    for inspector in &mut replicas.all {
        inspector.healthy().unwrap();
    }
}
