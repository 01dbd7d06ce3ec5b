//! `fluxion-inspector try`: runs everything in one command, on the examples.
//!
//! On a terminal, it shows the interactive view until the user quits; otherwise, it prints the most important tables.
//! State is stored in a separate directory, so that the user's own cluster is neither shown nor changed. The directory
//! is deleted at the end; if the process was killed, the next run continues from it.

use std::io::{IsTerminal, Write as _};
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser as _;
use fluxion_api::Exit;
use fluxion_api::client::{Client, Direct};
use fluxion_scheduler::state::JobState;
use kubectl_fluxion::connect::Server;
use kubectl_fluxion::{cli, command};

use crate::cli::TryOptions;
use crate::engine::EngineHandle;
use crate::signals::asked_to_end;
use crate::standalone::{Running, start};

/// Maximum time to wait for the first decisions.
const DECIDED_WITHIN: Duration = Duration::from_secs(10);
/// Maximum time to wait for a response.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// Subdirectory of the state directory.
const FOLDER: &str = "try";

/// Runs until the view is closed, or until the tables are printed.
pub async fn run(options: TryOptions) -> anyhow::Result<()> {
    let running = start(&options.standalone, Some(FOLDER)).await?;
    // Signals that stop the server must also close the view and restore the terminal: the view does that itself.
    let shown = show(&running, options.keep).await;
    let folder = if options.keep && shown.is_ok() {
        say(&format!("\nThe server keeps running at {} (press Ctrl-C to stop it).\n", running.reached.url));
        running.until(asked_to_end()).await?
    } else {
        running.stop().await?
    };
    let kept = folder.path().join(FOLDER);
    std::fs::remove_dir_all(&kept).with_context(|| format!("removing {}", kept.display()))?;
    shown
}

/// Output for users: a closed pipe is not an error.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

async fn show(running: &Running, keep: bool) -> anyhow::Result<()> {
    decided(&running.engine).await?;
    let transport = Direct::new(&running.reached.url, Some(running.reached.token.clone()), None)?;
    let server = Server {
        client: Client::new(transport, ANSWERED_WITHIN),
        namespace: "default".to_owned(),
        note: None,
        asked_because: None,
    };
    if std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        return ask(&server, &["tui"]).await;
    }
    ask(&server, &["status"]).await?;
    say("\n");
    ask(&server, &["queue", "-A"]).await?;
    if !keep {
        say("\nOn a terminal, or with --keep, the server keeps running: query it with `kubectl fluxion`.\n");
    }
    Ok(())
}

/// Sends a request like the plugin.
async fn ask(server: &Server, line: &[&str]) -> anyhow::Result<()> {
    let line = cli::Cli::try_parse_from(["kubectl-fluxion"].iter().chain(line))?;
    match command::run_on(server, line).await {
        Ok(Exit::Done) => Ok(()),
        Ok(exit) => anyhow::bail!("the command failed with exit code {}", exit as u8),
        // Without a message: the pipe is closed.
        Err(failure) => failure.message.map_or(Ok(()), |message| anyhow::bail!(message)),
    }
}

/// Waits until the jobs that existed at the start have been evaluated, and the Pods of those that start are bound.
async fn decided(engine: &EngineHandle) -> anyhow::Result<()> {
    let mut changes = engine.changed();
    let settled = async {
        loop {
            let published = engine.fresh().await?;
            let mut jobs = published.state.jobs();
            if published.state.ready() && !jobs.any(|job| job.state == JobState::Binding) {
                return Ok(());
            }
            if changes.changed().await.is_err() {
                return Ok(());
            }
        }
    };
    // If it takes longer, the current state is shown.
    tokio::time::timeout(DECIDED_WITHIN, settled).await.unwrap_or(Ok(()))
}
