//! Messages on standard error.

use std::io::{Write, stderr};

/// Writes a line to standard error; write errors are ignored.
pub(crate) fn note(line: &str) {
    let _ = writeln!(stderr(), "{}", fluxion_text::clean(line));
}

/// A number with its noun.
pub(crate) fn counted(count: usize, one: &str, more: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { more })
}
