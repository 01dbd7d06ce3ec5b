//! What other schedulers do: bind a Pod to a node.

use anyhow::{Context, Result};
use http::Request;
use kube::Client;
use serde_json::{Value, json};

/// Binds the Pod as another scheduler would.
pub(super) async fn bind(client: &Client, namespace: &str, pod: &str, node: &str) -> Result<()> {
    let binding = json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": { "name": pod, "namespace": namespace },
        "target": { "apiVersion": "v1", "kind": "Node", "name": node },
    });
    let request = Request::post(format!("/api/v1/namespaces/{namespace}/pods/{pod}/binding"))
        .header("Content-Type", "application/json")
        .body(serde_json::to_vec(&binding)?)?;
    client.request::<Value>(request).await.with_context(|| format!("binding {namespace}/{pod} to {node}"))?;
    Ok(())
}
