//! Random nodes, and what Pods require of them.

use fluxion_tests::random::Dice;
use serde_json::{Map, Value, json};

pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
pub(crate) const HOST: &str = "kubernetes.io/hostname";

/// The resource that only this node has.
pub(crate) fn only(node: &str) -> String {
    format!("example.com/only-{node}")
}

pub(crate) fn node(dice: &mut Dice, name: &str) -> Value {
    let mut labels = Map::new();
    let mut label = |key: &str, value: &str| {
        if !value.is_empty() {
            labels.insert(key.to_owned(), json!(value));
        }
    };
    label(HOST, if dice.rarely(30) { "" } else { name });
    label(ZONE, dice.one(&["a", "a", "b", "b", "c", ""]));
    label("rack", dice.one(&["r", "s", ""]));
    label("disk", dice.one(&["ssd", "hdd", ""]));
    label("generation", dice.one(&["1", "2", "3", "-1", "new", ""]));
    let mut taints = Vec::new();
    if dice.rarely(8) {
        let effect = dice.one(&["NoSchedule", "NoExecute", "PreferNoSchedule"]);
        taints.push(json!({"key": "dedicated", "value": dice.one(&["ml", "web", ""]), "effect": effect}));
    }
    if dice.rarely(20) {
        taints.push(json!({"key": "maintenance", "effect": "NoSchedule"}));
    }
    // The node controller turns conditions into taints.
    let (cordoned, ready) = (dice.rarely(30), !dice.rarely(30));
    if cordoned {
        taints.push(json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}));
    }
    if !ready {
        taints.push(json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}));
    }
    let mut offered = json!({
        "cpu": dice.one(&["1", "2", "1500m", "3"]), "memory": dice.one(&["1Gi", "2Gi", "4000000k", "1500M"]),
        "pods": dice.one(&["2", "4", "8", "8"]), "ephemeral-storage": dice.one(&["10Gi", "1Gi"]),
    });
    if dice.rarely(2) {
        offered["example.com/device"] = json!(dice.one(&["0", "1", "3"]));
    }
    if dice.rarely(4) {
        offered["hugepages-2Mi"] = json!("64Mi");
    }
    offered[only(name)] = json!("1");
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "labels": labels},
        "spec": {"taints": taints, "unschedulable": cordoned},
        "status": {"capacity": offered, "allocatable": offered,
            "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]}})
}

fn requirement(dice: &mut Dice) -> Value {
    let (key, values) = match dice.roll(4) {
        0 => (ZONE, ["a", "b"]),
        1 => ("rack", ["r", "s"]),
        2 => ("disk", ["ssd", "hdd"]),
        _ => {
            let operator = dice.one(&["Gt", "Lt"]);
            return json!({"key": "generation", "operator": operator, "values": [dice.one(&["0", "1", "2"])]});
        }
    };
    match dice.roll(4) {
        0 => json!({"key": key, "operator": "Exists"}),
        1 => json!({"key": key, "operator": "DoesNotExist"}),
        2 => json!({"key": key, "operator": "NotIn", "values": [dice.one(&values)]}),
        _ if dice.rarely(2) => json!({"key": key, "operator": "In", "values": values}),
        _ => json!({"key": key, "operator": "In", "values": [dice.one(&values)]}),
    }
}

/// Required node affinity. Both lists of a term may be empty: it then matches no node.
pub(crate) fn affinity(dice: &mut Dice, nodes: &[String]) -> Value {
    let term = |dice: &mut Dice| {
        let mut term = json!({"matchExpressions": dice.list(2, requirement)});
        if dice.rarely(4) {
            let operator = dice.one(&["In", "In", "NotIn"]);
            let name = &nodes[dice.roll(nodes.len())];
            term["matchFields"] = json!([{"key": "metadata.name", "operator": operator, "values": [name]}]);
        }
        term
    };
    let terms: Vec<Value> = (0..=dice.roll(2)).map(|_| term(dice)).collect();
    json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}})
}

pub(crate) fn toleration(dice: &mut Dice) -> Value {
    let mut toleration = match dice.roll(5) {
        0 => json!({"operator": "Exists"}),
        1 => {
            json!({"key": dice.one(&["node.kubernetes.io/not-ready", "node.kubernetes.io/unschedulable", "maintenance"]),
            "operator": "Exists"})
        }
        2 => json!({"key": "dedicated", "operator": "Exists"}),
        3 => json!({"key": "maintenance"}),
        _ => json!({"key": "dedicated", "operator": "Equal", "value": dice.one(&["ml", "web", ""])}),
    };
    if dice.rarely(2) {
        toleration["effect"] = json!(dice.one(&["NoSchedule", "NoExecute", "PreferNoSchedule"]));
    }
    toleration
}
