//! Writing: to the terminal or a pipe, with or without colours, as text, JSON or YAML.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use fluxion_api::Exit;
use serde::Serialize;

use crate::cli::Format;
use crate::failure::Failure;
use crate::render::clean;

/// Switches colours off for the whole program; otherwise the stream decides (a terminal, and no `NO_COLOR`).
pub fn choose_colours(never: bool) {
    if never {
        anstream::ColorChoice::Never.write_global();
    }
}

/// Writes text that may hold colours; they are left out where the reader is no terminal.
pub fn write(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes an object as JSON or YAML, ending with a newline.
pub fn document(value: &impl Serialize, format: Format) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Other, format!("the answer can't be written in this form: {error}"))
    };
    let mut text = match format {
        Format::Yaml => serde_saphyr::to_string(value).map_err(|error| failed(&error))?,
        _ => serde_json::to_string_pretty(value).map_err(|error| failed(&error))?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    plain(text.as_bytes())
}

/// Writes one name a line.
pub fn names<T: std::fmt::Display>(names: impl IntoIterator<Item = T>) -> Result<(), Failure> {
    let mut text = String::new();
    for name in names {
        putln!(text, "{name}");
    }
    plain(text.as_bytes())
}

/// Writes bytes as they are.
pub fn plain(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

/// Says on stderr what went wrong. A stderr that is gone is no reason to fail once more.
pub fn complain(message: &str) {
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    let text: String = message.lines().map(|line| clean(line) + "\n").collect();
    drop(write!(anstream::stderr(), "{red}error:{red:#} {text}"));
}

/// Says something on stderr that is no error.
pub fn note(message: &str) {
    drop(writeln!(anstream::stderr(), "{}", clean(message)));
}
