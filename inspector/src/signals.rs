//! The signals that ask a server to end.

use tokio::signal::unix::{SignalKind, signal};

/// Waits for SIGTERM or Ctrl-C, and says which it was.
pub async fn asked_to_end() -> std::io::Result<&'static str> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    })
}
