//! `fluxion-inspector try`: the whole thing in one command, on the examples.
//!
//! On a terminal it shows the live screen until that is left; otherwise it prints what a user would ask for first.
//! Its state goes with it, unless it was killed: then the next try goes on where it was.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser as _;
use fluxion_api::Exit;
use fluxion_api::client::{Client, Direct};
use fluxion_core::state::JobState;
use kubectl_fluxion::connect::Server;
use kubectl_fluxion::{cli, command};

use crate::cli::TryOptions;
use crate::engine::EngineHandle;
use crate::signals::asked_to_end;
use crate::standalone::{Running, start};

/// How long the first decisions are waited for.
const DECIDED_WITHIN: Duration = Duration::from_secs(10);
/// How long the server may take for an answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// Lies in the state folder as long as that holds nothing but a try.
const MARK: &str = "try";
/// What a try leaves in its folder.
const FILES: [&str; 4] = ["state.db", "state.db-wal", "state.db-shm", MARK];

/// Runs until the screen is left, or until the tables are printed.
pub async fn run(options: TryOptions) -> anyhow::Result<()> {
    let running = start(&options.standalone).await?;
    if running.new {
        std::fs::write(running.state_dir().join(MARK), "").context("marking the state folder")?;
    }
    // What stops the server must stop the screen too, and give the terminal back: the screen does that itself.
    let shown = show(&running, options.keep).await;
    if options.keep && shown.is_ok() {
        println!("\nThe server goes on at {} (Ctrl-C ends it).", running.reached.url);
        return running.until(asked_to_end()).await;
    }
    let folder = running.stop().await?;
    clear(folder.path())?;
    shown
}

async fn show(running: &Running, keep: bool) -> anyhow::Result<()> {
    decided(&running.engine).await?;
    let transport = Direct::new(&running.reached.url, Some(running.reached.token.clone()), None)?;
    let server = Server {
        client: Client::new(transport, ANSWERED_WITHIN),
        namespace: "default".to_owned(),
        note: None,
    };
    if std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        return ask(&server, &["tui"]).await;
    }
    ask(&server, &["status"]).await?;
    println!();
    ask(&server, &["queue", "-A"]).await?;
    if !keep {
        println!("\nOn a terminal, or with --keep, it goes on: ask it with `kubectl fluxion`.");
    }
    Ok(())
}

/// Asks as the plugin does.
async fn ask(server: &Server, line: &[&str]) -> anyhow::Result<()> {
    let line = cli::Cli::try_parse_from(["kubectl-fluxion"].iter().chain(line))?;
    match command::run_on(server, line).await {
        Ok(Exit::Done) => Ok(()),
        Ok(exit) => anyhow::bail!("the question ended with code {}", exit as u8),
        Err(failure) => anyhow::bail!(failure.message.unwrap_or_else(|| "the question failed".to_owned())),
    }
}

/// Waits until the jobs that were there at the start are decided about, and the Pods of those that start are bound.
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
    // Something that takes longer is shown as it is.
    tokio::time::timeout(DECIDED_WITHIN, settled).await.unwrap_or(Ok(()))
}

/// Removes what a try wrote; a state that somebody made otherwise is left alone.
fn clear(folder: &Path) -> anyhow::Result<()> {
    if !folder.join(MARK).exists() {
        return Ok(());
    }
    for file in FILES {
        match std::fs::remove_file(folder.join(file)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("removing {}", folder.join(file).display()));
            }
            _ => {}
        }
    }
    Ok(())
}
