//! Random Pods: what they request, and their constraints on nodes and on other Pods.

use fluxion_tests::random::Dice;
use serde_json::{Map, Value, json};

use crate::nodes::{self, HOST, ZONE};

pub(crate) const NAMESPACES: [(&str, &str); 3] = [("default", "red"), ("elsewhere", "blue"), ("third", "")];
const KEYS: [&str; 4] = [ZONE, HOST, "rack", ZONE];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

fn selector(dice: &mut Dice) -> Value {
    match dice.roll(9) {
        0 => json!({}),
        1 => Value::Null,
        2 => {
            json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [dice.one(&["a", "b"])]}]})
        }
        3 => {
            json!({"matchExpressions": [{"key": "tier", "operator": dice.one(&["DoesNotExist", "Exists"])}]})
        }
        4 => json!({"matchLabels": {"app": dice.one(&["a", "b"]), "tier": dice.one(&["x", "y"])}}),
        _ => json!({"matchLabels": {"app": dice.one(&["a", "b"])}}),
    }
}

fn term(dice: &mut Dice) -> Value {
    let mut term = json!({"topologyKey": dice.one(&KEYS), "labelSelector": selector(dice)});
    if dice.rarely(4) {
        term["namespaceSelector"] = match dice.roll(4) {
            0 => json!({}),
            1 => json!({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}),
            _ => json!({"matchLabels": {"team": dice.one(&["red", "blue"])}}),
        };
    }
    if dice.rarely(4) {
        term["namespaces"] = json!([dice.one(&["default", "elsewhere", "missing"])]);
    }
    term
}

fn amounts(dice: &mut Dice) -> Value {
    let mut amounts = Map::new();
    let mut one = |dice: &mut Dice, times: usize, resource: &str, of: &[&str]| {
        if dice.rarely(times) {
            amounts.insert(resource.to_owned(), json!(dice.one(of)));
        }
    };
    one(dice, 2, "cpu", &["100m", "500m", "1", "0", "1.5", "100u"]);
    one(dice, 3, "memory", &["100Mi", "1Gi", "500M", "0.5"]);
    one(dice, 8, "ephemeral-storage", &["1Gi", "600Mi"]);
    one(dice, 8, "example.com/device", &["1", "2", "0"]);
    one(dice, 16, "hugepages-2Mi", &["32Mi", "64Mi"]);
    Value::Object(amounts)
}

fn container(dice: &mut Dice, name: &str) -> Value {
    let mut container = json!({"name": name, "image": "x", "resources": {"requests": amounts(dice)}});
    if dice.rarely(8) {
        let port = 8000 + dice.roll(2);
        let mut port = json!({"containerPort": port, "hostPort": port,
            "protocol": dice.one(&["TCP", "TCP", "UDP"])});
        if dice.rarely(2) {
            port["hostIP"] = json!(dice.one(&["127.0.0.1", "127.0.0.2", "0.0.0.0", ""]));
        }
        container["ports"] = json!([port]);
    }
    container
}

fn containers(dice: &mut Dice, spec: &mut Value) {
    let mut all = vec![container(dice, "main")];
    if dice.rarely(4) {
        all.push(container(dice, "other"));
    }
    spec["containers"] = json!(all);
    if dice.rarely(6) {
        let mut init = vec![container(dice, "first")];
        if dice.rarely(2) {
            init.push(container(dice, "second"));
            let at = dice.roll(2);
            init[at]["restartPolicy"] = json!("Always");
        }
        spec["initContainers"] = json!(init);
    }
    if dice.rarely(12) {
        spec["overhead"] = json!({"cpu": "200m", "memory": "10Mi"});
    }
    if dice.rarely(16) {
        spec["resources"] = json!({"requests": {"cpu": "1800m", "memory": "1200Mi"}});
    }
}

/// Its constraints on other Pods. Those that run have them less often.
fn affinity(dice: &mut Dice, seldom: usize) -> Value {
    let mut affinity = json!({});
    for (kind, times) in [("podAffinity", 3 * seldom), ("podAntiAffinity", 3)] {
        if dice.rarely(times) {
            let terms: Vec<Value> = (0..=usize::from(dice.rarely(4))).map(|_| term(dice)).collect();
            affinity[kind] = json!({REQUIRED: terms});
        }
    }
    affinity
}

fn base(dice: &mut Dice, name: &str) -> Value {
    let mut labels = json!({"app": dice.one(&["a", "b", "c"])});
    if dice.rarely(2) {
        labels["tier"] = json!(dice.one(&["x", "y"]));
    }
    let namespace = if dice.rarely(4) { dice.one(&["elsewhere", "third"]) } else { "default" };
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{name}"), "labels": labels},
        "spec": {}, "status": {"phase": "Pending"}});
    containers(dice, &mut pod["spec"]);
    pod
}

/// A Pod on a node.
pub(crate) fn running(dice: &mut Dice, name: &str, node: &str) -> Value {
    let mut pod = base(dice, name);
    pod["spec"]["nodeName"] = json!(node);
    pod["spec"]["affinity"] = affinity(dice, 3);
    pod["status"]["phase"] =
        json!(dice.one(&["Running", "Running", "Running", "Pending", "Succeeded", "Failed"]));
    if dice.rarely(8) {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    }
    if dice.rarely(6) {
        resized(dice, &mut pod);
    }
    pod
}

/// It is being resized.
fn resized(dice: &mut Dice, pod: &mut Value) {
    let both = dice.rarely(2);
    let mut status = |containers: &Value| -> Value {
        let one = |container: &Value| {
            let mut resources = container["resources"]["requests"].clone();
            for (field, of) in [("cpu", ["50m", "900m"]), ("memory", ["50Mi", "900Mi"])] {
                if resources.get(field).is_some() {
                    resources[field] = json!(dice.one(&of));
                }
            }
            let mut status = json!({"name": container["name"], "ready": true, "restartCount": 0, "image": "x",
                "imageID": "x", "resources": {"requests": resources}});
            if both {
                status["allocatedResources"] = container["resources"]["requests"].clone();
            }
            status
        };
        containers.as_array().into_iter().flatten().map(one).collect()
    };
    pod["status"]["containerStatuses"] = status(&pod["spec"]["containers"]);
    pod["status"]["initContainerStatuses"] = status(&pod["spec"]["initContainers"]);
    if pod["spec"].get("resources").is_some() && dice.rarely(2) {
        pod["status"]["allocatedResources"] = json!({"cpu": "1", "memory": dice.one(&["1Gi", "1300Mi"])});
        pod["status"]["resources"] = json!({"requests": {"cpu": dice.one(&["1", "1900m"]), "memory": "1Gi"}});
    }
    if dice.rarely(2) {
        let reason = dice.one(&["Infeasible", "Deferred"]);
        pod["status"]["conditions"] =
            json!([{"type": "PodResizePending", "status": "True", "reason": reason}]);
    }
}

/// A Pod without a node.
pub(crate) fn waiting(dice: &mut Dice, name: &str, nodes: &[String]) -> Value {
    let mut pod = base(dice, name);
    let spec = &mut pod["spec"];
    spec["affinity"] = affinity(dice, 1);
    if dice.rarely(4) {
        spec["affinity"]["nodeAffinity"] = nodes::affinity(dice, nodes);
    }
    if dice.rarely(6) {
        spec["nodeSelector"] = match dice.roll(2) {
            0 => json!({ZONE: dice.one(&["a", "b"])}),
            _ => json!({"disk": "ssd"}),
        };
    }
    if dice.rarely(3) {
        let count = 1 + usize::from(dice.rarely(3));
        let mut spread = || {
            let selector = selector(dice);
            dice.spread(&KEYS, selector)
        };
        spec["topologySpreadConstraints"] = (0..count).map(|_| spread()).collect();
    }
    if dice.rarely(2) {
        spec["tolerations"] = dice.list(2, nodes::toleration);
    }
    pod
}
