//! Writing: to the terminal or a pipe, with or without colours, as text, JSON or YAML.
//!
//! Whatever is written passes here last, so nothing unsafe in it gets by, however it came in.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use fluxion_api::Exit;
use fluxion_text::{Syntax, clean, clean_lines, escape};
use serde::Serialize;

use crate::cli::Format;
use crate::failure::Failure;

/// Switches colours off for the whole program; otherwise the stream decides (a terminal, and no `NO_COLOR`).
pub fn choose_colours(never: bool) {
    if never {
        anstream::ColorChoice::Never.write_global();
    }
}

/// Writes text that may hold colours; they are left out where the reader is no terminal.
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

/// Writes an object as JSON or YAML, ending with a newline. Unsafe characters are escaped, so that whoever parses it
/// gets them and a terminal does not.
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

/// Writes one name a line.
pub fn names<T: std::fmt::Display>(names: impl IntoIterator<Item = T>) -> Result<(), Failure> {
    let mut text = String::new();
    for name in names {
        putln!(text, "{}", clean(&name.to_string()));
    }
    plain(&text)
}

/// Writes text that is safe already.
pub fn plain(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Says on stderr what went wrong. A stderr that is gone is no reason to fail once more.
pub fn complain(message: &str) {
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    drop(writeln!(anstream::stderr(), "{red}error:{red:#} {}", clean(message.trim_end())));
}

/// Says something on stderr that is no error.
pub fn note(message: &str) {
    drop(writeln!(anstream::stderr(), "{}", clean(message)));
}
