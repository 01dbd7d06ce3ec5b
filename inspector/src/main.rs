//! `fluxion-inspector`: parses the command line and runs the command.

use std::process::ExitCode;

use clap::Parser;
use fluxion_inspector::cli::{Cli, Command};
use fluxion_inspector::{cluster, logs, open_files, standalone, trial};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", fluxion_text::clean(&told(&error)));
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let command = cli.command.unwrap_or_else(default_command);
    // The log must not overwrite the interactive view of `try`.
    logs::start(cli.log_format, if matches!(command, Command::Try(_)) { "error" } else { "info" });
    open_files::raise();
    // Only one of the crates that use TLS may install the provider; a second call returns an error.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ran = runtime.block_on(async {
        match command {
            Command::Cluster(options) => cluster::run(*options).await,
            Command::Standalone(options) => standalone::run(options).await,
            Command::Try(options) => trial::run(options).await,
        }
    });
    // Unfinished computations are not waited for.
    runtime.shutdown_background();
    ran
}

/// The error and its causes in one line; causes already contained in the text are omitted.
fn told(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// The default command: `cluster` in a Pod, otherwise `try`.
fn default_command() -> Command {
    let in_a_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    let name = if in_a_pod { "cluster" } else { "try" };
    // Both have defaults for all options, which is tested.
    Cli::parse_from(["fluxion-inspector", name])
        .command
        .unwrap_or_else(|| unreachable!("a command was named"))
}
