//! What Pods ask for adds up to what Kubernetes itself sums up.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::collections::BTreeMap;

use fluxion_tests::manifests::PodManifest;
use fluxion_tests::nodes::NodeSpec;
use fluxion_tests::stage::Stage;
use serde_json::json;

/// The lines `cpu 1500m (37%) …` below "Allocated resources" of `kubectl describe node`.
fn described(text: &str) -> BTreeMap<String, String> {
    let (_, rest) = text.split_once("Allocated resources:").unwrap();
    rest.lines()
        .skip_while(|line| !line.trim_start().starts_with("--------"))
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.to_owned(), words.next()?.to_owned()))
        })
        .collect()
}

#[tokio::test]
async fn sums_are_those_of_kubectl_describe() {
    let node = NodeSpec::new("n1")
        .with("cpu", "16")
        .with("memory", "64Gi")
        .with("hugepages-1Gi", "8Gi")
        .with("nvidia.com/mig-3g.20gb", "4");
    let stage = Stage::with_nodes(&[node]).await.unwrap();
    let overhead = json!({
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": { "name": "sandboxed" },
        "handler": "sandboxed",
        "overhead": { "podFixed": { "cpu": "250m", "memory": "120Mi" } },
    });
    let container = |name: &str, cpu: &str, memory: &str| json!({ "name": name, "image": "pause", "resources": { "requests": { "cpu": cpu, "memory": memory } } });
    let mut sidecar = container("proxy", "200m", "128Mi");
    sidecar["restartPolicy"] = json!("Always");
    let pods = [
        PodManifest::new("fraction").request("cpu", "100m").request("memory", "2.56Gi"),
        PodManifest::new("millibytes").request("cpu", "0.1").request("memory", "3731881984500m"),
        PodManifest::new("huge").limit("hugepages-1Gi", "2Gi").request("cpu", "1").request("memory", "1Gi"),
        PodManifest::new("mig").limit("nvidia.com/mig-3g.20gb", "2").request("cpu", "2"),
        PodManifest::new("init-peak")
            .request("cpu", "1")
            .request("memory", "512Mi")
            .spec("initContainers", json!([sidecar, container("setup", "3", "256Mi")])),
        PodManifest::new("wrapped")
            .request("cpu", "500m")
            .request("memory", "1Gi")
            .spec("runtimeClassName", json!("sandboxed")),
    ];
    stage.create(std::iter::once(overhead)).await.unwrap();
    let count = pods.len();
    for pod in pods {
        stage.create([pod.label("sum", "yes").build()]).await.unwrap();
    }
    stage.bound("sum=yes", count).await.unwrap();

    let node = stage
        .node_becomes("n1", "fully booked", |node| {
            node.status.allocated.get("pods").is_some_and(|pods| pods == "6")
        })
        .await
        .unwrap();
    // 100 + 100 + 1000 + 2000, the setup of 3000 beside the proxy of 200, and 500 with an overhead of 250.
    assert_eq!(node.status.allocated["cpu"], "7150m");
    assert_eq!(node.status.allocated["hugepages-1Gi"], "2147483648");
    assert_eq!(node.status.allocated["nvidia.com/mig-3g.20gb"], "2");
    // 2.56Gi and 3731881984.5 bytes, each rounded up; 1Gi; 512Mi + 128Mi; 1Gi + 120Mi.
    let memory = 2_748_779_070_u64 + 3_731_881_985 + (1 << 30) + (640 << 20) + (1 << 30) + (120 << 20);
    assert_eq!(node.status.allocated["memory"], memory.to_string());

    let said = described(&stage.cluster.kubectl(&["describe", "node", "n1"]).await.unwrap());
    assert_eq!(said["cpu"], "7150m");
    assert_eq!(said["hugepages-1Gi"], "2Gi");
    assert_eq!(said["nvidia.com/mig-3g.20gb"], "2");
    // kubectl adds before it rounds, so it may say one byte less for each fraction that was rounded up.
    let theirs = bytes(&said["memory"]);
    assert!(theirs <= memory && memory - theirs <= 2, "kubectl says {}, we {memory}", said["memory"]);
}

/// Plain bytes, Ki, Mi, Gi or thousandths, as describe writes them; rounded up.
fn bytes(text: &str) -> u64 {
    for (suffix, factor) in [("Ki", 1_u64 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30)] {
        if let Some(number) = text.strip_suffix(suffix) {
            return number.parse::<u64>().unwrap() * factor;
        }
    }
    match text.strip_suffix('m') {
        Some(number) => number.parse::<u64>().unwrap().div_ceil(1000),
        None => text.parse().unwrap(),
    }
}
