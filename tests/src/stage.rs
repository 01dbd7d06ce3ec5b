//! A cluster with nodes and an inspector, and the questions that end-to-end tests ask again and again.
//!
//! Only a few stages of one process are up at a time, however many tests run: each is half a gigabyte.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fluxion_api::{FluxionAudit, FluxionJob, FluxionNode, JobState};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::ListParams;
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::admission;
use crate::apply::Applier;
use crate::cluster::{Cluster, Options};
use crate::helm::Helm;
use crate::inspector::{self, Inspector, Settings};
use crate::nodes::{self, NodeSpec};
use crate::plugin::{Plugin, Ran};
use crate::registration::SecurePort;
use crate::wait;

/// How long something may take that should happen at once.
pub const SOON: Duration = Duration::from_secs(30);
/// Two cores run one control plane well.
static STAGES: Semaphore = Semaphore::const_new(1);

/// A cluster with nodes and an inspector.
pub struct Stage {
    /// The control plane.
    pub cluster: Cluster,
    /// The administrator's client.
    pub client: Client,
    /// Creates and patches as administrator.
    pub applier: Applier,
    /// The inspector.
    pub inspector: Inspector,
    _permit: SemaphorePermit<'static>,
    _port: Option<SecurePort>,
}

impl Stage {
    /// With default options and settings.
    pub async fn with_nodes(nodes: &[NodeSpec]) -> Result<Self> {
        Self::start(Options::default(), &Settings::default(), nodes).await
    }

    /// Starts the cluster, creates the nodes, starts the inspector.
    pub async fn start(options: Options, settings: &Settings, nodes: &[NodeSpec]) -> Result<Self> {
        let permit = STAGES.acquire().await.context("waiting for another stage to end")?;
        let cluster = Cluster::start(options).await?;
        let client = cluster.client().await?;
        nodes::create(&client, nodes).await?;
        let applier = Applier::new(client.clone());
        let inspector = Inspector::start(&cluster, "inspector", settings).await?;
        Ok(Self { cluster, client, applier, inspector, _permit: permit, _port: None })
    }

    /// The same with the permissions that the chart gives with these arguments (`--set …`).
    pub async fn with_chart(settings: &Settings, nodes: &[NodeSpec], arguments: &[&str]) -> Result<Self> {
        let permit = STAGES.acquire().await.context("waiting for another stage to end")?;
        let manifest = Helm::new().await?.template(&[&["--skip-tests"], arguments].concat()).await?;
        let cluster = Cluster::start(Options::default()).await?;
        let client = cluster.client().await?;
        nodes::create(&client, nodes).await?;
        let applier = Applier::new(client.clone());
        let access = inspector::rights_in(&cluster, &manifest, &[]).await?;
        let inspector = Inspector::start_as(&cluster, "inspector", settings, access).await?;
        Ok(Self { cluster, client, applier, inspector, _permit: permit, _port: None })
    }

    /// The same with the chart's admission policies, and namespace `default` labelled with a mode.
    pub async fn with_admission(
        options: Options,
        settings: &Settings,
        nodes: &[NodeSpec],
        mode: &str,
    ) -> Result<Self> {
        Self::admitting(options, settings, nodes, mode, None).await
    }

    /// The same with the inspector as the admission webhook.
    pub async fn with_webhook(options: Options, nodes: &[NodeSpec], mode: &str) -> Result<Self> {
        let port = SecurePort::reserve()?;
        let mut settings = port.settings();
        settings.arguments.extend(admission::webhook_flags());
        Self::admitting(options, &settings, nodes, mode, Some(port)).await
    }

    async fn admitting(
        options: Options,
        settings: &Settings,
        nodes: &[NodeSpec],
        mode: &str,
        webhook: Option<SecurePort>,
    ) -> Result<Self> {
        let permit = STAGES.acquire().await.context("waiting for another stage to end")?;
        let cluster = Cluster::start(options).await?;
        let client = cluster.client().await?;
        nodes::create(&client, nodes).await?;
        let applier = Applier::new(client.clone());
        let access = admission::install(&cluster, webhook.as_ref()).await?;
        let inspector = Inspector::start_as(&cluster, "inspector", settings, access).await?;
        admission::label(&cluster, "default", mode).await?;
        Ok(Self { cluster, client, applier, inspector, _permit: permit, _port: webhook })
    }

    /// Creates objects, in order.
    pub async fn create(&self, objects: impl IntoIterator<Item = Value>) -> Result<()> {
        self.applier.create_all(objects).await
    }

    /// Lets the second end: what is created then is younger than what was created before. Within one second the
    /// API's times are equal, and names decide who is first.
    pub async fn next_second(&self) {
        tokio::time::sleep(Duration::from_millis(1100)).await;
    }

    /// Deletes a Pod of namespace `default` and waits until it is gone.
    pub async fn delete_pod(&self, name: &str) -> Result<()> {
        self.applier.delete(&GroupVersionKind::gvk("", "v1", "Pod"), "default", name).await
    }

    /// Patches a node, or its status.
    pub async fn patch_node(&self, name: &str, subresource: Option<&str>, patch: &Value) -> Result<()> {
        self.applier.patch(&GroupVersionKind::gvk("", "v1", "Node"), "", name, subresource, patch).await?;
        Ok(())
    }

    /// Patches the status of a Pod of namespace `default`.
    pub async fn patch_pod_status(&self, name: &str, patch: &Value) -> Result<()> {
        self.applier
            .patch(&GroupVersionKind::gvk("", "v1", "Pod"), "default", name, Some("status"), patch)
            .await?;
        Ok(())
    }

    /// Pods of namespace `default` that a label selector matches.
    pub async fn pods(&self, selector: &str) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        Ok(pods.list(&ListParams::default().labels(selector)).await?.items)
    }

    /// One Pod of namespace `default`.
    pub async fn pod(&self, name: &str) -> Result<Pod> {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        pods.get(name).await.with_context(|| format!("looking at Pod {name}"))
    }

    /// Waits until exactly `count` of the matching Pods are bound; gives them.
    pub async fn bound(&self, selector: &str, count: usize) -> Result<Vec<Pod>> {
        wait::until(&format!("{count} Pods of {selector} are bound"), SOON, || async {
            let bound: Vec<Pod> =
                self.pods(selector).await?.into_iter().filter(|pod| node_of(pod).is_some()).collect();
            if bound.len() == count { Ok(bound) } else { bail!("{} are", bound.len()) }
        })
        .await
    }

    /// Waits until the Pod is bound; gives the node.
    pub async fn pod_bound(&self, name: &str) -> Result<String> {
        wait::until(&format!("Pod {name} is bound"), SOON, || async {
            let pod = self.pod(name).await?;
            match node_of(&pod) {
                Some(node) => Ok(node.to_owned()),
                None => {
                    bail!("{}", scheduled_condition(&pod).unwrap_or_else(|| "no condition yet".to_owned()))
                }
            }
        })
        .await
    }

    /// Waits until the Pod's condition `PodScheduled` has the word in its reason or message.
    pub async fn pod_is_told(&self, name: &str, word: &str) -> Result<()> {
        wait::until(&format!("Pod {name} is told '{word}'"), SOON, || async {
            let condition = scheduled_condition(&self.pod(name).await?).unwrap_or_default();
            if condition.contains(word) { Ok(()) } else { bail!("'{condition}'") }
        })
        .await
    }

    /// Fails when one of the Pods is bound within three seconds.
    pub async fn stay_unbound(&self, selector: &str) -> Result<()> {
        wait::throughout(&format!("no Pod of {selector} is bound"), Duration::from_secs(3), || async {
            let bound = self.pods(selector).await?.into_iter().find(|pod| node_of(pod).is_some());
            match bound {
                None => Ok(()),
                Some(pod) => bail!("{} is bound to {:?}", pod.name_any(), node_of(&pod)),
            }
        })
        .await
    }

    /// A job of namespace `default`, e.g. `job/lammps`.
    pub async fn job(&self, job: &str) -> Result<FluxionJob> {
        self.inspector.job("default", job).await
    }

    /// Waits until the job is in the state.
    pub async fn job_is(&self, job: &str, state: &str) -> Result<FluxionJob> {
        inspector::job_becomes(&self.inspector, "default", job, state, |job| {
            job.status.state.as_str() == state
        })
        .await
    }

    /// Waits until the job gathers and has seen as many members; they come one by one.
    pub async fn gathers(&self, job: &str, seen: u32, wanted: u32) -> Result<FluxionJob> {
        self.job_becomes(job, &format!("gathering, {seen} of {wanted}"), |job| {
            let members = &job.status.members;
            job.status.state == JobState::Gathering && (members.seen, members.wanted) == (seen, Some(wanted))
        })
        .await
    }

    /// Waits until the job is as it should be.
    pub async fn job_becomes(
        &self,
        job: &str,
        what: &str,
        right: impl Fn(&FluxionJob) -> bool,
    ) -> Result<FluxionJob> {
        inspector::job_becomes(&self.inspector, "default", job, what, right).await
    }

    /// Waits until the node's books are as they should be.
    pub async fn node_becomes(
        &self,
        node: &str,
        what: &str,
        right: impl Fn(&FluxionNode) -> bool,
    ) -> Result<FluxionNode> {
        wait::until(&format!("node {node} is {what}"), SOON, || async {
            let found = self.inspector.node(node).await?;
            if right(&found) { Ok(found) } else { bail!("{}", serde_json::to_string(&found.status)?) }
        })
        .await
    }

    /// The Events on a Pod of namespace `default`: reason and message.
    pub async fn events(&self, pod: &str) -> Result<Vec<String>> {
        let events: Api<Event> = Api::default_namespaced(self.client.clone());
        let list = events.list(&ListParams::default().fields(&format!("involvedObject.name={pod}"))).await?;
        let told = list.items.into_iter().map(|event| {
            format!("{}: {}", event.reason.unwrap_or_default(), event.message.unwrap_or_default())
        });
        Ok(told.collect())
    }

    /// What the inspector finds wrong.
    pub async fn audit(&self) -> Result<FluxionAudit> {
        Ok(self.inspector.client()?.audit().await?)
    }

    /// The plugin with the administrator's rights.
    pub fn plugin(&self) -> Result<Plugin> {
        self.inspector.plugin(self.cluster.kubeconfig())
    }

    /// The plugin with the rights of a kubeconfig.
    pub fn plugin_of(&self, kubeconfig: &Path) -> Result<Plugin> {
        self.inspector.plugin(kubeconfig)
    }

    /// Runs the plugin as administrator.
    pub async fn run(&self, arguments: &[&str]) -> Result<Ran> {
        self.plugin()?.run(arguments).await
    }
}

/// The node a Pod is bound to.
pub fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).filter(|name| !name.is_empty())
}

/// `STATUS REASON: MESSAGE` of a Pod's condition `PodScheduled`.
pub fn scheduled_condition(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let one = conditions.iter().find(|one| one.type_ == "PodScheduled")?;
    let (reason, message) = (one.reason.as_deref(), one.message.as_deref());
    Some(format!("{} {}: {}", one.status, reason.unwrap_or_default(), message.unwrap_or_default()))
}
