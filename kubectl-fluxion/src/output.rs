//! Output to a terminal or pipe, with or without color, as text, JSON or YAML.
//!
//! All output passes through this module, which sanitizes it.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use fluxion_api::Exit;
use fluxion_text::{Syntax, clean, clean_lines, escape};
use serde::Serialize;

use crate::cli::Format;
use crate::failure::Failure;

/// Disables colors for the whole program; otherwise they are used if the stream is a terminal and `NO_COLOR` is unset.
pub fn choose_colours(never: bool) {
    if never {
        anstream::ColorChoice::Never.write_global();
    }
}

/// Writes text that may contain colors, which are removed if the output is not a terminal.
pub fn write(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    out.write_all(styled(text).as_bytes())?;
    out.flush()?;
    Ok(())
}

/// The lines of a text, of which only styles keep their escape character.
fn styled(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut out = clean_lines(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        let is_style = part
            .strip_prefix('[')
            .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'))
            .is_some_and(|rest| rest.starts_with('m'));
        out.push(if is_style { '\u{1b}' } else { char::REPLACEMENT_CHARACTER });
        out.push_str(&clean_lines(part));
    }
    out
}

/// Writes an object as JSON or YAML, ending with a newline. Unsafe characters are escaped, which protects terminals
/// and does not change the parsed document.
pub fn document(value: &impl Serialize, format: Format) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Other, format!("failed to convert the response to the output format: {error}"))
    };
    let json = || serde_json::to_string_pretty(value).map_err(|error| failed(&error));
    let mut text = match format {
        Format::Yaml => {
            let text = serde_saphyr::to_string(value).map_err(|error| failed(&error))?;
            // YAML escapes within double quotes only, where every string of a JSON document stands, and a JSON
            // document is a YAML document.
            if has_unsafe(&text) { escape(&json()?, &['\n'], Syntax::Yaml).into_owned() } else { text }
        }
        _ => escape(&json()?, &['\n'], Syntax::Json).into_owned(),
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    plain(&text)
}

fn has_unsafe(text: &str) -> bool {
    text.chars().any(|c| c != '\n' && fluxion_text::is_unsafe(c))
}

/// Writes one name per line.
pub fn names<T: std::fmt::Display>(names: impl IntoIterator<Item = T>) -> Result<(), Failure> {
    let mut text = String::new();
    for name in names {
        putln!(text, "{}", clean(&name.to_string()));
    }
    plain(&text)
}

/// Writes text that has already been sanitized.
pub fn plain(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints an error message to stderr; write errors are ignored.
pub fn complain(message: &str) {
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    drop(writeln!(anstream::stderr(), "{red}error:{red:#} {}", clean(message.trim_end())));
}

/// Prints a message to stderr.
pub fn note(message: &str) {
    drop(writeln!(anstream::stderr(), "{}", clean(message)));
}
