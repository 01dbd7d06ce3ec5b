//! Volumes on a real control plane: kube-scheduler and the inspector are asked the same about Pods with random volumes.
//!
//! `FLUXION_VERDICTS` is the number of Pods, `FLUXION_SEED` selects others.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use fluxion_tests::inspector::Settings;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::provisioner::{Behaviour, HELD, Provisioner, ZONE};
use fluxion_tests::random::{Dice, number};
use fluxion_tests::stage::{Stage, node_of, scheduled_condition};
use fluxion_tests::{Options, wait};
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::DeleteParams;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

/// Pods that are tried at the same time; each has drivers and classes of its own.
const LANES: usize = 8;
const PATIENCE: Duration = Duration::from_mins(2);

fn in_zone(zone: &str) -> Value {
    json!([{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}])
}

fn class(name: &str, provisioner: &str, waits: bool, zone: Option<&str>) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": if waits { "WaitForFirstConsumer" } else { "Immediate" },
        "reclaimPolicy": "Retain", "allowedTopologies": zone.map(in_zone)})
}

/// Classes and drivers of one lane.
fn lane_objects(lane: usize) -> Vec<Value> {
    let driver = |name: String, capacity: bool| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name},
            "spec": {"attachRequired": false, "storageCapacity": capacity}})
    };
    let room = |name: &str, zone: &str, field: &str, amount: &str| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity",
            "metadata": {"name": format!("{name}-{lane}"), "namespace": "default"},
            "storageClassName": format!("capacity-{lane}"), "capacity": "50Gi", field: amount,
            "nodeTopology": {"matchLabels": {ZONE: zone}}})
    };
    vec![
        driver(format!("csi-{lane}.test"), false),
        driver(format!("capacity-{lane}.test"), true),
        class(&format!("dynamic-{lane}"), &format!("csi-{lane}.test"), true, None),
        class(&format!("zone-{lane}"), &format!("csi-{lane}.test"), true, Some("a")),
        class(&format!("capacity-{lane}"), &format!("capacity-{lane}.test"), true, None),
        class(&format!("immediate-{lane}"), "nobody.example", false, None),
        room("a", "a", "capacity", "5Gi"),
        room("b", "b", "maximumVolumeSize", "8Gi"),
    ]
}

/// The affinity of a volume.
fn affinity(dice: &mut Dice) -> Value {
    let (key, value) = match dice.roll(5) {
        0 => return Value::Null,
        1 => ("kubernetes.io/hostname", dice.one(&["n0", "n1", "n2", "n3"])),
        2 => {
            let field =
                json!({"key": "metadata.name", "operator": "In", "values": [dice.one(&["n0", "n1"])]});
            return json!({"required": {"nodeSelectorTerms": [{"matchFields": [field]}]}});
        }
        _ => (ZONE, dice.one(&["a", "b"])),
    };
    json!({"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]}})
}

fn volume(dice: &mut Dice, name: &str, class: &str, driver: Option<String>) -> Value {
    let source = driver.map_or_else(
        || ("hostPath", json!({"path": "/x"})),
        |driver| ("csi", json!({"driver": driver, "volumeHandle": name})),
    );
    let mut spec = json!({
        "capacity": {"storage": dice.one(&["1Gi", "3Gi", "6Gi"])}, "storageClassName": class,
        "accessModes": if dice.roll(3) == 0 { json!(["ReadWriteMany"]) } else { json!(["ReadWriteOnce", "ReadOnlyMany"]) },
        "persistentVolumeReclaimPolicy": "Retain", "nodeAffinity": affinity(dice),
        "volumeMode": if dice.roll(6) == 0 { "Block" } else { "Filesystem" },
    });
    spec[source.0] = source.1;
    let mut labels = json!({"tier": dice.one(&["fast", "slow"])});
    if dice.roll(4) == 0 {
        let key =
            dice.one(&[ZONE, "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/region"]);
        labels[key] = json!(dice.one(&["a", "b", "a__b", "r"]));
    }
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "labels": labels}, "spec": spec})
}

fn claim(name: &str, class: &str, mode: &str, size: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "annotations": {}},
        "spec": {"storageClassName": class, "accessModes": [mode], "resources": {"requests": {"storage": size}}}})
}

/// What one asks for: objects in order of creation, and the Pod.
struct Question {
    objects: Vec<Value>,
    /// Volumes that have to be available, and claims that have to be bound, before the Pod is created.
    available: Vec<String>,
    bound: Vec<String>,
    pod: PodManifest,
    /// A claim that others may mount later.
    shareable: Option<String>,
}

impl Question {
    /// The same dice give the same question, under other names.
    fn new(mut dice: Dice, lane: usize, name: &str, kept: &[String]) -> Self {
        let node = format!("n{}", dice.roll(4));
        let pod = PodManifest::new(name)
            .request("cpu", "10m")
            .spec("nodeSelector", json!({"kubernetes.io/hostname": &node}));
        let (objects, available, bound) = (Vec::new(), Vec::new(), Vec::new());
        let mut question = Self { objects, available, bound, pod, shareable: None };
        let mut volumes = Vec::new();
        for at in 0..=usize::from(dice.roll(3) == 0) {
            let claim = format!("{name}-{at}");
            let mounted = question.one(&mut dice, lane, &node, &claim, kept);
            let mut mounted =
                mounted.unwrap_or_else(|| json!({"persistentVolumeClaim": {"claimName": claim}}));
            mounted["name"] = json!(format!("v{at}"));
            volumes.push(mounted);
        }
        question.pod = question.pod.spec("volumes", json!(volumes));
        question
    }

    /// One volume; none is a claim of that name.
    fn one(
        &mut self,
        dice: &mut Dice,
        lane: usize,
        node: &str,
        name: &str,
        kept: &[String],
    ) -> Option<Value> {
        let size = dice.one(&["1Gi", "6Gi", "20Gi"]);
        let csi = format!("csi-{lane}.test");
        match dice.roll(12) {
            0 | 1 => {
                // Bound beforehand.
                let driver = (dice.roll(3) > 0).then_some(csi);
                let mode = dice.one(&["ReadWriteOnce", "ReadWriteOncePod"]);
                let mut volume = volume(dice, name, "bound", driver);
                volume["spec"]["accessModes"] = json!([mode]);
                volume["spec"]["volumeMode"] = json!("Filesystem");
                volume["spec"]["claimRef"] = json!({"namespace": "default", "name": name});
                let mut claim = claim(name, "bound", mode, "1Gi");
                claim["spec"]["volumeName"] = json!(name);
                self.objects.extend([volume, claim]);
                self.bound.push(name.to_owned());
                self.shareable = Some(name.to_owned());
            }
            2 => self.objects.push(claim(name, &format!("dynamic-{lane}"), "ReadWriteOnce", size)),
            3 => self.objects.push(claim(name, &format!("zone-{lane}"), "ReadWriteOnce", size)),
            4 => self.objects.push(claim(name, &format!("capacity-{lane}"), "ReadWriteOnce", size)),
            5..=7 => {
                // Volumes that exist.
                let own = format!("static-{name}");
                self.objects.push(class(&own, "kubernetes.io/no-provisioner", true, None));
                let count = dice.roll(4);
                for index in 0..count {
                    let volume_name = format!("{name}-pv-{index}");
                    self.objects.push(volume(dice, &volume_name, &own, None));
                    self.available.push(volume_name);
                }
                let mut claim = claim(
                    name,
                    &own,
                    dice.one(&["ReadWriteOnce", "ReadWriteMany"]),
                    dice.one(&["1Gi", "2Gi", "4Gi"]),
                );
                if dice.roll(3) == 0 {
                    claim["spec"]["selector"] = json!({"matchLabels": {"tier": "fast"}});
                }
                if dice.roll(6) == 0 {
                    claim["spec"]["volumeMode"] = json!("Block");
                }
                self.objects.push(claim);
            }
            8 => {
                let mut claim = claim(name, &format!("dynamic-{lane}"), "ReadWriteOnce", size);
                let selected = dice.one(&["n0", "n1", "n2", node]);
                claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = json!(selected);
                // A volume for another node may be accessible from here, and would change the verdict.
                if selected != node {
                    claim["metadata"]["annotations"][HELD] = json!("true");
                }
                self.objects.push(claim);
            }
            9 if dice.roll(2) == 0 => {
                self.objects.push(claim(name, &format!("immediate-{lane}"), "ReadWriteOnce", size));
            }
            // It does not exist.
            9 => {}
            10 => {
                let disk = json!({"monitors": [dice.one(&["x", "y"])], "image": format!("image-{lane}"),
                    "readOnly": dice.roll(2) == 0});
                return Some(json!({"rbd": disk}));
            }
            _ => {
                let other = kept.get(dice.roll(kept.len().max(1)))?;
                return Some(json!({"persistentVolumeClaim": {"claimName": other}}));
            }
        }
        None
    }
}

/// Creates everything and waits until it is ready; gives whether the Pod is bound, with what is said.
async fn ask(stage: &Stage, question: &Question, foreign: bool) -> Result<(bool, String)> {
    for object in &question.objects {
        stage.applier.create(object.clone()).await?;
    }
    let volumes: Api<PersistentVolume> = Api::all(stage.client.clone());
    for name in &question.available {
        wait::until(&format!("volume {name} is available"), PATIENCE, || async {
            let phase = volumes.get(name).await?.status.and_then(|status| status.phase);
            ensure!(phase.as_deref() == Some("Available"), "{phase:?}");
            Ok(())
        })
        .await?;
    }
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(stage.client.clone());
    for name in &question.bound {
        wait::until(&format!("claim {name} is bound"), PATIENCE, || async {
            let phase = claims.get(name).await?.status.and_then(|status| status.phase);
            ensure!(phase.as_deref() == Some("Bound"), "{phase:?}");
            Ok(())
        })
        .await?;
    }
    let pod = if foreign { question.pod.clone().foreign() } else { question.pod.clone() }.build();
    let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
    stage.applier.create(pod).await?;
    wait::until(&format!("there is a verdict on {name}"), PATIENCE, || async {
        let pod = stage.pod(&name).await?;
        let told = scheduled_condition(&pod).unwrap_or_default();
        // The claim may be heard of after the Pod.
        let unheard = |object: &Value| {
            object["kind"] == "PersistentVolumeClaim"
                && object["metadata"]["name"].as_str().is_some_and(|name| {
                    told.contains(&format!("{name}\" not found"))
                        || told.contains(&format!("{name} does not exist"))
                })
        };
        ensure!(node_of(&pod).is_some() || !question.objects.iter().any(unheard), "'{told}'");
        match node_of(&pod) {
            Some(_) => Ok((true, told)),
            None if told.starts_with("False Unschedulable") => Ok((false, told)),
            // Of a claim that can't be used yet; not while a volume is being provisioned.
            None if told.starts_with("False FluxionWaitingForVolumes: Pod ") => Ok((false, told)),
            None => bail!("'{told}'"),
        }
    })
    .await
}

/// Deletes the Pod, and when it is gone, its claims and volumes.
async fn forget(stage: &Stage, name: &str, question: &Question) -> Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(stage.client.clone());
    pods.delete(name, &DeleteParams::default().grace_period(0)).await?;
    wait::until(&format!("{name} is gone"), PATIENCE, || async {
        ensure!(pods.get_opt(name).await?.is_none(), "it is there");
        Ok(())
    })
    .await?;
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(stage.client.clone());
    let volumes: Api<PersistentVolume> = Api::all(stage.client.clone());
    for object in &question.objects {
        let name = object["metadata"]["name"].as_str().unwrap();
        // Nothing waits for these: their names are not used again.
        match object["kind"].as_str().unwrap() {
            "PersistentVolumeClaim" => drop(claims.delete(name, &DeleteParams::default()).await),
            "PersistentVolume" => drop(volumes.delete(name, &DeleteParams::default()).await),
            _ => {}
        }
    }
    Ok(())
}

/// Asks about so many Pods; gives how many were refused, and what differed.
async fn lane(stage: &Stage, lane: usize, rounds: usize, seed: u64) -> Result<(usize, Vec<String>)> {
    let (mut kept, mut refused, mut differing) = (Vec::<(String, Question)>::new(), 0, Vec::new());
    for round in 0..rounds {
        let mut dice = Dice::new(seed ^ ((lane as u64) << 40), round);
        let shareable: Vec<String> =
            kept.iter().filter_map(|(_, question)| question.shareable.clone()).collect();
        let [theirs, ours] = ["t", "o"].map(|who| format!("{who}-{lane}-{round}"));
        let question = Question::new(dice.clone(), lane, &theirs, &shareable);
        let mut expected = ask(stage, &question, true).await?;
        forget(stage, &theirs, &question).await?;
        let question = Question::new(dice.clone(), lane, &ours, &shareable);
        let found = ask(stage, &question, false).await?;
        if found.0 != expected.0 {
            // kube-scheduler may not have heard of everything yet that the API server has.
            let again = format!("{theirs}-again");
            let repeated = Question::new(dice.clone(), lane, &again, &shareable);
            if found.0 {
                forget(stage, &ours, &question).await?;
            }
            expected = ask(stage, &repeated, true).await?;
            forget(stage, &again, &repeated).await?;
            if found.0 != expected.0 {
                let objects = serde_json::to_string(&question.objects)?;
                let pod = question.pod.clone().build();
                differing.push(format!("{expected:?}, {found:?}: {pod} {objects}"));
            }
            if found.0 {
                continue;
            }
        }
        if found.0 && dice.roll(3) > 0 {
            kept.push((ours, question));
        } else {
            refused += usize::from(!found.0);
            forget(stage, &ours, &question).await?;
        }
        if kept.len() > 4 {
            let (name, question) = kept.swap_remove(dice.roll(kept.len()));
            forget(stage, &name, &question).await?;
        }
    }
    Ok((refused, differing))
}

#[tokio::test]
async fn pods_with_volumes_get_the_verdict_of_kube_scheduler() {
    // One node is in no zone.
    let nodes: Vec<NodeSpec> = [("n0", "a"), ("n1", "a"), ("n2", "b"), ("n3", "")]
        .map(
            |(name, zone)| {
                if zone.is_empty() { NodeSpec::new(name) } else { NodeSpec::new(name).label(ZONE, zone) }
            },
        )
        .into();
    let options = Options::default().with_scheduler();
    let stage = Stage::start(options, &Settings::default(), &nodes).await.unwrap();
    for index in 0..LANES {
        stage.create(lane_objects(index)).await.unwrap();
    }
    let all: Api<Node> = Api::all(stage.client.clone());
    for (name, count) in [("n0", 1), ("n1", 2), ("n2", 3)] {
        let uid = all.get(name).await.unwrap().uid().unwrap();
        let drivers: Vec<Value> = (0..LANES)
            .map(|lane| json!({"name": format!("csi-{lane}.test"), "nodeID": name, "allocatable": {"count": count}}))
            .collect();
        let owner = json!([{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}]);
        let node = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
            "metadata": {"name": name, "ownerReferences": owner}, "spec": {"drivers": drivers}});
        stage.create([node]).await.unwrap();
    }
    let _provisioner = Provisioner::start(stage.client.clone(), Behaviour::default());
    let total: usize = number("FLUXION_VERDICTS", 48);
    let seed = number("FLUXION_SEED", 7);
    let lanes = (0..LANES).map(|index| lane(&stage, index, total.div_ceil(LANES), seed));
    let results: Vec<_> = futures::future::try_join_all(lanes).await.unwrap();
    let refused: usize = results.iter().map(|(refused, _)| refused).sum();
    let differing: Vec<&String> = results.iter().flat_map(|(_, differing)| differing).collect();
    println!("{refused} of {total} refused, {} verdicts differ", differing.len());
    assert!(differing.is_empty(), "{differing:#?}");
    assert!(refused * 5 > total && refused * 5 < 4 * total, "{refused} of {total} refused");
}
