//! The live screen: nodes with bars, the queue, planned starts, and details, as they change.
//!
//! [`App`] is what is known and chosen; [`update`] changes it by one [`Message`] and says what is to be done
//! outside; [`view`] draws it. None of the three waits, asks or knows a terminal.

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

/// Refuses where there is no terminal to draw on or to read keys from.
pub fn require_terminal() -> Result<(), Failure> {
    if std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Failure::new(
        Exit::Usage,
        "tui requires a terminal; in pipes and scripts, use `kubectl fluxion queue -w` or `kubectl fluxion status -o json`",
    ))
}

/// Shows the live screen until the user leaves it. The terminal is put back as it was, also when this
/// program panics or is told to end.
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
