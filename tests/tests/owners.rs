//! Gangs that operators' own controllers make, as their users write them: `JobSet`, Kubeflow Trainer (torch and MPI) and
//! `KubeRay`. Each is gathered as one gang of the right size under the name of what its user made, starts whole, gets a
//! replacement for a lost member, is cancelled, and leaves nothing behind; in mode `suspend`, it queues before it has Pods.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use fluxion_tests::inspector::Settings;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::owners::Owners;
use fluxion_tests::stage::{Stage, node_of};
use fluxion_tests::{Options, wait};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};

/// How long it may take until several controllers have done their part; the Job controller pauses before it replaces a Pod.
const LIMIT: Duration = Duration::from_mins(3);
const GANG: &str = "fluxion.flux-framework.org/gang";
/// All have this many members.
const SIZE: usize = 5;
/// A `JobSet` of which each Job has a rack for itself.
const EXCLUSIVE: &str = "exclusive";

/// What a user makes, and what is to be seen of it.
struct Gang {
    manifest: Value,
    /// As `kubectl fluxion` prints it.
    job: String,
    /// Of its Pods.
    selector: String,
}

impl Gang {
    fn new(manifest: Value, selector: &str) -> Self {
        let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
        let (kind, name) = (text("/kind").to_lowercase(), text("/metadata/name"));
        let api_version = text("/apiVersion");
        let group = api_version.split('/').next().unwrap();
        let selector = format!("{selector}={name}");
        Self { job: format!("{kind}.{group}/{name}"), manifest, selector }
    }

    fn name(&self) -> &str {
        self.manifest["metadata"]["name"].as_str().unwrap()
    }

    /// `KIND/NAME`, as its user calls it.
    fn short(&self) -> String {
        let kind = self.job.split('.').next().unwrap();
        format!("{kind}/{}", self.name())
    }

    /// Resource and name for kubectl.
    fn object(&self) -> [&str; 2] {
        let (resource, name) = self.job.split_once('/').unwrap();
        [resource, name]
    }
}

/// One container, on the nodes of this gang.
fn pods(gang: &str, cpu: &str) -> Value {
    let container = json!({ "name": "c", "image": "busybox", "resources": { "requests": { "cpu": cpu } } });
    json!({ "metadata": { "labels": { "of": gang } },
        "spec": { "containers": [container], "nodeSelector": { "pool": gang } } })
}

/// A driver, and two Jobs with workers.
fn job_set(name: &str) -> Value {
    let job = |job: &str, replicas: u32, size: u32| {
        let pods = pods(name, "2");
        json!({ "name": job, "replicas": replicas, "template": { "spec": {
            "parallelism": size, "completions": size, "template": pods } } })
    };
    json!({ "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": { "name": name },
        "spec": { "replicatedJobs": [job("driver", 1, 1), job("workers", 2, 2)] } })
}

/// With one of Trainer's own runtimes, whose Jobs these are.
fn train_job(name: &str, runtime: &str, jobs: &[&str]) -> Value {
    let resources = json!({ "requests": { "cpu": "2" } });
    let overrides: Vec<Value> = jobs
        .iter()
        .map(|job| json!({ "targetJobs": [{ "name": job }], "nodeSelector": { "pool": name } }))
        .collect();
    json!({ "apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": { "name": name },
        "spec": { "runtimeRef": { "name": runtime }, "podSpecOverrides": overrides,
            "trainer": { "numNodes": SIZE, "resourcesPerNode": resources } } })
}

/// A head and two workers of two hosts each; there are at least two workers.
fn ray(name: &str) -> Value {
    json!({ "rayVersion": "2.46.0", "headGroupSpec": { "rayStartParams": {}, "template": pods(name, "2") },
        "workerGroupSpecs": [{ "groupName": "workers", "replicas": 1, "minReplicas": 2, "maxReplicas": 5,
            "numOfHosts": 2, "rayStartParams": {}, "template": pods(name, "2") }] })
}

fn ray_cluster(name: &str) -> Value {
    json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": { "name": name }, "spec": ray(name) })
}

fn ray_job(name: &str) -> Value {
    let container = json!({ "name": "ray-job-submitter", "image": "busybox" });
    let submitter = json!({ "spec": { "containers": [container], "restartPolicy": "Never",
        "nodeSelector": { "pool": name } } });
    json!({ "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": { "name": name },
        "spec": { "entrypoint": "sleep 600", "shutdownAfterJobFinishes": true, "rayClusterSpec": ray(name),
            "submitterPodTemplate": submitter } })
}

fn gangs() -> Vec<Gang> {
    let of_job_set = "jobset.sigs.k8s.io/jobset-name";
    vec![
        Gang::new(job_set("set"), "of"),
        Gang::new(train_job("torch", "torch-distributed", &["node"]), of_job_set),
        Gang::new(train_job("mpi", "mpi-distributed", &["launcher", "node"]), of_job_set),
        Gang::new(ray_cluster("cluster"), "of"),
        Gang::new(ray_job("ray"), "of"),
    ]
}

/// Trainer gives the requests of a `TrainJob` to the launcher alone: those of the others are in the runtime.
async fn install(stage: &Stage) -> Result<Owners> {
    let owners = Owners::install(&stage.cluster, &stage.applier).await?;
    let path = "/spec/template/spec/replicatedJobs/1/template/spec/template/spec/containers/0/resources";
    let patch = json!([{ "op": "add", "path": path, "value": { "requests": { "cpu": "2" } } }]).to_string();
    let runtime = ["patch", "clustertrainingruntime", "mpi-distributed", "--type=json", "-p", &patch];
    stage.cluster.kubectl(&runtime).await?;
    Ok(owners)
}

/// Four nodes with room for two members each, for every gang, and one for others.
fn nodes(gangs: &[Gang]) -> Vec<NodeSpec> {
    let of_gang = |gang: &Gang| {
        let name = gang.name().to_owned();
        (1..=4).map(move |index| NodeSpec::new(format!("{name}-{index}")).label("pool", &name))
    };
    let rack = |rack: &'static str| {
        let node = move |index| NodeSpec::new(format!("{rack}-{index}")).label("rack", rack);
        (1..=2).map(move |index| node(index).label("pool", EXCLUSIVE))
    };
    let racks = ["left", "right"].into_iter().flat_map(rack);
    gangs.iter().flat_map(of_gang).chain(racks).chain([NodeSpec::new("other")]).collect()
}

/// Pods that leave room for one member less.
fn blockers(gang: &Gang) -> Vec<Value> {
    let name = gang.name();
    (1..=2)
        .map(|index| {
            PodManifest::new(&format!("blocker-{name}-{index}"))
                .request("cpu", "4")
                .foreign()
                .spec("nodeName", json!(format!("{name}-{index}")))
                .build()
        })
        .collect()
}

/// A job that waits for CPUs, whole, under the name of what its user made; there is no other job of its Pods.
async fn waits_whole(stage: &Stage, gang: &Gang) -> Result<()> {
    let job = wait::until(&format!("{} is whole, and waits for CPUs", gang.job), LIMIT, || async {
        let job = stage.job(&gang.job).await?;
        let why = job.status.reason.as_ref().is_some_and(|reason| reason.text.contains("insufficient cpu"));
        let members = &job.status.members;
        let whole = (members.seen, members.wanted) == (5, Some(5));
        ensure!(why && whole, "{}", serde_json::to_string(&job.status)?);
        Ok(job)
    })
    .await?;
    let cpus = job.spec.shapes.iter().filter(|shape| shape.requests["cpu"] == "2");
    ensure!(cpus.map(|shape| shape.count).sum::<u32>() == 5, "{:?}", job.spec.shapes);
    let queue = stage.plugin()?.ask(&["queue", "--no-headers"]).await?;
    // What controllers generate begins with its name.
    let of_it = |line: &&str| {
        let name = line.split_whitespace().next().and_then(|job| job.split_once('/'));
        name.is_some_and(|(_, name)| name.split('-').next() == Some(gang.name()))
    };
    let lines: Vec<&str> = queue.lines().filter(of_it).collect();
    let one = matches!(lines.as_slice(), [line] if line.starts_with(&gang.job) && line.contains("5/5"));
    ensure!(one, "{queue}");
    let told = stage.plugin()?.ask(&["explain", &gang.short()]).await?;
    ensure!(told.starts_with(&format!("Job: default/{}\n", gang.job)), "{told}");
    ensure!(stage.pods(&gang.selector).await?.iter().all(|pod| node_of(pod).is_none()), "{told}");
    Ok(())
}

async fn unblock(stage: &Stage, gang: &Gang) -> Result<()> {
    for blocker in blockers(gang) {
        stage.delete_pod(blocker["metadata"]["name"].as_str().context("a Pod has a name")?).await?;
    }
    Ok(())
}

fn bound(pods: &[Pod]) -> BTreeSet<String> {
    pods.iter().filter(|pod| node_of(pod).is_some()).map(kube::ResourceExt::name_any).collect()
}

/// Waits until all members run on the nodes of the gang, and none is missed; gives their names.
async fn runs_whole(stage: &Stage, gang: &Gang) -> Result<BTreeSet<String>> {
    wait::until(&format!("{} runs", gang.job), LIMIT, || async {
        let pods = stage.pods(&gang.selector).await?;
        let names = bound(&pods);
        ensure!(names.len() == SIZE && pods.len() == SIZE, "bound are {names:?} of {}", pods.len());
        let job = stage.job(&gang.job).await?;
        let status = &job.status;
        ensure!(status.state.as_str() == "Running" && !status.degraded, "{}", serde_json::to_string(status)?);
        Ok(names)
    })
    .await
}

/// Nothing of the gang is on its nodes, or anywhere.
async fn leaves_nothing(stage: &Stage, gang: &Gang) -> Result<()> {
    wait::until(&format!("nothing is left of {}", gang.job), LIMIT, || async {
        let pods = stage.pods(&gang.selector).await?;
        ensure!(pods.is_empty(), "{:?}", pods.iter().map(kube::ResourceExt::name_any).collect::<Vec<_>>());
        let kinds = "jobs,jobsets,trainjobs,rayjobs,rayclusters,services,secrets";
        let left = stage.cluster.kubectl(&["get", kinds, "-o", "name"]).await?;
        let begins = |line: &&str| line.split(['/', '-']).nth(1) == Some(gang.name());
        let of_it = left.lines().find(begins);
        ensure!(of_it.is_none(), "{of_it:?}");
        for index in 1..=4 {
            let node = stage.inspector.node(&format!("{}-{index}", gang.name())).await?;
            let used = node.status.allocated.values().chain(node.status.reserved.values());
            ensure!(used.into_iter().all(|amount| amount == "0"), "{}", serde_json::to_string(&node.status)?);
        }
        Ok(())
    })
    .await
}

async fn cancels(stage: &Stage, gang: &Gang) -> Result<()> {
    stage.plugin()?.ask(&["cancel", "-y", &gang.short()]).await?;
    leaves_nothing(stage, gang).await?;
    stage.job_is(&gang.job, "Cancelled").await.map(drop)
}

/// From its creation to its end, in a namespace with mode `bind`.
async fn lives(stage: &Stage, gang: &Gang) -> Result<()> {
    stage.create(blockers(gang)).await?;
    let mut manifest = gang.manifest.clone();
    manifest["metadata"]["annotations"] = json!({ GANG: "true" });
    stage.create([manifest]).await?;
    waits_whole(stage, gang).await?;
    unblock(stage, gang).await?;
    let before = runs_whole(stage, gang).await?;
    let killed = before.last().context("it has members")?;
    stage.delete_pod(killed).await?;
    let job = stage.job(&gang.job).await?;
    let after = wait::until(&format!("{killed} is replaced"), LIMIT, || async {
        let after = runs_whole(stage, gang).await?;
        ensure!(!after.contains(killed), "{killed} is still there");
        Ok(after)
    })
    .await?;
    ensure!(before.intersection(&after).count() >= SIZE - 1, "{before:?}, then {after:?}");
    ensure!(stage.job(&gang.job).await?.metadata.uid == job.metadata.uid, "it is another job");
    cancels(stage, gang).await
}

/// The first Pod of each Job starts with those of the others; `JobSet` lets the rest come then, to the same rack.
async fn has_racks(stage: &Stage, asks: bool) -> Result<()> {
    let mut set = job_set(EXCLUSIVE);
    let jobs = set["spec"]["replicatedJobs"].as_array_mut().context("it has Jobs")?;
    jobs.remove(0);
    for size in ["parallelism", "completions"] {
        jobs[0]["template"]["spec"][size] = json!(4);
    }
    set["metadata"]["annotations"] = json!({ "alpha.jobset.sigs.k8s.io/exclusive-topology": "rack" });
    if asks {
        set["metadata"]["annotations"][GANG] = json!("true");
    }
    stage.create([set]).await?;
    let by_job = wait::until("each Job has its rack", LIMIT, || async {
        let pods = stage.pods(&format!("of={EXCLUSIVE}")).await?;
        let on: Option<Vec<(String, String)>> = pods
            .iter()
            .map(|pod| {
                let rack = node_of(pod)?.split('-').next()?.to_owned();
                Some((pod.labels().get("jobset.sigs.k8s.io/job-index")?.clone(), rack))
            })
            .collect();
        let on = on.filter(|on| on.len() == 8).context(format!("{} Pods", pods.len()))?;
        Ok(on.into_iter().collect::<BTreeSet<_>>())
    })
    .await?;
    let racks: BTreeSet<&String> = by_job.iter().map(|(_, rack)| rack).collect();
    ensure!(by_job.len() == 2 && racks.len() == 2, "{by_job:?}");
    let job = stage.job_is(&format!("jobset.jobset.x-k8s.io/{EXCLUSIVE}"), "Running").await?;
    ensure!(job.status.members.wanted == Some(2), "{:?}", job.status.members);
    stage.plugin()?.ask(&["cancel", "-y", &format!("jobset/{EXCLUSIVE}")]).await.map(drop)
}

#[tokio::test]
async fn gangs_of_operators_start_whole_are_repaired_and_leave_nothing_behind() {
    let gangs = gangs();
    let (options, settings) = (Options::default().with_pod_group_crd(), Settings::default());
    let stage = Stage::with_admission(options, &settings, &nodes(&gangs), "bind").await.unwrap();
    let mut owners = install(&stage).await.unwrap();
    let all = gangs.iter().map(async |gang| lives(&stage, gang).await.context(gang.job.clone()));
    tokio::try_join!(try_join_all(all), has_racks(&stage, true)).unwrap();
    owners.healthy().unwrap();
    let findings = stage.audit().await.unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");
}

/// Suspended by admission, it has no Pods until it starts; then all of them are pinned at once.
async fn queues(stage: &Stage, gang: &Gang) -> Result<()> {
    stage.create(blockers(gang)).await?;
    stage.create([gang.manifest.clone()]).await?;
    waits_whole(stage, gang).await?;
    ensure!(stage.pods(&gang.selector).await?.is_empty(), "{} has Pods", gang.job);
    let [resource, name] = gang.object();
    let path = r"jsonpath={.spec.suspend} {.metadata.annotations.fluxion\.flux-framework\.org/admission}";
    let suspended = async || stage.cluster.kubectl(&["get", resource, name, "-o", path]).await;
    ensure!(suspended().await? == "true suspend", "{}", suspended().await?);
    unblock(stage, gang).await?;
    runs_whole(stage, gang).await?;
    ensure!(suspended().await? == "false resumed", "{}", suspended().await?);
    for pod in stage.pods(&gang.selector).await? {
        let spec = serde_json::to_value(&pod.spec)?;
        let terms =
            "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0";
        let pin = spec.pointer(terms).and_then(|term| term["matchFields"][0]["values"][0].as_str());
        ensure!(pin.is_some() && pin == node_of(&pod), "{} is pinned to {pin:?}", pod.name_any());
    }
    Ok(())
}

/// Its Pods succeed, and with them the object; Ray's don't end by themselves.
async fn ends(stage: &Stage, gang: &Gang) -> Result<()> {
    if gang.job.contains("ray.io") {
        return cancels(stage, gang).await;
    }
    // The launcher of MPI last: with it, all of its TrainJob has ended, and the others are deleted.
    for pod in stage.pods(&gang.selector).await?.iter().rev() {
        stage.patch_pod_status(&pod.name_any(), &json!({ "status": { "phase": "Succeeded" } })).await?;
    }
    wait::until(&format!("{} is completed", gang.job), LIMIT, || async {
        let job = stage.job(&gang.job).await?;
        ensure!(job.status.state.as_str() == "Completed", "{}", serde_json::to_string(&job.status)?);
        Ok(())
    })
    .await?;
    let [resource, name] = gang.object();
    stage.cluster.kubectl(&["delete", resource, name]).await?;
    leaves_nothing(stage, gang).await
}

#[tokio::test]
async fn in_mode_suspend_they_queue_without_pods_and_start_pinned() {
    let gangs = gangs();
    let options = Options::default().with_pod_group_crd().with_scheduler();
    let stage =
        Stage::with_admission(options, &Settings::default(), &nodes(&gangs), "suspend").await.unwrap();
    let mut owners = install(&stage).await.unwrap();
    let all = gangs.iter().map(async |gang| {
        queues(&stage, gang).await.context(gang.job.clone())?;
        ends(&stage, gang).await.context(gang.job.clone())
    });
    tokio::try_join!(try_join_all(all), has_racks(&stage, false)).unwrap();
    owners.healthy().unwrap();
    let findings = stage.audit().await.unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");
}
