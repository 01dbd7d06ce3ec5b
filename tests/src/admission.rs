//! The chart's admission policies, and the namespaces that they apply to.

use std::time::Duration;

use anyhow::{Result, bail};

use crate::cluster::{Access, Cluster};
use crate::helm::Helm;
use crate::inspector;
use crate::wait;

const LABEL: &str = "fluxion.flux-framework.org/admission";
const POLICIES: [&str; 4] = [
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];
/// kube-apiserver compiles policies when it hears of them.
const SOON: Duration = Duration::from_secs(30);

/// Installs the policies, with further values of the chart, and the inspector's permissions to go with them.
pub async fn install(cluster: &Cluster, values: &[&str]) -> Result<Access> {
    let mut arguments = vec!["--skip-tests", "--set", "admission.enabled=true"];
    for value in values {
        arguments.extend(["--set", value]);
    }
    let manifest = Helm::new().await?.template(&arguments).await?;
    inspector::rights_in(cluster, &manifest, &POLICIES).await
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
        "gate" => "default-scheduler fluxion.flux-framework.org/gate",
        _ => "default-scheduler ",
    }
}

/// Scheduler and gates that a Pod would have if it were created there.
pub async fn probe(cluster: &Cluster, namespace: &str) -> Result<String> {
    let output = "jsonpath={.spec.schedulerName} {.spec.schedulingGates[*].name}";
    let run = ["--namespace", namespace, "run", "probe", "--image=pause", "--dry-run=server", "-o", output];
    cluster.kubectl(&run).await
}
