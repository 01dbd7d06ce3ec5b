//! `completion`: prints a shell completion script.

use clap::CommandFactory;
use fluxion_api::Exit;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output;

/// Writes the script.
pub(super) fn run(shell: clap_complete::Shell) -> Result<Exit, Failure> {
    let mut script: Vec<u8> = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "kubectl-fluxion", &mut script);
    output::plain(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
