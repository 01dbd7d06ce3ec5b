//! Constraints between Pods, on a real control plane: the same Pod asks kube-scheduler and the inspector.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use anyhow::{Result, bail};
use fluxion_tests::inspector::Settings;
use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::random::Dice;
use fluxion_tests::stage::{SOON, Stage, node_of, scheduled_condition};
use fluxion_tests::{Options, wait};
use serde_json::{Value, json};

const KEYS: [&str; 3] = ["zone", "kubernetes.io/hostname", "rack"];

fn selector(dice: &mut Dice) -> Value {
    match dice.roll(6) {
        0 => json!({}),
        1 => {
            json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [dice.one(&["a", "b"])]}]})
        }
        2 => json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}),
        _ => json!({"matchLabels": {"app": dice.one(&["a", "b"])}}),
    }
}

fn term(dice: &mut Dice) -> Value {
    let mut term = json!({"topologyKey": dice.one(&KEYS), "labelSelector": selector(dice)});
    match dice.roll(6) {
        0 => term["namespaceSelector"] = json!({"matchLabels": {"team": dice.one(&["red", "blue"])}}),
        1 => term["namespaces"] = json!([dice.one(&["default", "elsewhere"])]),
        // A key must not be in both.
        2 if term["labelSelector"].get("matchExpressions").is_none() => {
            term["matchLabelKeys"] = json!(["tier"]);
        }
        _ => {}
    }
    term
}

/// A Pod for one node.
fn pod(dice: &mut Dice, nodes: usize) -> PodManifest {
    let mut pod = PodManifest::new("p").label("app", dice.one(&["a", "b", "c"])).request("cpu", "100m");
    if dice.roll(2) == 0 {
        pod = pod.label("tier", dice.one(&["x", "y"]));
    }
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let mut affinity = json!({});
    if dice.roll(3) == 0 {
        affinity["podAffinity"] = json!({required: [term(dice)]});
    }
    if dice.roll(3) == 0 {
        affinity["podAntiAffinity"] = json!({required: [term(dice)]});
    }
    // By node affinity, which topology spread constraints may ignore.
    let node = json!([format!("n{}", dice.roll(nodes))]);
    affinity["nodeAffinity"] = json!({required: {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": node}]}]}});
    if dice.roll(3) == 0 {
        let selector = selector(dice);
        pod = pod.spec("topologySpreadConstraints", json!([dice.spread(&KEYS, selector)]));
    }
    pod.spec("affinity", affinity)
}

/// Whether the Pod is bound, once its scheduler has decided; with what is said.
async fn verdict(stage: &Stage, name: &str) -> Result<(bool, String)> {
    wait::until(&format!("there is a verdict on {name}"), SOON, || async {
        let pod = stage.pod(name).await?;
        let told = scheduled_condition(&pod).unwrap_or_default();
        match node_of(&pod) {
            Some(_) => Ok((true, told)),
            None if told.contains("nodes are available") => Ok((false, told)),
            None => bail!("'{told}'"),
        }
    })
    .await
}

#[tokio::test]
async fn pods_get_the_verdict_of_kube_scheduler() {
    let node = |at: usize, zone: &str, rack: &str| {
        let node = NodeSpec::new(format!("n{at}")).label("zone", zone);
        if rack.is_empty() { node } else { node.label("rack", rack) }
    };
    let nodes = [node(0, "a", "r"), node(1, "a", "s"), node(2, "b", "r"), node(3, "b", "")];
    let stage =
        Stage::start(Options::default().with_scheduler(), &Settings::default(), &nodes).await.unwrap();
    let namespace = kube::core::GroupVersionKind::gvk("", "v1", "Namespace");
    let red = json!({"metadata": {"labels": {"team": "red"}}});
    stage.applier.patch(&namespace, "", "default", None, &red).await.unwrap();
    let mut dice = Dice::new(7, 0);
    let (mut bound, mut refused) = (Vec::new(), 0);
    for number in 0..80 {
        let pod = pod(&mut dice, nodes.len());
        let [theirs, ours] = ["theirs", "ours"].map(|who| format!("{who}-{number}"));
        stage.create([pod.named(&theirs).foreign().build()]).await.unwrap();
        let expected = verdict(&stage, &theirs).await.unwrap();
        stage.delete_pod(&theirs).await.unwrap();
        stage.create([pod.named(&ours).build()]).await.unwrap();
        let found = verdict(&stage, &ours).await.unwrap();
        assert_eq!(found.0, expected.0, "{expected:?}, {found:?}: {}", pod.named(&ours).build());
        if found.0 {
            bound.push(ours);
        } else {
            refused += 1;
            stage.delete_pod(&ours).await.unwrap();
        }
        // Not everything may stay, or soon nothing is allowed any more.
        if bound.len() > 6 {
            let gone = bound.swap_remove(dice.roll(bound.len()));
            stage.delete_pod(&gone).await.unwrap();
        }
    }
    assert!(refused > 10 && refused < 70, "{refused} of 80 refused");
}
