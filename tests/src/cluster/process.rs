//! One program that runs beside the tests: its log goes to a file, it is killed on drop.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

use super::watchdog::Watchdog;

/// A running program.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    watchdog: Watchdog,
}

impl Process {
    /// Starts it in a process group of its own; both outputs are appended to `log`.
    pub(crate) fn start(name: &str, mut command: Command, log: PathBuf, watchdog: &Watchdog) -> Result<Self> {
        let output = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("opening {}", log.display()))?;
        let errors = output.try_clone().context("sharing the log between both outputs")?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting {name} ({})", command.get_program().to_string_lossy()))?;
        watchdog.started(child.id());
        Ok(Self { name: name.to_owned(), child, log, watchdog: watchdog.clone() })
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGSTOP, or SIGCONT.
    pub(crate) fn freeze(&self, frozen: bool) -> Result<()> {
        let signal = if frozen { "STOP" } else { "CONT" };
        let status = Command::new("kill").args(["-s", signal, &self.id().to_string()]).status();
        anyhow::ensure!(status.context("starting kill")?.success(), "kill -s {signal} failed");
        Ok(())
    }

    /// The file with all it wrote.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// `Some` when it has ended by itself.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Fails, with the end of its log, when it has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        match self.ended() {
            None => Ok(()),
            Some(status) => anyhow::bail!("{} ended ({status}):\n{}", self.name, self.log_end(20)),
        }
    }

    /// The last lines of its log.
    pub(crate) fn log_end(&self, lines: usize) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }

    /// SIGKILL, and waits until it is gone.
    pub fn kill(&mut self) {
        // It may have ended already; then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.watchdog.ended(self.child.id());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
