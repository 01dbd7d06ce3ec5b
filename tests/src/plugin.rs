//! `kubectl fluxion` as a user runs it: a process with arguments, an exit code and two outputs.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tokio::process::Command;

/// The plugin and whom it asks.
#[derive(Clone, Debug)]
pub struct Plugin {
    program: PathBuf,
    url: String,
    token_file: PathBuf,
    kubeconfig: PathBuf,
}

/// How one call ended.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Plugin {
    pub(crate) fn new(program: PathBuf, url: &str, token_file: &Path, kubeconfig: &Path) -> Self {
        Self {
            program,
            url: url.to_owned(),
            token_file: token_file.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
        }
    }

    /// Asks another address, e.g. one where nobody is.
    #[must_use]
    pub fn at(mut self, url: &str) -> Self {
        url.clone_into(&mut self.url);
        self
    }

    /// Shows another token.
    #[must_use]
    pub fn with_token_file(mut self, path: &Path) -> Self {
        path.clone_into(&mut self.token_file);
        self
    }

    /// Deletes with the rights of another kubeconfig.
    #[must_use]
    pub fn with_kubeconfig(mut self, path: &Path) -> Self {
        path.clone_into(&mut self.kubeconfig);
        self
    }

    /// The command without arguments: for pipes and the like.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        self.environment(&mut command);
        command
    }

    /// A shell in which `kubectl-fluxion` is found and asks this server.
    pub fn shell(&self, script: &str) -> Result<Command> {
        let folder = self.program.parent().context("the plugin lies in a folder")?;
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("PATH", format!("{}:{path}", folder.display()));
        self.environment(&mut command);
        Ok(command)
    }

    fn environment(&self, command: &mut Command) {
        command
            .env("FLUXION_SERVER", &self.url)
            .env("FLUXION_TOKEN_FILE", &self.token_file)
            .env("KUBECONFIG", &self.kubeconfig)
            // Nothing of the machine it runs on must leak in.
            .env_remove("XDG_STATE_HOME")
            .env("HOME", self.token_file.parent().unwrap_or(Path::new("/")))
            .stdin(std::process::Stdio::null())
            .kill_on_drop(true);
    }

    /// Runs it and waits for its end.
    pub async fn run(&self, arguments: &[&str]) -> Result<Ran> {
        let mut command = self.command();
        command.args(arguments);
        ran(&mut command).await.with_context(|| format!("running kubectl-fluxion {}", arguments.join(" ")))
    }

    /// Runs it and fails unless it exits with 0; gives its standard output.
    pub async fn ask(&self, arguments: &[&str]) -> Result<String> {
        let ran = self.run(arguments).await?;
        if ran.code != Some(0) {
            bail!(
                "kubectl-fluxion {} exited with {:?}: {}",
                arguments.join(" "),
                ran.code,
                ran.stderr.trim()
            );
        }
        Ok(ran.stdout)
    }
}

/// Runs a command to its end.
pub async fn ran(command: &mut Command) -> Result<Ran> {
    let output = command.output().await?;
    Ok(Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
