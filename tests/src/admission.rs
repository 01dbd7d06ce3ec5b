//! The chart's admission policies, and the namespaces that they apply to.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::apply::documents;
use crate::cluster::{Access, Cluster};
use crate::helm::{Helm, NAMESPACE};
use crate::inspector;
use crate::registration::SecurePort;
use crate::wait;

const LABEL: &str = "fluxion.flux-framework.org/admission";
const OBJECTS: [&str; 3] =
    ["MutatingWebhookConfiguration", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"];
/// kube-apiserver compiles policies when it hears of them.
const SOON: Duration = Duration::from_secs(30);

/// Installs the policies, or the webhook that is served at this port, and the inspector's permissions to go with them.
pub async fn install(cluster: &Cluster, webhook: Option<&SecurePort>) -> Result<Access> {
    install_with(cluster, webhook, &[]).await
}

/// The same with further arguments of the chart (`--set …`).
pub async fn install_with(
    cluster: &Cluster,
    webhook: Option<&SecurePort>,
    further: &[&str],
) -> Result<Access> {
    let via = if webhook.is_some() { "admission.via=webhook" } else { "admission.via=policy" };
    let arguments = ["--skip-tests", "--set", "admission.enabled=true", "--set", via];
    let mut manifest = Helm::new().await?.template(&[&arguments, further].concat()).await?;
    if let Some(port) = webhook {
        manifest = beside(&manifest, port)?;
    }
    inspector::rights_in(cluster, &manifest, &OBJECTS).await
}

/// The inspector is a process beside kube-apiserver, without a Service.
fn beside(manifest: &str, port: &SecurePort) -> Result<String> {
    let mut objects = documents(manifest)?;
    for webhook in
        objects.iter_mut().filter_map(|object| object.get_mut("webhooks")?.as_array_mut()).flatten()
    {
        let config = &mut webhook["clientConfig"];
        let path = config["service"]["path"].as_str().context("the webhook has no path")?;
        *config = json!({ "url": format!("{}{path}", port.url()) });
    }
    let texts: Vec<String> = objects.iter().map(ToString::to_string).collect();
    Ok(texts.join("\n---\n"))
}

/// Flags of an inspector that serves the webhook.
pub fn webhook_flags() -> Vec<String> {
    ["--admission-webhook", "--namespace", NAMESPACE].map(str::to_owned).to_vec()
}

/// Labels a namespace with a mode, and waits until that applies.
pub async fn label(cluster: &Cluster, namespace: &str, mode: &str) -> Result<()> {
    cluster.kubectl(&["label", "--overwrite", "namespace", namespace, &format!("{LABEL}={mode}")]).await?;
    wait::until(&format!("namespace {namespace} has admission {mode}"), SOON, || async {
        let seen = probe(cluster, namespace).await?;
        if seen == taken_in(mode) { Ok(()) } else { bail!("a Pod is created with '{seen}'") }
    })
    .await
}

/// Scheduler and gates that a Pod of such a namespace has.
fn taken_in(mode: &str) -> &'static str {
    match mode {
        "bind" => "fluxion ",
        "gate" | "suspend" => "default-scheduler fluxion.flux-framework.org/gate",
        _ => "default-scheduler ",
    }
}

/// Scheduler and gates that a Pod would have if it were created there.
pub async fn probe(cluster: &Cluster, namespace: &str) -> Result<String> {
    let output = "jsonpath={.spec.schedulerName} {.spec.schedulingGates[*].name}";
    let run = ["--namespace", namespace, "run", "probe", "--image=pause", "--dry-run=server", "-o", output];
    cluster.kubectl(&run).await
}
