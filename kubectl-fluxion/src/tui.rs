//! The interactive view: nodes with usage bars, the queue, planned starts and details, updated live.
//!
//! [`App`] holds the state; [`update`] applies one [`Message`] and returns the effect to carry out; [`view`]
//! draws the state. None of them does I/O.

mod app;
mod cursor;
mod event_loop;
mod feed;
mod message;
mod order;
mod update;
mod view;

use std::io::IsTerminal;

use fluxion_api::Exit;
use fluxion_api::client::Client;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::failure::Failure;

pub use app::{App, Pane, Show};
pub use event_loop::{Outside, run_loop};
pub use feed::Settings;
pub use message::{Effect, Key, Message, Question, Source};
pub use update::update;
pub use view::view;

/// Fails if standard input or output is not a terminal.
pub fn require_terminal() -> Result<(), Failure> {
    if std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Failure::new(
        Exit::Usage,
        "tui requires a terminal; in pipes and scripts, use `kubectl fluxion queue -w` or `kubectl fluxion status -o json`",
    ))
}

/// Runs the interactive view until the user quits. The terminal is restored, also if the program panics or is
/// terminated.
pub async fn run(client: Client, settings: Settings) -> Result<Exit, Failure> {
    require_terminal()?;
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut app = App::new(&client.server(), Timestamp::now(), TimeZone::system());
    app.colours = colours && anstream::ColorChoice::global() != anstream::ColorChoice::Never;
    let mut terminal = ratatui::try_init()?;
    let outside = feed::connect(client, settings);
    let result = run_loop(&mut terminal, app, outside).await;
    ratatui::restore();
    result.map(|()| Exit::Done)
}
