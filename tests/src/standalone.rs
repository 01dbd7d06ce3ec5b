//! Standalone mode as a user starts it: a cluster and jobs from files, no control plane.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fluxion_api::server_file::ServerFile;
use tempfile::TempDir;

use crate::cluster::Process;
use crate::cluster::watchdog::Watchdog;
use crate::programs::{self, Program};
use crate::server::Server;

/// How long the start may take.
const STARTUP: Duration = Duration::from_mins(1);

/// A running one, ended on drop.
pub struct Standalone {
    process: Process,
    server: Server,
    // After the process, which writes into it.
    dir: TempDir,
}

impl Standalone {
    /// Starts it with these nodes and jobs, and waits until it answers.
    pub async fn start(nodes: &Path, jobs: &Path) -> Result<Self> {
        crate::cluster::install_crypto();
        let dir = TempDir::with_prefix("fluxion-standalone-").context("making a temporary folder")?;
        let watchdog = Watchdog::start(dir.path())?;
        let state = dir.path().join("state");
        let log = dir.path().join("log");
        let mut process = Process::start("fluxion-inspector", command(nodes, jobs, &state)?, log, &watchdog)?;
        let server = tokio::time::timeout(STARTUP, up(&mut process, &state, dir.path()))
            .await
            .with_context(|| format!("it is not up after {} s", STARTUP.as_secs()))??;
        Ok(Self { process, server, dir })
    }

    /// Where it is reached.
    pub fn server(&self) -> Server {
        self.server.clone()
    }

    /// A folder of its own.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Fails when it has ended by itself.
    pub fn healthy(&mut self) -> Result<()> {
        self.process.check()
    }
}

/// Runs it to its end, which must come by itself: what it is given is to be refused.
pub async fn refused(nodes: &Path, jobs: &Path) -> Result<Output> {
    let dir = TempDir::with_prefix("fluxion-standalone-").context("making a temporary folder")?;
    let mut command = tokio::process::Command::from(command(nodes, jobs, &dir.path().join("state"))?);
    command.stdin(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(Duration::from_secs(5), command.output()).await {
        Ok(output) => output.context("starting fluxion-inspector"),
        Err(_) => bail!("it takes {} and goes on", jobs.display()),
    }
}

fn command(nodes: &Path, jobs: &Path, state: &Path) -> Result<Command> {
    let mut command = Command::new(programs::path(Program::Inspector)?);
    command.arg("standalone").arg("--cluster").arg(nodes).arg("--jobs").arg(jobs);
    command.arg("--state-dir").arg(state).args(["--listen", "127.0.0.1:0"]);
    command.env_remove("XDG_STATE_HOME").env_remove("RUST_LOG");
    Ok(command)
}

/// Waits until it says where it is reached and is ready.
async fn up(process: &mut Process, state: &Path, dir: &Path) -> Result<Server> {
    let http = reqwest::Client::new();
    let token: PathBuf = dir.join("token");
    loop {
        process.check()?;
        let file = std::fs::read(state.join("server.json")).ok();
        let file: Option<ServerFile> = file.and_then(|text| serde_json::from_slice(&text).ok());
        if let Some(file) = file
            && let Ok(answer) = http.get(format!("{}/readyz", file.url)).send().await
            && answer.status().is_success()
        {
            std::fs::write(&token, &file.token).context("writing the token's file")?;
            return Ok(Server::new(&file, &token));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
