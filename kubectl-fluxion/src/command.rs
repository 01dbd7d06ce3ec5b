//! The commands, one module each, and shared code.

mod cancel;
mod completion;
mod explain;
mod lists;
mod live;
mod options;
mod reservations;
mod selected;
mod status;
pub mod suggest;
mod version;

pub use status::report;

use fluxion_api::Exit;

use crate::cli::{Cli, Command};
use crate::connect;
use crate::failure::Failure;
use crate::{output, render, tui};

/// Runs the command specified on the command line.
pub async fn run(cli: Cli) -> Result<Exit, Failure> {
    let Cli { connection, scope, command } = cli;
    // What needs no server comes first.
    match &command {
        Command::Completion { shell } => return completion::run(*shell),
        Command::Tui => tui::require_terminal()?,
        _ => {}
    }
    let connected = connect::connect(&connection).await;
    if let Command::Version(format) = command {
        return version::run(connected, format.output).await;
    }
    let server = connected?;
    run_on(&server, Cli { connection, scope, command }).await.map_err(|failure| server.explain(failure))
}

/// Runs a command on an already connected server.
pub async fn run_on(server: &connect::Server, cli: Cli) -> Result<Exit, Failure> {
    let Cli { connection, scope, command } = cli;
    if let Some(note) = &server.note {
        output::note(note);
    }
    match command {
        Command::Status(format) => status::run(server, format.output).await,
        Command::Queue(listing) => lists::jobs(server, &scope, &listing, render::Columns::Queue).await,
        Command::Jobs(listing) => lists::jobs(server, &scope, &listing, render::Columns::Jobs).await,
        Command::Nodes(listing) => lists::nodes(server, &listing).await,
        Command::Graph(format) => lists::graph(server, format.output).await,
        Command::Reservations(format) => reservations::run(server, &scope, format.output).await,
        Command::Explain { job, output } => explain::run(server, &scope, &job, output.output).await,
        Command::Cancel(what) => cancel::run(server, &scope, &connection, &what).await,
        Command::Tui => {
            let namespace = crate::lookup::namespaces(server, &scope).filter(|_| scope.namespace.is_some());
            let deleter = crate::cancel::Deleter::new(&connection);
            tui::run(server.client.clone(), tui::Settings { namespace, deleter }).await
        }
        Command::Version(_) | Command::Completion { .. } => Ok(Exit::Done),
    }
}
