//! The harness itself: is it the control plane that the other tests take it for?

use std::time::Duration;

use anyhow::{Result, bail};
use fluxion_tests::apply::Applier;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::{Cluster, Options, nodes, wait};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::core::GroupVersionKind;
use serde_json::json;

const LIMIT: Duration = Duration::from_secs(30);

async fn phase_becomes(pods: &Api<Pod>, name: &str, phase: &str) -> Result<Pod> {
    wait::until(&format!("{name} is {phase}"), LIMIT, || async {
        let pod = pods.get(name).await?;
        match pod.status.as_ref().and_then(|status| status.phase.clone()) {
            Some(found) if found == phase => Ok(pod),
            found => bail!("{found:?}"),
        }
    })
    .await
}

#[tokio::test]
async fn pods_are_scheduled_run_and_end_as_they_say() {
    let options = Options::default().with_scheduler().with_deadlines().with_pod_group_crd();
    let cluster = Cluster::start(options).await.unwrap();
    let client = cluster.client().await.unwrap();
    nodes::create_many(&client, 3).await.unwrap();
    let applier = Applier::new(client.clone());
    let pod = |name| PodManifest::new(name).foreign();
    for manifest in
        [pod("stays"), pod("ends").runs_for(1), pod("limited").deadline(2), PodManifest::new("ours")]
    {
        applier.create(manifest.build()).await.unwrap();
    }

    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    phase_becomes(&pods, "ends", "Succeeded").await.unwrap();
    let limited = phase_becomes(&pods, "limited", "Failed").await.unwrap();
    assert_eq!(limited.status.unwrap().reason.as_deref(), Some("DeadlineExceeded"));
    phase_becomes(&pods, "stays", "Running").await.unwrap();
    // Whoever schedules for another name is not there: it stays where it is.
    let ours = phase_becomes(&pods, "ours", "Pending").await.unwrap();
    assert_eq!(ours.spec.unwrap().node_name, None);

    let kind = GroupVersionKind::gvk("", "v1", "Pod");
    applier.delete(&kind, "default", "stays").await.unwrap();
    assert!(applier.get(&kind, "default", "stays").await.unwrap().is_none());
}

#[tokio::test]
async fn both_kinds_of_pod_group_are_served() {
    let cluster = Cluster::start(Options::default().with_pod_group_crd()).await.unwrap();
    let applier = Applier::new(cluster.client().await.unwrap());
    let native = json!({
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": { "name": "train" },
        "spec": { "schedulingPolicy": { "gang": { "minCount": 4 } } },
    });
    let installed = json!({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": { "name": "train" },
        "spec": { "minMember": 4 },
    });
    applier.create(native).await.unwrap();
    applier.create(installed).await.unwrap();
}

/// What a test does to the status of a node must not be undone, and users are told apart.
#[tokio::test]
async fn a_node_stays_as_it_was_set_and_users_have_their_own_rights() {
    let (one, other) = tokio::join!(Cluster::start(Options::default()), Cluster::start(Options::default()));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_ne!(one.server(), other.server());
    let client = one.client().await.unwrap();
    nodes::create_many(&client, 1).await.unwrap();
    let applier = Applier::new(client);
    let kind = GroupVersionKind::gvk("", "v1", "Node");
    let down =
        json!({ "status": { "conditions": [{ "type": "Ready", "status": "False", "reason": "Test" }] } });
    applier.patch(&kind, "", "node-0", Some("status"), &down).await.unwrap();
    wait::throughout("node-0 is not ready", Duration::from_secs(3), || async {
        let node = applier.get(&kind, "", "node-0").await?.unwrap();
        let ready =
            node.data["status"]["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "Ready");
        if ready.unwrap()["status"] == "False" { Ok(()) } else { bail!("{ready:?}") }
    })
    .await
    .unwrap();

    assert!(other.kubectl(&["get", "nodes", "-o", "name"]).await.unwrap().is_empty());
    let nobody = one.user("nobody", Some("team-a")).unwrap().client().await.unwrap();
    let refused = Api::<Pod>::default_namespaced(nobody).get("any").await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused}");
    let account = one.service_account("default", "default").await.unwrap();
    let refused =
        Api::<Pod>::default_namespaced(account.client().await.unwrap()).get("any").await.unwrap_err();
    assert!(refused.to_string().contains("system:serviceaccount:default:default"), "{refused}");
}
