//! Rendering options of a command.

use std::io::IsTerminal;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::cli::Format;
use crate::render;

/// Rendering options: limited to the terminal width, or not truncated.
pub(super) fn options(format: Format, headers: bool, namespaces: bool) -> render::Options {
    let width = std::io::stdout()
        .is_terminal()
        .then(|| crossterm::terminal::size().ok())
        .flatten()
        .map(|(width, _)| usize::from(width))
        .filter(|width| *width > 0);
    let wide = format == Format::Wide;
    render::Options {
        now: Timestamp::now(),
        zone: TimeZone::system(),
        wide,
        namespaces,
        headers,
        width: width.filter(|_| !wide),
    }
}
