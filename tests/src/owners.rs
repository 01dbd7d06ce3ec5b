//! Controllers of kinds that make Pods, as their users have them: `JobSet`, Kubeflow Trainer and `KubeRay`, of the versions
//! that `tests/tools/owners` pins. `JobSet`'s webhooks are served too; those of the others only validate, and are left out.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::apply::{Applier, documents};
use crate::cluster::ports::Port;
use crate::cluster::{Cluster, Process};
use crate::tools::{self, Tool};
use crate::wait;

const JOB_SET: &str = "sigs.k8s.io/jobset";
const TRAINER: &str = "github.com/kubeflow/trainer/v2";
const KUBE_RAY: &str = "github.com/ray-project/kuberay/ray-operator";
const CRDS: [(&str, &str); 6] = [
    (JOB_SET, "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"),
    (TRAINER, "manifests/base/crds/trainer.kubeflow.org_clustertrainingruntimes.yaml"),
    (TRAINER, "manifests/base/crds/trainer.kubeflow.org_trainingruntimes.yaml"),
    (TRAINER, "manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml"),
    (KUBE_RAY, "config/crd/bases/ray.io_rayclusters.yaml"),
    (KUBE_RAY, "config/crd/bases/ray.io_rayjobs.yaml"),
];
const RUNTIMES: [&str; 2] = ["torch_distributed", "mpi_distributed"];
/// The controllers' caches are filled, and kube-apiserver takes up the webhooks.
const STARTUP: Duration = Duration::from_mins(2);

/// The running controllers, ended on drop.
pub struct Owners {
    process: Process,
    port: Port,
}

impl Owners {
    /// Builds the program if it is missing (minutes), installs the kinds and Trainer's runtimes, and starts the controllers.
    pub async fn install(cluster: &Cluster, applier: &Applier) -> Result<Self> {
        let program = tokio::task::spawn_blocking(|| tools::ensure(Tool::Owners)).await??;
        for (module, file) in CRDS {
            for kind in documents(&module_file(module, file.to_owned()).await?)? {
                applier.apply(kind).await?;
            }
        }
        cluster.serves_all_kinds().await?;
        for runtime in RUNTIMES {
            let file = format!("manifests/base/runtimes/{runtime}.yaml");
            applier.apply_yaml(&module_file(TRAINER, file).await?).await?;
        }
        let port = Port::reserve()?;
        let certificates = cluster.dir().join("owners");
        let own = cluster.dir().join("pki");
        fs::create_dir_all(&certificates)?;
        for (from, to) in [("apiserver.crt", "tls.crt"), ("apiserver.key", "tls.key")] {
            fs::copy(own.join(from), certificates.join(to)).with_context(|| format!("copying {from}"))?;
        }
        let mut command = Command::new(program);
        command.arg("--kubeconfig").arg(cluster.kubeconfig());
        command
            .args(["--webhook-port", &port.number().to_string(), "--webhook-certificates"])
            .arg(certificates);
        let process = cluster.run("owners", command)?;
        let mut owners = Self { process, port };
        owners.register_webhooks(cluster, applier).await?;
        owners.healthy()?;
        Ok(owners)
    }

    /// Fails, with the end of the log, if the controllers have ended.
    pub fn healthy(&mut self) -> Result<()> {
        self.process.check()
    }

    /// They are beside kube-apiserver, without a Service; and waits until they answer.
    async fn register_webhooks(&self, cluster: &Cluster, applier: &Applier) -> Result<()> {
        let authority = fs::read(cluster.dir().join("pki").join("ca.crt")).context("reading ca.crt")?;
        let authority = k8s_openapi::ByteString(authority);
        let file = "config/components/webhook/manifests.yaml".to_owned();
        for mut object in documents(&module_file(JOB_SET, file).await?)? {
            for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
                let config = &mut webhook["clientConfig"];
                let path = config["service"]["path"].as_str().context("a webhook has a path")?;
                let url = format!("https://127.0.0.1:{}{path}", self.port.number());
                *config = json!({ "url": url, "caBundle": authority });
                // On a busy machine, nothing is to fail.
                webhook["timeoutSeconds"] = json!(30);
            }
            object["metadata"]["name"] = json!("jobset");
            applier.apply(object).await?;
        }
        let probe = cluster.dir().join("probe.json");
        fs::write(&probe, probe_of_webhooks().to_string())?;
        let probe = probe.to_string_lossy().into_owned();
        wait::until("JobSet's webhooks answer", STARTUP, || async {
            let set = ["create", "--dry-run=server", "-f", &probe, "-o", "jsonpath={.spec.network}"];
            let network = cluster.kubectl(&set).await?;
            ensure!(network.contains("enableDNSHostnames"), "not by the webhook: {network}");
            let pod = ["run", "probe", "--image=pause", "--dry-run=server"];
            cluster.kubectl(&pod).await.map(drop)
        })
        .await
    }
}

fn probe_of_webhooks() -> Value {
    let pods = json!({ "spec": { "containers": [{ "name": "c", "image": "pause" }] } });
    json!({ "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": { "name": "probe" },
        "spec": { "replicatedJobs": [{ "name": "j", "template": { "spec": { "template": pods } } }] } })
}

async fn module_file(module: &'static str, file: String) -> Result<String> {
    tokio::task::spawn_blocking(move || tools::module_file(Tool::Owners, module, &file)).await?
}
