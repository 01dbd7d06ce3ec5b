//! Namespaces labelled for admission: whatever is created there is scheduled by Fluxion, made by users who don't know of it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use anyhow::{bail, ensure};
use fluxion_tests::admission::{label, probe};
use fluxion_tests::gang_watch::GangWatch;
use fluxion_tests::inspector::Settings;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::random::number;
use fluxion_tests::stage::{Stage, node_of};
use fluxion_tests::{Options, wait};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};

const JOB: &str = "batch.kubernetes.io/job-name";
const GATE: &str = "fluxion.flux-framework.org/gate";
const SOON: Duration = Duration::from_secs(30);

fn nodes(count: usize) -> Vec<NodeSpec> {
    (1..=count).map(|index| NodeSpec::new(format!("n{index}")).with("cpu", "4")).collect()
}

/// A Pod as anybody writes it: it names no scheduler.
fn plain(name: &str, cpu: &str) -> PodManifest {
    PodManifest::new(name).request("cpu", cpu).spec("schedulerName", Value::Null)
}

/// A controller of three Pods labelled `app: NAME`.
fn three(kind: &str, name: &str, further: &Value) -> Value {
    let pod = plain("template", "100m").label("app", name).build();
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": { "name": name },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": { "app": name } }, "spec": pod["spec"] },
        },
    });
    for (key, value) in further.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    object
}

fn daemon_set(name: &str) -> Value {
    let mut object = three("DaemonSet", name, &json!({}));
    object["spec"].as_object_mut().unwrap().remove("replicas");
    object
}

fn gates(pod: &Pod) -> Vec<&str> {
    let gates = pod.spec.iter().filter_map(|spec| spec.scheduling_gates.as_ref()).flatten();
    gates.map(|gate| gate.name.as_str()).collect()
}

fn scheduler(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_deref()).unwrap_or_default()
}

/// Every kind of workload, as its user would make it.
async fn workloads(stage: &Stage) {
    stage
        .create([
            plain("alone", "100m").label("app", "alone").build(),
            plain("template", "100m").job("work", 3),
            three("Deployment", "web", &json!({})),
            three("StatefulSet", "ordered", &json!({ "serviceName": "ordered" })),
            three(
                "StatefulSet",
                "parallel",
                &json!({ "serviceName": "p", "podManagementPolicy": "Parallel" }),
            ),
        ])
        .await
        .unwrap();
}

const WORKLOADS: [(&str, usize); 5] = [
    ("app=alone", 1),
    ("batch.kubernetes.io/job-name=work", 3),
    ("app=web", 3),
    ("app=ordered", 3),
    ("app=parallel", 3),
];

/// Without kube-scheduler, so that only the inspector can have bound what is bound.
#[tokio::test]
async fn in_mode_bind_whatever_is_created_is_bound_by_the_inspector() {
    let stage =
        Stage::with_admission(Options::default(), &Settings::default(), &nodes(3), "bind").await.unwrap();
    workloads(&stage).await;
    for (selector, count) in WORKLOADS {
        let pods = stage.bound(selector, count).await.unwrap();
        assert!(pods.iter().all(|pod| scheduler(pod) == "fluxion"), "{selector}");
    }
    for (job, state) in
        [("pod/alone", "Running"), ("pod/ordered-2", "Running"), ("pod/parallel-2", "Running")]
    {
        stage.job_is(job, state).await.unwrap();
    }
    // What has a node of its own, what says no, and what is elsewhere is left alone.
    let exempt = plain("exempt", "100m").label("fluxion.flux-framework.org/admission", "none");
    let placed = plain("placed", "100m").spec("nodeName", json!("n1"));
    stage.create([daemon_set("daemon"), exempt.build(), placed.foreign().build()]).await.unwrap();
    let daemons = wait::until("the DaemonSet has its Pods", SOON, || async {
        let pods = stage.pods("app=daemon").await?;
        if pods.len() == 3 { Ok(pods) } else { bail!("{}", pods.len()) }
    })
    .await
    .unwrap();
    assert!(daemons.iter().all(|pod| scheduler(pod) == "default-scheduler"));
    assert_eq!(scheduler(&stage.pod("exempt").await.unwrap()), "default-scheduler");
    for namespace in ["kube-system", "fluxion-system", "kube-public"] {
        let set = format!(
            "fluxion.flux-framework.org/admission={}",
            if namespace == "kube-public" { "no" } else { "bind" }
        );
        let told = stage.cluster.kubectl(&["label", "namespace", namespace, &set]).await.unwrap();
        assert!(told.contains("labeled"), "{told}");
    }
    stage.next_second().await;
    for namespace in ["kube-system", "fluxion-system", "kube-public"] {
        assert_eq!(probe(&stage.cluster, namespace).await.unwrap(), "default-scheduler ", "{namespace}");
    }
    // Unlabelled again: what is there stays, what comes is kube-scheduler's.
    stage
        .cluster
        .kubectl(&["label", "namespace", "default", "fluxion.flux-framework.org/admission-"])
        .await
        .unwrap();
    wait::until("the namespace is left alone", SOON, || async {
        let seen = probe(&stage.cluster, "default").await?;
        ensure!(seen == "default-scheduler ", "{seen}");
        Ok(())
    })
    .await
    .unwrap();
    stage.bound("app=web", 3).await.unwrap();
}

/// The inspector places, kube-scheduler binds: the gang only as a whole.
#[tokio::test]
async fn in_mode_gate_whatever_is_created_is_placed_by_the_inspector_and_bound_by_kube_scheduler() {
    let options = Options::default().with_scheduler();
    let stage = Stage::with_admission(options, &Settings::default(), &nodes(3), "gate").await.unwrap();
    workloads(&stage).await;
    for (selector, count) in WORKLOADS {
        for pod in stage.bound(selector, count).await.unwrap() {
            assert!(scheduler(&pod) == "default-scheduler" && gates(&pod).is_empty(), "{selector}");
            assert!(pod.annotations().contains_key("fluxion.flux-framework.org/allocation"), "{selector}");
        }
    }
    stage
        .cluster
        .kubectl(&["delete", "deployments,statefulsets,jobs,pods", "--all", "--wait"])
        .await
        .unwrap();

    // 3 nodes of 4 CPUs: the first gang fits, the second waits for it with all its gates.
    let watch = GangWatch::start(stage.client.clone(), JOB, &[("first", 3), ("second", 2)]);
    stage.create([plain("t", "3").runs_for(6).gang_job("first", 3)]).await.unwrap();
    stage.bound(&format!("{JOB}=first"), 3).await.unwrap();
    stage.create([plain("t", "4").gang_job("second", 2)]).await.unwrap();
    stage
        .job_becomes("job/second", "waiting", |job| {
            job.status.reason.as_ref().is_some_and(|reason| reason.text.contains("cpu"))
        })
        .await
        .unwrap();
    for pod in stage.pods(&format!("{JOB}=second")).await.unwrap() {
        assert_eq!(gates(&pod), [GATE]);
    }
    let told = stage.plugin().unwrap().ask(&["explain", "job/second"]).await.unwrap();
    assert!(told.contains("cpu"), "{told}");
    stage.bound(&format!("{JOB}=second"), 2).await.unwrap();
    stage.job_is("job/second", "Running").await.unwrap();
    assert!(watch.longest_partial("first") < Duration::from_secs(2));
    assert!(watch.longest_partial("second") < Duration::from_secs(2));
    let findings = stage.audit().await.unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");

    // Kubernetes' own gang: kube-scheduler waits until all gates are gone.
    stage.cluster.kubectl(&["delete", "job", "second"]).await.unwrap();
    let group = json!({
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": { "name": "train" },
        "spec": { "schedulingPolicy": { "gang": { "minCount": 3 } } },
    });
    let member = |index: usize| {
        let pod = plain(&format!("train-{index}"), "3").label("app", "train");
        pod.spec("schedulingGroup", json!({ "podGroupName": "train" })).build()
    };
    stage.create(std::iter::once(group).chain((0..3).map(member))).await.unwrap();
    stage.bound("app=train", 3).await.unwrap();
    stage.job_is("podgroup/train", "Running").await.unwrap();

    // An ordered one can't be a gang, and is told so.
    let mut ordered = three("StatefulSet", "ring", &json!({ "serviceName": "ring" }));
    ordered["metadata"]["annotations"] = json!({ "fluxion.flux-framework.org/gang": "true" });
    stage.create([ordered]).await.unwrap();
    let told = stage.job_is("statefulset/ring", "Unsatisfiable").await.unwrap().status.reason.unwrap().text;
    assert!(told.contains("podManagementPolicy: Parallel"), "{told}");
}

/// kube-scheduler refuses what we don't model. A controller's gang is made anew; bare Pods are kept, with the reason.
#[tokio::test]
async fn in_mode_gate_what_kube_scheduler_does_not_bind_is_told_and_released() {
    let options = Options::default().with_scheduler();
    let settings = Settings { config: Some("bindDeadline: 5s\n".to_owned()), ..Settings::default() };
    let stage = Stage::with_admission(options, &settings, &nodes(3), "gate").await.unwrap();
    let class = json!({
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": { "name": "none" },
        "spec": {},
    });
    let claim = json!({
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": { "name": "device" },
        "spec": { "devices": { "requests": [{ "name": "one", "exactly": { "deviceClassName": "none" } }] } },
    });
    let claims = json!([{ "name": "device", "resourceClaimName": "device" }]);
    let bare = plain("bare", "1").spec("resourceClaims", claims.clone()).build();
    stage
        .create([class, claim, plain("t", "1").spec("resourceClaims", claims).gang_job("gang", 2), bare])
        .await
        .unwrap();
    let told = stage
        .job_becomes("job/gang", "told what kube-scheduler says", |job| {
            job.status.reason.as_ref().is_some_and(|reason| reason.text.contains("kube-scheduler: 0/3 nodes"))
        })
        .await
        .unwrap();
    assert_eq!(told.status.reason.unwrap().class.as_str(), "BindFailed");
    let first: Vec<_> =
        stage.pods(&format!("{JOB}=gang")).await.unwrap().iter().filter_map(Pod::uid).collect();
    wait::until("the gang is made anew, and gated", SOON, || async {
        let pods = stage.pods(&format!("{JOB}=gang")).await?;
        let new: Vec<_> =
            pods.iter().filter(|pod| pod.uid().is_some_and(|uid| !first.contains(&uid))).collect();
        ensure!(new.len() == 2 && pods.len() == 2, "{} of {}", new.len(), pods.len());
        Ok(())
    })
    .await
    .unwrap();
    let held = stage.events("bare").await.unwrap();
    assert!(
        held.iter().any(|event| event.starts_with("GangHeld") && event.contains("kube-scheduler")),
        "{held:?}"
    );
    // Its place is held until its user does something.
    stage.delete_pod("bare").await.unwrap();
    stage.job_is("pod/bare", "Cancelled").await.unwrap();
}

/// Somebody else lifts a gate, and a pinned node goes.
#[tokio::test]
async fn in_mode_gate_the_meddling_of_others_is_told_and_leaves_nothing_stuck() {
    // Without kube-scheduler, pinned Pods stay.
    let settings = Settings { config: Some("bindDeadline: 1h\n".to_owned()), ..Settings::default() };
    let stage = Stage::with_admission(Options::default(), &settings, &nodes(2), "gate").await.unwrap();
    stage.create([plain("big", "64").build()]).await.unwrap();
    stage.job_becomes("pod/big", "waiting", |job| job.status.reason.is_some()).await.unwrap();
    let lift = json!({ "spec": { "schedulingGates": null } }).to_string();
    stage.cluster.kubectl(&["patch", "pod", "big", "--type=merge", "-p", &lift]).await.unwrap();
    let told = stage
        .job_becomes("pod/big", "left to kube-scheduler", |job| {
            job.status.reason.as_ref().is_some_and(|reason| reason.text.contains("kube-scheduler places it"))
        })
        .await;
    told.unwrap();
    assert!(stage.events("big").await.unwrap().iter().any(|event| event.starts_with("GateRemoved")));

    stage.create([plain("t", "3").gang_job("gang", 2)]).await.unwrap();
    let pinned = wait::until("the gang is pinned", SOON, || async {
        let pods = stage.pods(&format!("{JOB}=gang")).await?;
        ensure!(pods.len() == 2 && pods.iter().all(|pod| gates(pod).is_empty() && node_of(pod).is_none()));
        Ok(pods)
    })
    .await
    .unwrap();
    stage.job_is("job/gang", "Binding").await.unwrap();
    let books = stage.inspector.node("n2").await.unwrap().status;
    assert_eq!(books.free["cpu"], "1");
    stage.cluster.kubectl(&["delete", "node", "n2"]).await.unwrap();
    wait::until("the Pods are made anew", SOON, || async {
        let pods = stage.pods(&format!("{JOB}=gang")).await?;
        let old = pods.iter().filter(|pod| pinned.iter().any(|old| old.uid() == pod.uid())).count();
        ensure!(old == 0 && pods.len() == 2, "{old} of {} are old", pods.len());
        Ok(())
    })
    .await
    .unwrap();
    let books = stage.inspector.node("n1").await.unwrap().status;
    assert_eq!(books.free["cpu"], "4");
}

/// While no inspector runs, what is created waits at its gate; an administrator who labels a namespace in which things
/// run already changes nothing for them.
#[tokio::test]
async fn nothing_is_lost_while_the_inspector_is_down_or_a_namespace_is_labelled_late() {
    let options = Options::default().with_scheduler();
    let mut stage = Stage::with_admission(options, &Settings::default(), &nodes(2), "none").await.unwrap();
    stage.create([three("Deployment", "before", &json!({}))]).await.unwrap();
    stage.bound("app=before", 3).await.unwrap();
    label(&stage.cluster, "default", "gate").await.unwrap();
    stage.inspector.stop().await.unwrap();
    stage
        .create([plain("t", "1").gang_job("gang", 4), three("Deployment", "after", &json!({}))])
        .await
        .unwrap();
    stage.stay_unbound(&format!("{JOB}=gang")).await.unwrap();
    stage.inspector.restart(&stage.cluster).await.unwrap();
    stage.bound(&format!("{JOB}=gang"), 4).await.unwrap();
    stage.bound("app=after", 3).await.unwrap();
    stage.cluster.kubectl(&["scale", "deployment", "before", "--replicas=5"]).await.unwrap();
    stage.bound("app=before", 5).await.unwrap();
}

/// The Job as its user sees it.
async fn suspended(stage: &Stage, name: &str) -> (bool, String) {
    let path = r"jsonpath={.spec.suspend} {.metadata.annotations.fluxion\.flux-framework\.org/admission}";
    let told = stage.cluster.kubectl(&["get", "job", name, "-o", path]).await.unwrap();
    let (suspend, mode) = told.split_once(' ').unwrap();
    (suspend == "true", mode.to_owned())
}

/// A Job is a gang without Pods until it starts: seen, explained, cancelled like every other.
async fn suspended_jobs_queue_without_pods(stage: &Stage) {
    stage.create([plain("t", "3").runs_for(10).job("first", 3)]).await.unwrap();
    stage.bound(&format!("{JOB}=first"), 3).await.unwrap();
    assert_eq!(suspended(stage, "first").await, (false, "resumed".to_owned()));
    let mut own = plain("t", "100m").job("own", 1);
    own["spec"]["suspend"] = json!(true);
    let watch = GangWatch::start(stage.client.clone(), JOB, &[("second", 3)]);
    stage.create([plain("t", "3").job("second", 3), plain("t", "64").job("never", 2), own]).await.unwrap();
    let waiting = stage
        .job_becomes("job/second", "waiting for CPUs", |job| {
            job.status.reason.as_ref().is_some_and(|reason| reason.text.contains("cpu"))
        })
        .await
        .unwrap();
    assert_eq!((waiting.spec.shapes[0].count, &waiting.spec.shapes[0].requests["cpu"][..]), (3, "3"));
    assert_eq!(suspended(stage, "second").await, (true, "suspend".to_owned()));
    assert_eq!(suspended(stage, "own").await, (true, String::new()), "its user has suspended it");
    assert!(stage.pods(&format!("{JOB}=second")).await.unwrap().is_empty());
    let told = stage.plugin().unwrap().ask(&["explain", "job/never"]).await.unwrap();
    assert!(told.contains("Unsatisfiable") && told.contains("cpu"), "{told}");
    let told = stage.plugin().unwrap().ask(&["queue"]).await.unwrap();
    assert!(told.contains("job/second") && told.contains("job/never"), "{told}");
    stage.plugin().unwrap().ask(&["cancel", "-y", "job/never"]).await.unwrap();
    stage.job_is("job/never", "Cancelled").await.unwrap();

    stage.bound(&format!("{JOB}=second"), 3).await.unwrap();
    stage.job_is("job/second", "Running").await.unwrap();
    assert!(
        watch.longest_partial("second") < Duration::from_secs(2),
        "{:?}",
        watch.longest_partial("second")
    );
    // Suspended by its user, it stays so, and resumed it goes on.
    let suspend = |on: bool| json!({ "spec": { "suspend": on } }).to_string();
    let patch = ["patch", "job", "second", "--type=merge", "-p"];
    stage.cluster.kubectl(&[&patch[..], &[&suspend(true)]].concat()).await.unwrap();
    stage.bound(&format!("{JOB}=second"), 0).await.unwrap();
    stage.stay_unbound(&format!("{JOB}=second")).await.unwrap();
    stage.cluster.kubectl(&[&patch[..], &[&suspend(false)]].concat()).await.unwrap();
    stage.bound(&format!("{JOB}=second"), 3).await.unwrap();
    // One that waits, and whose user does not want to wait: its Pods are a gang at the gate.
    stage.create([plain("t", "3").job("third", 2)]).await.unwrap();
    stage.job_becomes("job/third", "waiting", |job| job.status.reason.is_some()).await.unwrap();
    let resume = suspend(false);
    stage.cluster.kubectl(&["patch", "job", "third", "--type=merge", "-p", &resume]).await.unwrap();
    wait::until("its Pods are there and gated", SOON, || async {
        let pods = stage.pods(&format!("{JOB}=third")).await?;
        ensure!(pods.len() == 2 && pods.iter().all(|pod| gates(pod) == [GATE]));
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(suspended(stage, "third").await, (false, "resumed".to_owned()));
    stage.cluster.kubectl(&["delete", "job", "second"]).await.unwrap();
    stage.bound(&format!("{JOB}=third"), 2).await.unwrap();
    let findings = stage.audit().await.unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");
}

#[tokio::test]
async fn in_mode_suspend_jobs_queue_without_pods() {
    let options = Options::default().with_scheduler();
    let stage = Stage::with_admission(options, &Settings::default(), &nodes(3), "suspend").await.unwrap();
    suspended_jobs_queue_without_pods(&stage).await;
    // What has no such field is gated.
    stage.create([three("Deployment", "web", &json!({}))]).await.unwrap();
    stage.bound("app=web", 3).await.unwrap();
}

/// The webhook does what the policies do; while it is down, nothing is created unseen, and nothing elsewhere is held up.
#[tokio::test]
async fn the_webhook_does_what_the_policies_do() {
    let options = Options::default().with_scheduler();
    let mut stage = Stage::with_webhook(options, &nodes(3), "suspend").await.unwrap();
    suspended_jobs_queue_without_pods(&stage).await;
    stage.cluster.kubectl(&["delete", "job", "--all"]).await.unwrap();
    for mode in ["gate", "bind"] {
        label(&stage.cluster, "default", mode).await.unwrap();
        stage.create([three("Deployment", mode, &json!({}))]).await.unwrap();
        let pods = stage.bound(&format!("app={mode}"), 3).await.unwrap();
        let by = if mode == "bind" { "fluxion" } else { "default-scheduler" };
        assert!(pods.iter().all(|pod| scheduler(pod) == by), "{mode}");
    }
    stage.inspector.stop().await.unwrap();
    let refused = probe(&stage.cluster, "default").await.unwrap_err().to_string();
    assert!(refused.contains("failed calling webhook"), "{refused}");
    stage.cluster.kubectl(&["create", "namespace", "elsewhere"]).await.unwrap();
    wait::until("other namespaces are as before", SOON, || async {
        let seen = probe(&stage.cluster, "elsewhere").await?;
        ensure!(seen == "default-scheduler ", "{seen}");
        Ok(())
    })
    .await
    .unwrap();
    stage.create([three("Deployment", "meanwhile", &json!({}))]).await.unwrap();
    stage.stay_unbound("app=meanwhile").await.unwrap();
    stage.inspector.restart(&stage.cluster).await.unwrap();
    // Its controller tries again, less and less often.
    wait::until("the Deployment's Pods are bound", Duration::from_secs(90), || async {
        let pods = stage.pods("app=meanwhile").await?;
        ensure!(pods.iter().filter(|pod| node_of(pod).is_some()).count() == 3, "{} Pods", pods.len());
        Ok(())
    })
    .await
    .unwrap();
}

/// Waits until all Pods are bound; fails when some, but not all of them, have no gate any more for longer than 2 s.
async fn whole_soon(stage: &Stage, selector: &str, size: usize) {
    let began = tokio::time::Instant::now();
    let mut half_since = None;
    loop {
        let pods = stage.pods(selector).await.unwrap();
        let lifted = pods.iter().filter(|pod| gates(pod).is_empty()).count();
        if pods.iter().filter(|pod| node_of(pod).is_some()).count() == size {
            return;
        }
        if (1..size).contains(&lifted) {
            let since = half_since.get_or_insert_with(tokio::time::Instant::now);
            assert!(since.elapsed() < Duration::from_secs(2), "{lifted} of {size} are half lifted");
        } else {
            half_since = None;
        }
        assert!(began.elapsed() < SOON, "only {} Pods, {lifted} without gate", pods.len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Killed before anything is written, before and after each write, and between the Pods of a gang: it is whole soon after
/// the restart, nothing is bound twice, nothing is lost. `FLUXION_ROUNDS=100` for a long run.
#[tokio::test]
async fn a_kill_at_any_step_loses_nothing() {
    const SIZE: usize = 20;
    const POINTS: [&str; 5] = ["writer", "resume", "resumed", "pin", "pinned"];
    let folder = tempfile::tempdir().unwrap();
    let file = |point: &str| folder.path().join(point);
    let planted: Vec<String> =
        POINTS.iter().map(|point| format!("{point}=panic:{}", file(point).display())).collect();
    let settings = Settings {
        environment: vec![("FLUXION_FAILPOINTS".to_owned(), planted.join(","))],
        ..Settings::default()
    };
    let options = Options::default().with_scheduler();
    let mut stage = Stage::with_admission(options, &settings, &nodes(10), "suspend").await.unwrap();
    let rounds: usize = number("FLUXION_ROUNDS", 7);
    for round in 0..rounds {
        let name = format!("round-{round}");
        let selector = format!("{JOB}={name}");
        let watch = GangWatch::start(stage.client.clone(), JOB, &[(&name, SIZE)]);
        let point = POINTS.get(round % (POINTS.len() + 2)).copied();
        if let Some(point) = point {
            std::fs::write(file(point), "").unwrap();
        }
        stage.create([plain("t", "1").job(&name, SIZE)]).await.unwrap();
        let began = tokio::time::Instant::now();
        if let Some(point) = point {
            while stage.inspector.ended().is_none() {
                assert!(began.elapsed() < SOON, "it did not reach {point}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            std::fs::remove_file(file(point)).unwrap();
        } else {
            while watch.ever_bound(&name) < 1 + round % (SIZE - 1) && began.elapsed() < SOON {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        stage.inspector.restart_without_state(&stage.cluster).await.unwrap();
        let back = tokio::time::Instant::now();
        whole_soon(&stage, &selector, SIZE).await;
        eprintln!("{name}: {point:?}, whole {:?} after it was ready", back.elapsed());
        assert_eq!(watch.rebound(), Vec::<String>::new());
        stage.job_is(&format!("job/{name}"), "Running").await.unwrap();
        stage.cluster.kubectl(&["delete", "job", &name, "--cascade=foreground"]).await.unwrap();
        stage.bound(&selector, 0).await.unwrap();
    }
    let findings = stage.audit().await.unwrap().findings;
    assert!(findings.is_empty(), "{findings:?}");
}
