//! A provisioner of volumes, as CSI drivers bring one: it creates a volume for each claim that it is asked for, or says why
//! it can't.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{Event, Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const PAUSE: Duration = Duration::from_millis(100);
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Set by the controller of `PersistentVolumes` once a node is selected.
const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// How the names of the drivers end that it serves.
const OURS: &str = ".test";
/// An annotation of claims that are not served.
pub const HELD: &str = "test/held";
/// The label of nodes by which storage is in one place.
pub const ZONE: &str = "topology.kubernetes.io/zone";

/// How a provisioner behaves; may be changed at any time.
#[derive(Clone, Debug, Default)]
pub struct Behaviour {
    /// How long it takes from when it is asked first.
    pub delay: Duration,
    /// In these zones there is no room.
    pub full: BTreeSet<String>,
    /// It does nothing.
    pub stopped: bool,
}

/// A running provisioner for all classes whose provisioner ends with `.test`.
pub struct Provisioner {
    behaviour: Arc<Mutex<Behaviour>>,
    task: JoinHandle<()>,
}

impl Drop for Provisioner {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Provisioner {
    /// Starts it.
    pub fn start(client: Client, behaviour: Behaviour) -> Self {
        let behaviour = Arc::new(Mutex::new(behaviour));
        let known = Arc::clone(&behaviour);
        let task = tokio::spawn(async move {
            let mut asked = BTreeMap::new();
            loop {
                let now = known.lock().unwrap_or_else(PoisonError::into_inner).clone();
                // Whatever failed is tried again.
                let _ = round(&client, &now, &mut asked).await;
                tokio::time::sleep(PAUSE).await;
            }
        });
        Self { behaviour, task }
    }

    /// Changes how it behaves.
    pub fn set(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.behaviour.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Looks at every claim once. `asked` tells since when by UID and node.
async fn round(
    client: &Client,
    behaviour: &Behaviour,
    asked: &mut BTreeMap<(String, String), Instant>,
) -> Result<()> {
    if behaviour.stopped {
        return Ok(());
    }
    let claims: Api<PersistentVolumeClaim> = Api::all(client.clone());
    for claim in claims.list(&ListParams::default()).await? {
        let annotations = claim.annotations();
        let ours = annotations.get(PROVISIONER).is_some_and(|name| name.ends_with(OURS));
        let unbound = claim.spec.as_ref().is_some_and(|spec| spec.volume_name.is_none());
        let Some(node) = annotations.get(SELECTED_NODE).filter(|_| ours && unbound) else { continue };
        if claim.metadata.deletion_timestamp.is_some() || annotations.contains_key(HELD) {
            continue;
        }
        let since =
            *asked.entry((claim.uid().unwrap_or_default(), node.clone())).or_insert_with(Instant::now);
        if since.elapsed() < behaviour.delay {
            continue;
        }
        // One claim that can't be served does not stop the others.
        let _ = provision(client, behaviour, &claim, node).await;
    }
    Ok(())
}

async fn provision(
    client: &Client,
    behaviour: &Behaviour,
    claim: &PersistentVolumeClaim,
    node: &str,
) -> Result<()> {
    let node = Api::<Node>::all(client.clone()).get(node).await?;
    let zone = node.labels().get(ZONE).cloned().unwrap_or_default();
    if behaviour.full.contains(&zone) {
        return refuse(client, claim, &zone).await;
    }
    let spec = claim.spec.as_ref().context("a claim has a spec")?;
    let class = spec.storage_class_name.clone().unwrap_or_default();
    let driver = Api::<StorageClass>::all(client.clone()).get(&class).await?.provisioner;
    let name = format!("pvc-{}", claim.uid().unwrap_or_default());
    let volume: PersistentVolume = serde_json::from_value(json!({
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": driver}},
        "spec": {
            "capacity": {"storage": spec.resources.as_ref().and_then(|all| all.requests.as_ref()?.get("storage"))},
            "accessModes": spec.access_modes,
            "volumeMode": spec.volume_mode,
            "storageClassName": class,
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": driver, "volumeHandle": name},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim.namespace(),
                "name": claim.name_any(), "uid": claim.uid()},
            "nodeAffinity": (!zone.is_empty()).then(|| json!({"required": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]}})),
        },
    }))?;
    Api::<PersistentVolume>::all(client.clone()).create(&PostParams::default(), &volume).await?;
    Ok(())
}

/// Says why, and asks for another node.
async fn refuse(client: &Client, claim: &PersistentVolumeClaim, zone: &str) -> Result<()> {
    let namespace = claim.namespace().unwrap_or_default();
    let event: Event = serde_json::from_value(json!({
        "metadata": {"generateName": "provisioning-", "namespace": namespace},
        "involvedObject": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace,
            "name": claim.name_any(), "uid": claim.uid()},
        "reason": "ProvisioningFailed", "type": "Warning",
        "message": format!("failed to provision volume: zone {zone} is full"),
        "source": {"component": "provisioner"},
    }))?;
    Api::<Event>::namespaced(client.clone(), &namespace).create(&PostParams::default(), &event).await?;
    let patch: Value = json!({"metadata": {
        "resourceVersion": claim.resource_version(), "annotations": {SELECTED_NODE: null},
    }});
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), &namespace);
    claims.patch(&claim.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}
