//! Fake nodes: created Ready, many at once.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::wait;

/// Requests under way at once.
const IN_FLIGHT: usize = 16;

/// What a node is to be like.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    name: String,
    labels: BTreeMap<String, String>,
    resources: BTreeMap<String, String>,
}

impl NodeSpec {
    /// A node with 4 CPUs, 16Gi of memory and room for 110 Pods.
    pub fn new(name: impl Into<String>) -> Self {
        let resources = [("cpu", "4"), ("memory", "16Gi"), ("pods", "110")];
        Self {
            name: name.into(),
            labels: BTreeMap::new(),
            resources: resources.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        }
    }

    /// With an amount of a resource, in place of the default.
    #[must_use]
    pub fn with(mut self, resource: &str, amount: &str) -> Self {
        self.resources.insert(resource.to_owned(), amount.to_owned());
        self
    }

    /// With a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// As a manifest, its status included: a kubelet registers its node in the same way.
    pub fn manifest(&self) -> Value {
        let mut labels = self.labels.clone();
        labels.entry("kubernetes.io/hostname".to_owned()).or_insert_with(|| self.name.clone());
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": { "name": self.name, "labels": labels },
            "status": { "capacity": self.resources, "allocatable": self.resources, "conditions": [ready()] },
        })
    }
}

/// The condition of a healthy node.
pub(crate) fn ready() -> Value {
    json!({ "type": "Ready", "status": "True", "reason": "KubeletReady" })
}

/// Creates the nodes and waits until all take Pods.
pub async fn create(client: &Client, specs: &[NodeSpec]) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    futures::stream::iter(specs)
        .map(|spec| {
            let nodes = nodes.clone();
            async move {
                let node: Node = serde_json::from_value(spec.manifest())?;
                nodes.create(&PostParams::default(), &node).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<()>()
        .await?;
    untainted(client).await
}

/// `count` equal nodes, named node-0 to node-(count-1).
pub async fn create_many(client: &Client, count: usize) -> Result<()> {
    let specs: Vec<NodeSpec> = (0..count).map(|index| NodeSpec::new(format!("node-{index}"))).collect();
    create(client, &specs).await
}

/// Waits until no Ready node carries the taint that each new node is born with.
pub(crate) async fn untainted(client: &Client) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    wait::until("new nodes have lost their not-ready taint", Duration::from_mins(5), || async {
        let list = nodes.list(&ListParams::default()).await?;
        match list.iter().find(|node| is_ready(node) && is_tainted(node)) {
            None => Ok(()),
            Some(node) => bail!("node {} has it", node.name_any()),
        }
    })
    .await
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
}

fn is_tainted(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.is_some_and(|all| all.iter().any(|taint| taint.key == "node.kubernetes.io/not-ready"))
}
