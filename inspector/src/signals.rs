//! Signals that stop the server.

use tokio::signal::unix::{SignalKind, signal};

/// Waits for SIGTERM, Ctrl-C or SIGHUP, and returns its name.
pub async fn asked_to_end() -> std::io::Result<&'static str> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
        _ = hang_up.recv() => "SIGHUP",
    })
}
