//! Rendering options of a command.

use std::io::IsTerminal;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::cli::Format;
use crate::render;

/// How text is laid out: as wide as the terminal, or not cut at all.
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
