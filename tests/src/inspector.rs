//! The inspector as a plain process beside the control plane, with no rights but those of its chart.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use fluxion_api::client::Client;
use fluxion_api::server_file::ServerFile;
use fluxion_api::{FluxionJob, FluxionNode, ListMeta};
use serde_json::{Value, json};

use crate::apply::{Applier, documents};
use crate::cluster::process::Process;
use crate::cluster::{Access, Cluster};
use crate::helm;
use crate::plugin::Plugin;
use crate::programs::{self, Program};
use crate::server::Server;
use crate::usage::Usage;
use crate::wait;

/// How long it may take from the start until it is ready.
const STARTUP: Duration = Duration::from_mins(1);
/// One that was killed and comes back goes on at once; long enough not to be lost on a busy machine.
const LEASE_SECONDS: &str = "15";

/// What the inspector is started with.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Content of its configuration file.
    pub config: Option<String>,
    /// Names it schedules for; empty: its default.
    pub scheduler_names: Vec<String>,
    /// Further flags.
    pub arguments: Vec<String>,
    /// Further variables of its environment.
    pub environment: Vec<(String, String)>,
}

impl Settings {
    /// One queue `default` with this policy.
    pub fn policy(policy: &str) -> Self {
        Self { config: Some(format!("queues:\n- name: default\n  policy: {policy}\n")), ..Self::default() }
    }

    /// Schedules Pods of these names too.
    #[must_use]
    pub fn scheduler_names(mut self, names: &[&str]) -> Self {
        self.scheduler_names = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }
}

/// A running inspector, ended on drop.
pub struct Inspector {
    process: Process,
    command: Vec<String>,
    environment: Vec<(String, String)>,
    program: PathBuf,
    state_dir: PathBuf,
    token_file: PathBuf,
    server: ServerFile,
    access: Access,
    name: String,
}

impl Inspector {
    /// Starts it and waits until it is ready. `name` tells several beside one cluster apart.
    pub async fn start(cluster: &Cluster, name: &str, settings: &Settings) -> Result<Self> {
        let access = rights(cluster).await?;
        Self::start_as(cluster, name, settings, access).await
    }

    /// The same as another ServiceAccount, or in another way. An administrator would not notice what the chart's roles lack.
    pub async fn start_as(
        cluster: &Cluster,
        name: &str,
        settings: &Settings,
        access: Access,
    ) -> Result<Self> {
        ensure!(
            access.token.is_some(),
            "an inspector runs as a ServiceAccount, with the rights of its chart"
        );
        let program = tokio::task::spawn_blocking(|| programs::path(Program::Inspector)).await??;
        let dir = cluster.dir().join(name);
        std::fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
        let state_dir = dir.join("state");
        let command = arguments(&dir, &state_dir, &access, settings)?;
        let environment = settings.environment.clone();
        let process = spawn(cluster, name, &program, &command, &environment)?;
        let server =
            ServerFile { url: String::new(), pid: 0, cluster_id: String::new(), token: String::new() };
        let token_file = dir.join("token");
        let name = name.to_owned();
        let mut inspector =
            Self { process, command, environment, program, state_dir, token_file, server, access, name };
        inspector.ready().await?;
        Ok(inspector)
    }

    /// kill -9; it can be started again.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Its resident memory (`VmRSS`).
    pub fn resident_mib(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()).context("no VmRSS")?;
        Ok(kib.parse::<u64>()? / 1024)
    }

    /// Stops it where it is (SIGSTOP), or lets it go on.
    pub fn freeze(&self, frozen: bool) -> Result<()> {
        self.process.freeze(frozen)
    }

    /// SIGTERM: it gives its Lease back and ends by itself; killed when it does not within 5 s.
    pub async fn stop(&mut self) -> Result<()> {
        self.stop_within(Duration::from_secs(5)).await
    }

    /// The same with another limit.
    pub async fn stop_within(&mut self, limit: Duration) -> Result<()> {
        let pid = self.process.id().to_string();
        Command::new("kill").args(["-s", "TERM", &pid]).status().context("starting kill")?;
        let end = tokio::time::Instant::now() + limit;
        while tokio::time::Instant::now() < end {
            if self.process.ended().is_some() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.kill();
        bail!("the inspector did not end within {} s of SIGTERM", limit.as_secs())
    }

    /// Kills it where it still runs, starts it and waits until it is ready.
    pub async fn restart(&mut self, cluster: &Cluster) -> Result<()> {
        self.launch(cluster)?;
        self.ready().await
    }

    /// The same without any file of its own: only the API server knows what was.
    pub async fn restart_without_state(&mut self, cluster: &Cluster) -> Result<()> {
        self.kill();
        std::fs::remove_dir_all(&self.state_dir)
            .with_context(|| format!("removing {}", self.state_dir.display()))?;
        self.restart(cluster).await
    }

    /// Kills it where it still runs and starts it, without waiting for anything.
    pub fn launch(&mut self, cluster: &Cluster) -> Result<()> {
        self.kill();
        self.process = spawn(cluster, &self.name, &self.program, &self.command, &self.environment)?;
        Ok(())
    }

    /// Waits until it says that it is ready, or has ended.
    pub async fn ready(&mut self) -> Result<()> {
        let http = reqwest::Client::new();
        let end = tokio::time::Instant::now() + STARTUP;
        let file = self.state_dir.join("server.json");
        loop {
            self.process.check()?;
            let answer = match read(&file, self.process.id()) {
                Ok(server) => {
                    self.server = server;
                    http.get(format!("{}/readyz", self.server.url)).send().await.map_err(anyhow::Error::from)
                }
                Err(error) => Err(error),
            };
            let seen = match answer {
                Ok(answer) if answer.status().is_success() => break,
                Ok(answer) => format!("/readyz answers {}: {}", answer.status(), answer.text().await?),
                Err(error) => format!("{error:#}"),
            };
            if tokio::time::Instant::now() >= end {
                bail!(
                    "the inspector is not ready after {} s; last seen: {seen}\nits log:\n{}",
                    STARTUP.as_secs(),
                    self.process.log_end(30)
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        std::fs::write(&self.token_file, &self.server.token).context("writing the token's file")
    }

    /// Memory and processor time that it has taken.
    pub fn usage(&self) -> Result<Usage> {
        Usage::of(self.process.id())
    }

    /// Processor time of its threads of this name, e.g. `engine`.
    pub fn thread_time(&self, name: &str) -> Result<Duration> {
        Usage::of_threads(self.process.id(), name)
    }

    /// The value of a metric, by its name and labels as `/metrics` writes them; 0 where it is not there.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        let asked = reqwest::Client::new().get(format!("{}/metrics", self.server.url));
        let text = asked.bearer_auth(&self.server.token).send().await?.error_for_status()?.text().await?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(value.map_or(Ok(0.0), str::parse)?)
    }

    /// How it ended, when it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.process.ended()
    }

    /// What it says of itself and of the age of its data.
    pub async fn standing(&self) -> Result<ListMeta> {
        Ok(self.client()?.list_head::<FluxionJob>("default").await?)
    }

    /// What `/readyz` (or another open path) answers: whether it is well, and the text.
    pub async fn answers(&self, path: &str) -> Result<(bool, String)> {
        let answer = reqwest::Client::new().get(format!("{}{path}", self.server.url)).send().await?;
        Ok((answer.status().is_success(), answer.text().await?))
    }

    /// Takes its address from its file, without waiting for it to be ready.
    pub async fn up(&mut self) -> Result<()> {
        let file = self.state_dir.join("server.json");
        let pid = self.process.id();
        self.server = wait::until("the inspector listens", STARTUP, || async { read(&file, pid) }).await?;
        std::fs::write(&self.token_file, &self.server.token).context("writing the token's file")
    }

    /// Where it is reached.
    pub fn url(&self) -> &str {
        &self.server.url
    }

    /// The token of its administrator.
    pub fn token(&self) -> &str {
        &self.server.token
    }

    /// The rights it runs with.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// All it has logged, over all its starts.
    pub fn log(&self) -> Result<String> {
        let path = self.process.log();
        let text = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Fails when it has ended by itself, or has ever panicked.
    pub fn healthy(&mut self) -> Result<()> {
        self.process.check()?;
        let log = self.log()?;
        match log.lines().position(|line| line.contains("panicked at")) {
            None => Ok(()),
            Some(at) => {
                bail!("it panicked:\n{}", log.lines().skip(at).take(8).collect::<Vec<_>>().join("\n"))
            }
        }
    }

    /// Where it is reached now; a restart changes that.
    pub fn server(&self) -> Server {
        Server::new(&self.server, &self.token_file)
    }

    /// A client of its API, as administrator.
    pub fn client(&self) -> Result<Client> {
        self.server().client()
    }

    /// A job by its name as users write it, e.g. `job/lammps`.
    pub async fn job(&self, namespace: &str, job: &str) -> Result<FluxionJob> {
        self.server().job(namespace, job).await
    }

    /// A node's books.
    pub async fn node(&self, name: &str) -> Result<FluxionNode> {
        self.server().node(name).await
    }

    /// The plugin, asking this inspector; what it deletes it deletes with the rights of `kubeconfig`.
    pub fn plugin(&self, kubeconfig: &Path) -> Result<Plugin> {
        self.server().plugin(kubeconfig)
    }
}

/// Kinds of the chart that say what the inspector may do.
const RIGHTS: [&str; 9] = [
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "FlowSchema",
    "Secret",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];

/// Applies the roles of the chart's plain manifests and takes a token of its ServiceAccount.
pub async fn rights(cluster: &Cluster) -> Result<Access> {
    let path = helm::plain_manifests_file();
    let manifest = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    rights_in(cluster, &manifest, &[]).await.with_context(|| format!("from {}", path.display()))
}

/// Applies the roles in a manifest, and its objects of further kinds, and takes a token of its ServiceAccount.
pub async fn rights_in(cluster: &Cluster, manifest: &str, further: &[&str]) -> Result<Access> {
    let mut objects = documents(manifest)?;
    objects.retain(|object| RIGHTS.iter().chain(further).any(|kind| object["kind"] == *kind));
    let (namespace, account) = service_account(&objects)?;
    let applier = Applier::new(cluster.client().await?);
    applier
        .apply(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }))
        .await
        .context("making the inspector's namespace")?;
    for object in objects {
        applier.apply(object).await?;
    }
    cluster.service_account(&namespace, &account).await
}

/// Namespace and name of the one ServiceAccount among the objects.
fn service_account(objects: &[Value]) -> Result<(String, String)> {
    let mut accounts = objects.iter().filter(|object| object["kind"] == "ServiceAccount");
    let account = accounts.next().context("there is no ServiceAccount")?;
    if accounts.next().is_some() {
        bail!("there is more than one ServiceAccount");
    }
    let text = |key: &str| account["metadata"][key].as_str().map(str::to_owned);
    let name = text("name").context("the ServiceAccount has no name")?;
    Ok((text("namespace").unwrap_or_else(|| "default".to_owned()), name))
}

fn arguments(dir: &Path, state_dir: &Path, access: &Access, settings: &Settings) -> Result<Vec<String>> {
    let mut command = vec!["cluster".to_owned()];
    let mut flag = |name: &str, value: String| command.extend([format!("--{name}"), value]);
    flag("kubeconfig", access.kubeconfig.display().to_string());
    flag("listen", "127.0.0.1:0".to_owned());
    flag("state-dir", state_dir.display().to_string());
    flag("lease-seconds", LEASE_SECONDS.to_owned());
    if let Some(config) = &settings.config {
        let path = dir.join("config.yaml");
        std::fs::write(&path, config).with_context(|| format!("writing {}", path.display()))?;
        flag("config", path.display().to_string());
    }
    for name in &settings.scheduler_names {
        flag("scheduler-name", name.clone());
    }
    command.extend(settings.arguments.iter().cloned());
    Ok(command)
}

fn spawn(
    cluster: &Cluster,
    name: &str,
    program: &Path,
    arguments: &[String],
    environment: &[(String, String)],
) -> Result<Process> {
    let mut command = Command::new(program);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command.args(arguments).env("RUST_BACKTRACE", "1").env_remove("KUBECONFIG");
    if std::env::var_os("RUST_LOG").is_none() {
        command.env("RUST_LOG", "info,fluxion_inspector=debug");
    }
    cluster.run(name, command)
}

/// The server's file, when it is of the process `pid`: a killed one leaves its own behind.
fn read(path: &Path, pid: u32) -> Result<ServerFile> {
    let text = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let server: ServerFile =
        serde_json::from_slice(&text).with_context(|| format!("reading {}", path.display()))?;
    if server.pid != pid {
        bail!("{} is of process {}, not of {pid}", path.display(), server.pid);
    }
    Ok(server)
}

/// Looks at a job until `right` says that it is as it should be; fails with what it was last.
pub async fn job_becomes<F>(
    inspector: &Inspector,
    namespace: &str,
    job: &str,
    what: &str,
    right: F,
) -> Result<FluxionJob>
where
    F: Fn(&FluxionJob) -> bool,
{
    wait::until(&format!("{job} is {what}"), Duration::from_secs(20), || async {
        let found = inspector.job(namespace, job).await?;
        if right(&found) {
            return Ok(found);
        }
        bail!("{}", serde_json::to_string(&found.status)?)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_found_among_the_objects() {
        let objects = documents(
            "kind: ServiceAccount\nmetadata: {name: inspector, namespace: fluxion}\n---\nkind: ClusterRole\n",
        )
        .unwrap();
        assert_eq!(service_account(&objects).unwrap(), ("fluxion".to_owned(), "inspector".to_owned()));
        assert!(service_account(&objects[1..]).is_err());
    }

    #[test]
    fn a_file_of_another_process_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.json");
        std::fs::write(&path, r#"{"url":"http://127.0.0.1:1","pid":7,"clusterId":"c","token":"t"}"#).unwrap();
        assert_eq!(read(&path, 7).unwrap().url, "http://127.0.0.1:1");
        assert!(read(&path, 8).is_err());
    }
}
