//! A Kubernetes control plane of one's own: started on free ports in a temporary folder, ended on drop.

mod access;
mod components;
mod kubeconfig;
mod options;
mod pki;
pub(crate) mod ports;
pub(crate) mod process;
pub(crate) mod watchdog;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::Request;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use tempfile::TempDir;

use crate::apply::Applier;
use crate::tools::{Tool, Tools};
use crate::usage::Usage;
use crate::wait;
use components::Components;
use pki::Pki;
pub use process::Process;
use watchdog::Watchdog;

pub use access::Access;
pub use options::{Kubelets, Options, Scheduler};

/// How long a component may take to start, or to do what it is asked at a start; a busy machine is slow.
const STARTUP: Duration = Duration::from_mins(2);

/// Their places among the processes: they are started in this order.
const ETCD: usize = 0;
const API_SERVER: usize = 1;

/// A running control plane. Several may run side by side.
pub struct Cluster {
    processes: Vec<Process>,
    /// Their ports are held for as long as the processes listen on them.
    components: Components,
    server: String,
    admin: PathBuf,
    pki: Pki,
    tools: Tools,
    watchdog: Watchdog,
    /// Removed after everything else is dropped; `None` once it was decided to keep it.
    dir: Option<TempDir>,
    path: PathBuf,
}

impl Cluster {
    /// Starts one: about ten seconds, when the programs are built.
    pub async fn start(options: Options) -> Result<Self> {
        install_crypto();
        let tools =
            tokio::task::spawn_blocking(Tools::ensure).await.context("looking for the programs")??;
        let dir = TempDir::with_prefix("fluxion-cluster-").context("making a temporary folder")?;
        let path = dir.path().to_owned();
        let watchdog = Watchdog::start(&path)?;
        let pki = Pki::create(path.join("pki"))?;
        let components = Components::reserve(&path, &options, &tools, &watchdog)?;
        let server = components.server();
        let admin = access::component(&pki, &path, &server, "admin", Some("system:masters"))?;
        let mut cluster = Self {
            processes: Vec::new(),
            components,
            server,
            admin,
            pki,
            tools,
            watchdog,
            dir: Some(dir),
            path,
        };
        cluster.boot(&options).await?;
        Ok(cluster)
    }

    async fn boot(&mut self, options: &Options) -> Result<()> {
        self.processes.push(self.components.etcd()?);
        self.processes.push(self.components.api_server(&self.pki)?);
        let client = self.client().await?;
        self.ready(&client).await?;
        let manager =
            access::component(&self.pki, &self.path, &self.server, "system:kube-controller-manager", None)?;
        self.processes.push(self.components.controller_manager(&manager, &self.pki, options.kubelets)?);
        if let Some(scheduler) = options.scheduler {
            let user = access::component(&self.pki, &self.path, &self.server, "system:kube-scheduler", None)?;
            self.processes.push(self.components.scheduler(&user, scheduler)?);
        }
        self.processes.push(self.components.kwok(&self.admin, options.kubelets)?);
        if options.pod_group_crd {
            let crd = include_str!("../crds/podgroup.yaml");
            Applier::new(client.clone())
                .apply_yaml(crd)
                .await
                .context("installing the PodGroup of scheduling.x-k8s.io")?;
            self.served(&client, "/apis/scheduling.x-k8s.io/v1alpha1").await?;
        }
        // Pods are refused in a namespace until it has its default ServiceAccount.
        self.namespace_usable(&client, "default").await
    }

    /// Waits for the API server to be ready; says what a component that ended had to say.
    async fn ready(&mut self, client: &Client) -> Result<()> {
        let end = tokio::time::Instant::now() + STARTUP;
        loop {
            for process in &mut self.processes {
                process.check()?;
            }
            let request = Request::get("/readyz").body(Vec::new()).context("a request for /readyz")?;
            match client.request_text(request).await {
                Ok(_) => return Ok(()),
                Err(error) if tokio::time::Instant::now() >= end => {
                    let log = self.processes.last().map(|process| process.log_end(20)).unwrap_or_default();
                    bail!("kube-apiserver is not ready after {} s ({error}):\n{log}", STARTUP.as_secs());
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn served(&self, client: &Client, path: &str) -> Result<()> {
        wait::until(&format!("{path} is served"), STARTUP, || async {
            let request = Request::get(path).body(Vec::new())?;
            client.request_text(request).await?;
            Ok(())
        })
        .await
    }

    /// Waits until Pods may be created in the namespace.
    pub async fn namespace_usable(&self, client: &Client, namespace: &str) -> Result<()> {
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
        wait::until(&format!("namespace {namespace} has its default ServiceAccount"), STARTUP, || async {
            accounts.get("default").await?;
            Ok(())
        })
        .await
    }

    /// Stops the API server where it is, as if the network to it were cut, or lets it go on.
    pub fn freeze_api_server(&self, frozen: bool) -> Result<()> {
        self.processes.get(API_SERVER).context("there is no API server")?.freeze(frozen)
    }

    /// Stops etcd where it is, or lets it go on.
    pub fn freeze_etcd(&self, frozen: bool) -> Result<()> {
        self.processes.get(ETCD).context("there is no etcd")?.freeze(frozen)
    }

    /// Memory and processor time that the API server has taken.
    pub fn api_server_usage(&self) -> Result<Usage> {
        Usage::of(self.processes.get(API_SERVER).context("there is no API server")?.id())
    }

    /// kill -9 of the API server; it is started again after `away`, and waited for.
    pub async fn restart_api_server(&mut self, away: Duration) -> Result<()> {
        self.processes.get_mut(API_SERVER).context("there is no API server")?.kill();
        tokio::time::sleep(away).await;
        self.processes[API_SERVER] = self.components.api_server(&self.pki)?;
        let client = self.client().await?;
        self.ready(&client).await
    }

    /// A client of the administrator. Each belongs to the runtime it was made in: make one per test.
    pub async fn client(&self) -> Result<Client> {
        access::client(&self.admin).await
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.admin
    }

    /// The URL of kube-apiserver.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The temporary folder; it goes when the cluster does.
    pub fn dir(&self) -> &Path {
        &self.path
    }

    /// What the audited user has asked so far, as audit Events (audit.k8s.io/v1); empty without `with_audit_of`.
    pub fn audit_log(&self) -> Result<Vec<serde_json::Value>> {
        let path = components::audit_log(&self.path);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
        };
        // The last line may not be finished yet.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).context("reading the audit log")).collect()
    }

    /// The programs it runs, kubectl among them.
    pub fn tools(&self) -> &Tools {
        &self.tools
    }

    /// Runs kubectl as administrator and gives its standard output; fails with its standard error.
    pub async fn kubectl(&self, args: &[&str]) -> Result<String> {
        let output = self.kubectl_output(args).await?;
        String::from_utf8(output.stdout).context("kubectl wrote something that is no UTF-8")
    }

    /// The same, with what it writes to standard error after that.
    pub async fn kubectl_with_warnings(&self, args: &[&str]) -> Result<String> {
        let output = self.kubectl_output(args).await?;
        let bytes = [output.stdout, output.stderr].concat();
        String::from_utf8(bytes).context("kubectl wrote something that is no UTF-8")
    }

    /// Waits until the kinds of all `CustomResourceDefinitions` are served.
    pub async fn serves_all_kinds(&self) -> Result<()> {
        let established = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"];
        // kubectl fails at once where a definition has no conditions yet.
        wait::until("all kinds are served", STARTUP, || self.kubectl(&established)).await.map(drop)
    }

    async fn kubectl_output(&self, args: &[&str]) -> Result<std::process::Output> {
        let output = tokio::process::Command::new(self.tools.path(Tool::Kubectl))
            .arg("--kubeconfig")
            .arg(&self.admin)
            .args(args)
            .output()
            .await
            .context("starting kubectl")?;
        if !output.status.success() {
            bail!(
                "kubectl {} ({}): {}",
                args.join(" "),
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(output)
    }

    /// Starts a program that ends with the cluster at the latest.
    pub fn run(&self, name: &str, command: std::process::Command) -> Result<Process> {
        let log = self.path.join("logs").join(format!("{name}.log"));
        Process::start(name, command, log, &self.watchdog)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The API server before etcd: it would fill its log while it looks for the store.
        while let Some(mut process) = self.processes.pop() {
            process.kill();
        }
        let keep = std::thread::panicking() || std::env::var_os("FLUXION_TESTS_KEEP").is_some();
        if keep && let Some(dir) = self.dir.take() {
            let dir = dir.keep();
            self.watchdog.keep();
            // The store is large and says nothing to a reader.
            let _ = std::fs::remove_dir_all(dir.join("etcd"));
            eprintln!("logs are kept in {}", dir.join("logs").display());
        }
    }
}

/// The TLS library needs to be told once which cryptography it uses.
pub(crate) fn install_crypto() {
    // An error says that it was told before.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
