//! The fence: which requests kube-apiserver refuses, by the term in the Lease.

use std::time::Duration;

use anyhow::{Result, bail};
use fluxion_tests::apply::Applier;
use fluxion_tests::helm::NAMESPACE;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::{Cluster, Options, admission, nodes, wait};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);
const TERM: &str = "fluxion.flux-framework.org/term";
const INSPECTOR: &str = "system:serviceaccount:fluxion-system:fluxion-inspector";
const POD: &str = "/api/v1/namespaces/default/pods/pod";
const CLAIM: &str = "/api/v1/namespaces/default/persistentvolumeclaims/claim";
const VOLUME: &str = "/api/v1/persistentvolumes/volume";
const JOB: &str = "/apis/batch/v1/namespaces/default/jobs/job";

/// Sends a request as this user, with this field manager; whether it is accepted, or refused by the fence.
async fn accepted(
    client: &Client,
    (method, path, body): (&str, &str, Value),
    user: &str,
    manager: &str,
) -> Result<bool> {
    let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let query = if manager.is_empty() { String::new() } else { format!("?fieldManager={manager}") };
    let mut request = http::Request::builder().method(method).uri(format!("{path}{query}"));
    request = request.header("Content-Type", kind).header("Impersonate-User", user);
    if user == "admin" {
        request = request.header("Impersonate-Group", "system:masters");
    }
    match client.request::<Value>(request.body(body.to_string().into_bytes())?).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status))
            if status.code == 403 && status.message.contains(&format!("{TERM}: the request is of term")) =>
        {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// The same as the inspector in this term.
async fn decided(client: &Client, request: (&str, &str, Value), term: u64) -> Result<bool> {
    accepted(client, request, INSPECTOR, &format!("fluxion-inspector.term-{term}")).await
}

/// A change of the Pod, as a pin is one.
fn pin() -> (&'static str, &'static str, Value) {
    ("PATCH", POD, json!({}))
}

/// A change of the Job, as a resume is one.
fn resume() -> (&'static str, &'static str, Value) {
    ("PATCH", JOB, json!({}))
}

/// The Pod's version after it was marked in this term.
async fn marked(client: &Client, term: u64) -> String {
    let query = format!("{POD}/status?fieldManager=fluxion-inspector.term-{term}");
    // Without a time, kube-controller-manager takes it for an old one and changes it.
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = json!({ "type": "DisruptionTarget", "status": "True", "reason": "Test",
        "message": term.to_string(), "lastTransitionTime": now });
    let body = json!({ "status": { "conditions": [condition] } }).to_string().into_bytes();
    let request = http::Request::patch(query).header("Impersonate-User", INSPECTOR);
    let request =
        request.header("Content-Type", "application/strategic-merge-patch+json").body(body).unwrap();
    let pod = client.request::<Value>(request).await.unwrap();
    pod["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

/// The Pod's version.
async fn version(client: &Client) -> String {
    let request = http::Request::get(POD).body(Vec::new()).unwrap();
    let pod = client.request::<Value>(request).await.unwrap();
    pod["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

/// A deletion of the Pod, with this version as a precondition, which is only tried.
fn delete(version: Option<&str>) -> (&'static str, &'static str, Value) {
    let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"],
        "preconditions": { "resourceVersion": version } });
    ("DELETE", POD, options)
}

/// Waits until kube-apiserver has seen the Lease as it is, by what it answers in term 1.
async fn becomes(client: &Client, what: &str, expected: bool) {
    wait::until(what, SOON, || async {
        let accepted = decided(client, resume(), 1).await?;
        if accepted == expected { Ok(()) } else { bail!("accepted: {accepted}") }
    })
    .await
    .unwrap();
}

/// Sets or removes the term in the Lease.
async fn annotate(cluster: &Cluster, term: &str) {
    let lease = ["--namespace", NAMESPACE, "annotate", "--overwrite", "lease", "fluxion-inspector"];
    cluster.kubectl(&[&lease[..], &[&format!("{TERM}{term}")]].concat()).await.unwrap();
}

#[tokio::test]
async fn decisions_of_an_earlier_term_are_refused_and_nothing_else() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let client = cluster.client().await.unwrap();
    nodes::create_many(&client, 1).await.unwrap();
    let applier = Applier::new(client.clone());
    admission::install(&cluster, None).await.unwrap();
    let pod = PodManifest::new("pod").request("cpu", "10m");
    let mut job = pod.clone().job("job", 1);
    job["spec"]["suspend"] = json!(true);
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "fluxion-inspector", "namespace": NAMESPACE, "annotations": { TERM: "2" } },
    });
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "claim" },
        "spec": { "storageClassName": "none", "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } } },
    });
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "volume" },
        "spec": { "storageClassName": "other", "accessModes": ["ReadWriteOnce"],
            "capacity": { "storage": "1Gi" }, "hostPath": { "path": "/x" } },
    });
    for object in [pod.build(), job, claim, volume, lease.clone()] {
        applier.create(object).await.unwrap();
    }

    becomes(&client, "an earlier term is refused", false).await;
    let node = json!({ "kind": "Node", "name": "node-0" });
    let bind =
        json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "pod" }, "target": node });
    let both = async |request: (&str, &str, Value)| {
        assert!(!decided(&client, request.clone(), 1).await.unwrap(), "{request:?}");
        assert!(decided(&client, request.clone(), 2).await.unwrap(), "{request:?}");
    };
    both(pin()).await;
    both(resume()).await;
    both(("PATCH", CLAIM, json!({}))).await;
    both(("PATCH", VOLUME, json!({}))).await;
    // Nobody else writes to the Pod yet. The term of a deletion is that of the mark whose version it requires. Other
    // deletions are of no term.
    let unmarked = delete(Some(&version(&client).await));
    assert!(accepted(&client, unmarked, INSPECTOR, "").await.unwrap(), "nobody has marked it");
    let first = delete(Some(&marked(&client, 1).await));
    assert!(!accepted(&client, first.clone(), INSPECTOR, "").await.unwrap());
    assert!(accepted(&client, first, "admin", "").await.unwrap());
    assert!(accepted(&client, delete(None), INSPECTOR, "").await.unwrap());
    let second = delete(Some(&marked(&client, 2).await));
    assert!(accepted(&client, second, INSPECTOR, "").await.unwrap());
    both(("POST", &format!("{POD}/binding"), bind)).await;
    // Other users, and requests that name no term.
    for (user, manager) in [("admin", "fluxion-inspector.term-1"), (INSPECTOR, "other"), (INSPECTOR, "")] {
        assert!(accepted(&client, pin(), user, manager).await.unwrap(), "{user} {manager}");
    }

    assert!(decided(&client, pin(), 3).await.unwrap(), "a term that kube-apiserver has not heard of yet");
    annotate(&cluster, "=none").await;
    becomes(&client, "a term that is no number refuses nothing", true).await;
    annotate(&cluster, "=2").await;
    becomes(&client, "an earlier term is refused again", false).await;

    annotate(&cluster, "-").await;
    becomes(&client, "a Lease without a term refuses nothing", true).await;
    annotate(&cluster, "=2").await;
    becomes(&client, "an earlier term is refused again", false).await;
    cluster.kubectl(&["--namespace", NAMESPACE, "delete", "lease", "fluxion-inspector"]).await.unwrap();
    becomes(&client, "without a Lease nothing is refused", true).await;
    applier.create(lease).await.unwrap();
    becomes(&client, "an earlier term is refused once there is one", false).await;
    let evict = json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "pod" } });
    both(("POST", &format!("{POD}/eviction"), evict)).await;

    // After that, kube-apiserver may go by a Lease that is long out of date.
    let name = "fluxion-inspector-term";
    cluster.kubectl(&["delete", "validatingadmissionpolicybinding", name]).await.unwrap();
    becomes(&client, "without the policy nothing is refused", true).await;
    annotate(&cluster, "=9").await;
    admission::install(&cluster, None).await.unwrap();
    wait::throughout("the current term is accepted", Duration::from_secs(5), || async {
        if decided(&client, resume(), 9).await? { Ok(()) } else { bail!("refused") }
    })
    .await
    .unwrap();
}
