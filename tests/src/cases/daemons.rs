//! Pods of a `DaemonSet`, as a real control plane needs them: made by their controller.
//!
//! A case may write down the Pods alone, with a controller that is nowhere. The garbage collector would delete
//! those; so the controller is made, and what it makes is bound to its nodes as kube-scheduler would.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::bind;
use crate::apply::Applier;
use crate::wait;

/// Namespace and name of each `DaemonSet`, and the nodes it must be on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Placed(BTreeMap<(String, String), Vec<String>>);

impl Placed {
    /// The nodes of the DaemonSet, where it is one of these.
    pub(super) fn of(&self, object: &Value) -> Option<&[String]> {
        let key = (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
        self.0.get(&key).filter(|_| object["kind"] == "DaemonSet").map(Vec::as_slice)
    }
}

/// The label by which such a DaemonSet knows its Pods.
const LABEL: &str = "fluxion-tests/daemons";

/// The objects with a DaemonSet in place of the Pods of one that is not among them, and where its Pods belong.
pub(super) fn with_controllers(objects: &[Value]) -> (Vec<Value>, Placed) {
    let mut placed = Placed::default();
    let mut all = Vec::new();
    for object in objects {
        let Some(name) = daemon_set_of(object).filter(|name| !is_among(objects, name)) else {
            all.push(object.clone());
            continue;
        };
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
        let node = object["spec"]["nodeName"].as_str().unwrap_or_default().to_owned();
        let nodes = placed.0.entry((namespace.clone(), name.clone())).or_default();
        if nodes.is_empty() {
            all.push(daemon_set(&namespace, &name, object));
        }
        nodes.push(node);
    }
    (all, placed)
}

fn daemon_set_of(object: &Value) -> Option<String> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["kind"] == "DaemonSet" && owner["controller"] == true)?;
    (object["kind"] == "Pod").then(|| owner["name"].as_str().map(str::to_owned))?
}

fn is_among(objects: &[Value], name: &str) -> bool {
    objects.iter().any(|object| object["kind"] == "DaemonSet" && object["metadata"]["name"] == name)
}

/// A DaemonSet whose Pods are as this one.
fn daemon_set(namespace: &str, name: &str, pod: &Value) -> Value {
    let mut spec = pod["spec"].clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.remove("nodeName");
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": { "name": name, "namespace": namespace },
        "spec": {
            "selector": { "matchLabels": { LABEL: name } },
            "template": { "metadata": { "labels": { LABEL: name } }, "spec": spec },
        },
    })
}

/// Waits until the DaemonSet has made its Pods, and binds them to the nodes they are made for.
pub(super) async fn bind(applier: &Applier, set: &Value, nodes: &[String]) -> Result<()> {
    let (namespace, name) = (text(&set["metadata"]["namespace"]), text(&set["metadata"]["name"]));
    let pods: Api<Pod> = Api::namespaced(applier.client().clone(), &namespace);
    let mine = ListParams::default().labels(&format!("{LABEL}={name}"));
    let what = format!("DaemonSet {namespace}/{name} has a Pod on each of {}", nodes.join(", "));
    wait::until(&what, Duration::from_secs(20), || async {
        let mut missing = nodes.to_vec();
        for pod in pods.list(&mine).await? {
            let Some(node) = meant_for(&serde_json::to_value(&pod)?) else { continue };
            missing.retain(|one| *one != node);
            if pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none()) {
                bind::bind(applier.client(), &namespace, &pod.name_any(), &node).await?;
            }
        }
        if missing.is_empty() { Ok(()) } else { bail!("not on {}", missing.join(", ")) }
    })
    .await
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The node that a DaemonSet's Pod is made for, from its affinity.
fn meant_for(pod: &Value) -> Option<String> {
    let terms =
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let fields = pod.pointer(terms)?.as_array()?.iter().filter_map(|term| term["matchFields"].as_array());
    let name = fields.flatten().find(|field| field["key"] == "metadata.name")?;
    name["values"][0].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, node: &str) -> Value {
        json!({
            "kind": "Pod",
            "metadata": {
                "name": name, "namespace": "kube-system",
                "ownerReferences": [{ "kind": "DaemonSet", "name": "log", "controller": true }],
            },
            "spec": { "nodeName": node, "containers": [] },
        })
    }

    #[test]
    fn one_controller_stands_for_its_pods() {
        let plain = json!({ "kind": "Pod", "metadata": { "name": "a" } });
        let (all, placed) = with_controllers(&[pod("log-1", "n1"), plain.clone(), pod("log-2", "n2")]);
        assert_eq!(all.len(), 2);
        assert_eq!(all[0]["kind"], "DaemonSet");
        assert_eq!(all[0]["spec"]["template"]["spec"], json!({ "containers": [] }));
        assert_eq!(all[1], plain);
        assert_eq!(placed.of(&all[0]).unwrap(), ["n1", "n2"]);
        assert_eq!(placed.of(&plain), None);
    }

    #[test]
    fn a_controller_that_is_there_makes_its_own() {
        let set = json!({ "kind": "DaemonSet", "metadata": { "name": "log" } });
        let objects = [set, pod("log-1", "n1")];
        assert_eq!(with_controllers(&objects), (objects.to_vec(), Placed::default()));
    }

    #[test]
    fn the_node_of_a_daemon_stands_in_its_affinity() {
        let pod = json!({ "spec": { "affinity": { "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
                { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n2"] }] }
            ] } } } } });
        assert_eq!(meant_for(&pod).unwrap(), "n2");
        assert_eq!(meant_for(&json!({})), None);
    }
}
