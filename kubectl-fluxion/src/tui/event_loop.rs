//! Processes messages and redraws the view: immediately after a key press, otherwise at most 20 times per
//! second.

use std::time::Duration;

use futures::{Stream, StreamExt};
use ratatui::Terminal;
use ratatui::backend::Backend;
use tokio::time::{Instant, sleep_until};

use super::app::App;
use super::message::{Effect, Message};
use super::update::update;
use super::view::view;
use crate::failure::Failure;

/// Minimum time between redraws not caused by a key press.
const FRAME: Duration = Duration::from_millis(50);

/// Source of messages and handler of effects.
pub struct Outside<S, F> {
    /// Key presses, ticks and server data. The loop ends when the stream ends.
    pub messages: S,
    /// Carries out effects; results are returned as messages.
    pub effect: F,
}

/// Runs until the `Quit` effect or the end of the messages.
pub async fn run_loop<B, S, F>(
    terminal: &mut Terminal<B>,
    mut app: App,
    outside: Outside<S, F>,
) -> Result<(), Failure>
where
    B: Backend,
    S: Stream<Item = Message> + Unpin,
    F: FnMut(Effect),
{
    let Outside { mut messages, mut effect } = outside;
    let draw = |terminal: &mut Terminal<B>, app: &mut App| {
        terminal.draw(|frame| view(frame, app)).map(drop).map_err(|error| {
            Failure::new(fluxion_api::Exit::Other, format!("failed to draw to the terminal: {error}"))
        })
    };
    draw(terminal, &mut app)?;
    let mut drawn = Instant::now();
    let mut dirty = false;
    loop {
        let message = tokio::select! {
            message = messages.next() => message,
            () = sleep_until(drawn + FRAME), if dirty => {
                draw(terminal, &mut app)?;
                (drawn, dirty) = (Instant::now(), false);
                continue;
            }
        };
        let Some(message) = message else { return Ok(()) };
        if matches!(message, Message::Resized) {
            // What the terminal shows after a resize is anybody's guess.
            terminal.clear().ok();
        }
        let at_once = matches!(message, Message::Key(_) | Message::Resized);
        match update(&mut app, message) {
            Some(Effect::Quit) => return app.failure.map_or(Ok(()), Err),
            Some(other) => effect(other),
            None => {}
        }
        dirty = true;
        if at_once {
            draw(terminal, &mut app)?;
            (drawn, dirty) = (Instant::now(), false);
        }
    }
}
