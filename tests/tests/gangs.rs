//! Gangs are bound whole or not at all, whatever made the group.

use std::time::Duration;

use fluxion_tests::gang_watch::GangWatch;
use fluxion_tests::inspector::Settings;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::stage::Stage;
use fluxion_tests::{Options, wait};
use serde_json::{Value, json};

/// A gang may be bound in part for as long as its bindings take, not for as long as a scheduler thinks.
const PARTIAL: Duration = Duration::from_secs(2);
const JOB: &str = "batch.kubernetes.io/job-name";

fn two_nodes() -> [NodeSpec; 2] {
    [NodeSpec::new("n1"), NodeSpec::new("n2")]
}

/// A Job whose Pods carry the labels that Fluxnetes reads.
fn fluxnetes_job(name: &str, size: usize, cpu: &str, seconds: u32) -> Value {
    PodManifest::new("template")
        .request("cpu", cpu)
        .label("fluxnetes.group-name", name)
        .label("fluxnetes.group-size", &size.to_string())
        .runs_for(seconds)
        .job(name, size)
}

/// Two nodes of 4 CPUs. Three Pods of 2 CPUs fit, and leave 2; four Pods of 2 CPUs don't fit beside them.
#[tokio::test]
async fn the_gang_that_fits_runs_and_the_other_holds_nothing_until_it_does() {
    let stage = Stage::with_nodes(&two_nodes()).await.unwrap();
    let watch = GangWatch::start(stage.client.clone(), JOB, &[("first", 3), ("second", 4)]);
    // One after the other: whose Pods the Job controller makes first is not to decide who fits.
    stage.create([fluxnetes_job("first", 3, "2", 12)]).await.unwrap();
    stage.bound(&format!("{JOB}=first"), 3).await.unwrap();
    stage.create([fluxnetes_job("second", 4, "2", 5)]).await.unwrap();
    stage.stay_unbound(&format!("{JOB}=second")).await.unwrap();
    let waiting = stage.job("group/second").await.unwrap();
    assert!(["Pending", "Reserved"].contains(&waiting.status.state.as_str()), "{:?}", waiting.status);
    assert!(waiting.status.reason.unwrap().text.contains("cpu"));

    stage.job_is("group/first", "Completed").await.unwrap();
    stage.bound(&format!("{JOB}=second"), 4).await.unwrap();
    stage.job_is("group/second", "Completed").await.unwrap();
    for gang in ["first", "second"] {
        assert!(watch.longest_partial(gang) < PARTIAL, "{gang}: {:?}", watch.longest_partial(gang));
    }
    assert_eq!(watch.rebound(), Vec::<String>::new());
    for node in ["n1", "n2"] {
        let books = stage.inspector.node(node).await.unwrap().status;
        assert_eq!(books.allocated.get("pods").map_or("0", String::as_str), "0", "{books:?}");
    }
}

/// "Gathering 3/4", nothing held; the fourth comes, all are bound, the group's condition says scheduled.
#[tokio::test]
async fn a_native_pod_group_gathers_and_is_marked_as_scheduled() {
    let stage = Stage::with_nodes(&two_nodes()).await.unwrap();
    let group = json!({
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": { "name": "train" },
        "spec": { "schedulingPolicy": { "gang": { "minCount": 4 } } },
    });
    let member = |index: usize| {
        PodManifest::new(&format!("train-{index}"))
            .request("cpu", "1")
            .label("app", "train")
            .spec("schedulingGroup", json!({ "podGroupName": "train" }))
            .build()
    };
    stage.create(std::iter::once(group).chain((0..3).map(member))).await.unwrap();

    let gathering = stage.gathers("podgroup/train", 3, 4).await.unwrap();
    let text = gathering.status.reason.unwrap().text;
    assert!(text.contains("3 of 4") || text.contains("3/4"), "{text}");
    stage.stay_unbound("app=train").await.unwrap();
    let books = stage.inspector.node("n1").await.unwrap().status;
    assert_eq!(books.free["cpu"], books.allocatable["cpu"]);

    stage.create([member(3)]).await.unwrap();
    stage.bound("app=train", 4).await.unwrap();
    stage.job_is("podgroup/train", "Running").await.unwrap();
    wait::until("the PodGroup says that it is scheduled", Duration::from_secs(10), || async {
        let path = "jsonpath={.status.conditions[?(@.type==\"PodGroupInitiallyScheduled\")].status}";
        let status =
            stage.cluster.kubectl(&["get", "podgroups.scheduling.k8s.io", "train", "-o", path]).await?;
        if status == "True" { Ok(()) } else { anyhow::bail!("'{status}'") }
    })
    .await
    .unwrap();
}

/// The same for the PodGroup that is installed as a CRD, after the inspector has started or before.
#[tokio::test]
async fn an_installed_pod_group_gathers_too() {
    let options = Options::default().with_pod_group_crd();
    let stage = Stage::start(options, &Settings::default(), &two_nodes()).await.unwrap();
    let group = json!({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": { "name": "sim" },
        "spec": { "minMember": 4 },
    });
    let member = |index: usize| {
        PodManifest::new(&format!("sim-{index}"))
            .request("cpu", "1")
            .label("scheduling.x-k8s.io/pod-group", "sim")
            .build()
    };
    stage.create(std::iter::once(group).chain((0..3).map(member))).await.unwrap();
    let name = wait::until("the group is a job", Duration::from_secs(10), || async {
        let jobs = stage.plugin()?.ask(&["jobs", "-o", "name"]).await?;
        match jobs.lines().find(|job| job.ends_with("/sim")) {
            Some(name) => Ok(name.to_owned()),
            None => anyhow::bail!("jobs are '{jobs}'"),
        }
    })
    .await
    .unwrap();
    stage.gathers(&name, 3, 4).await.unwrap();
    stage.stay_unbound("scheduling.x-k8s.io/pod-group=sim").await.unwrap();
    stage.create([member(3)]).await.unwrap();
    stage.bound("scheduling.x-k8s.io/pod-group=sim", 4).await.unwrap();
    wait::until("the PodGroup's phase is Running", Duration::from_secs(10), || async {
        let path = "jsonpath={.status.phase} {.status.scheduled}";
        let said =
            stage.cluster.kubectl(&["get", "podgroups.scheduling.x-k8s.io", "sim", "-o", path]).await?;
        if said == "Running 4" { Ok(()) } else { anyhow::bail!("'{said}'") }
    })
    .await
    .unwrap();
}

/// Manifests written for Fluence and Fluxqueue run as they are, when the inspector takes their scheduler's names.
#[tokio::test]
async fn manifests_of_the_ancestors_are_taken_by_their_scheduler_names() {
    let settings = Settings::default().scheduler_names(&["fluxion", "fluence", "fluxqueue"]);
    let stage = Stage::start(Options::default(), &settings, &two_nodes()).await.unwrap();
    let template = PodManifest::new("template")
        .request("cpu", "1")
        .label("fluence.pod-group", "web")
        .label("fluence.group-size", "3")
        .spec("schedulerName", json!("fluence"))
        .build();
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": template["metadata"]["labels"] },
            "template": { "metadata": { "labels": template["metadata"]["labels"] }, "spec": template["spec"] },
        },
    });
    let queued = PodManifest::new("template")
        .request("cpu", "1")
        .label("fluxqueue.pod-group", "ring")
        .label("fluxqueue.group-size", "2")
        .spec("schedulerName", json!("fluxqueue"))
        .job("ring", 2);
    stage.create([deployment, queued]).await.unwrap();
    stage.bound("fluence.pod-group=web", 3).await.unwrap();
    stage.bound("fluxqueue.pod-group=ring", 2).await.unwrap();
    stage.job_is("group/web", "Running").await.unwrap();
    stage.job_is("group/ring", "Running").await.unwrap();
}

/// With `WorkloadWithJob` every Job gets a PodGroup of policy basic, which asks for nothing: a Job's Pods still come
/// one by one, a gang by annotation is still one, and both are named after the Job.
#[tokio::test]
async fn a_generated_basic_pod_group_changes_nothing() {
    let options = Options::default().with_gate("WorkloadWithJob", true);
    let stage = Stage::start(options, &Settings::default(), &two_nodes()).await.unwrap();
    let pod = PodManifest::new("template").request("cpu", "3");
    stage.create([pod.clone().job("single", 3)]).await.unwrap();
    // Each for itself: two fit, the third waits.
    stage.bound(&format!("{JOB}=single"), 2).await.unwrap();
    let generated =
        stage.cluster.kubectl(&["get", "podgroups.scheduling.k8s.io", "-o", "name"]).await.unwrap();
    assert!(!generated.is_empty(), "the gate gives every Job a PodGroup");
    stage.create([pod.gang_job("gang", 2)]).await.unwrap();
    stage.stay_unbound(&format!("{JOB}=gang")).await.unwrap();
    stage.job_becomes("job/gang", "a gang of 2", |job| job.spec.group.size == Some(2)).await.unwrap();
    stage.cluster.kubectl(&["delete", "job", "single"]).await.unwrap();
    stage.bound(&format!("{JOB}=gang"), 2).await.unwrap();
}

/// One launcher without a GPU, four workers with one each and a node selector of their own.
#[tokio::test]
async fn a_gang_of_two_shapes_goes_where_each_fits() {
    let gpu =
        |name: &str| NodeSpec::new(name).with("cpu", "16").with("nvidia.com/gpu", "2").label("pool", "gpu");
    let nodes = [NodeSpec::new("plain").with("cpu", "2"), gpu("gpu-1"), gpu("gpu-2"), gpu("gpu-3")];
    let stage = Stage::with_nodes(&nodes).await.unwrap();
    let launcher = PodManifest::new("launcher").request("cpu", "1").group("mpi", 5);
    let worker = PodManifest::new("worker")
        .request("cpu", "8")
        .limit("nvidia.com/gpu", "1")
        .spec("nodeSelector", json!({ "pool": "gpu" }))
        .group("mpi", 5);
    stage.create((0..4).map(|index| worker.named(&format!("worker-{index}")).build())).await.unwrap();
    stage.stay_unbound("fluxion.flux-framework.org/group=mpi").await.unwrap();
    stage.create([launcher.build()]).await.unwrap();
    let bound = stage.bound("fluxion.flux-framework.org/group=mpi", 5).await.unwrap();
    for pod in &bound {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap();
        let is_worker = pod.metadata.name.as_deref().unwrap().starts_with("worker");
        assert!(!is_worker || node.starts_with("gpu-"), "a worker is on {node}");
    }
    let job = stage.job_is("group/mpi", "Running").await.unwrap();
    assert_eq!(job.spec.shapes.iter().map(|shape| shape.count).sum::<u32>(), 5);
    assert_eq!(job.spec.shapes.len(), 2);
    assert_eq!(job.status.request["nvidia.com/gpu"], "4");
    assert_eq!(job.status.request["cpu"], "33");
}

/// Members that wait say so in their condition, in words of their own: no autoscaler is to buy nodes for them.
#[tokio::test]
async fn gathering_members_are_not_unschedulable() {
    let stage = Stage::with_nodes(&two_nodes()).await.unwrap();
    stage.create([PodManifest::new("lonely").group("pair", 2).build()]).await.unwrap();
    stage.pod_is_told("lonely", "FluxionGathering").await.unwrap();
}
