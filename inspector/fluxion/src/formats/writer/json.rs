//! JSON text as flux-sched lays it out: one line, `, ` and `: `, members in the order written.

use std::fmt::Write;

/// Appends a string with its quotes. Only what JSON demands is escaped.
pub(super) fn string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
        out.push_str(&rest[..at]);
        let escaped = rest.as_bytes()[at];
        match escaped {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            8 => out.push_str("\\b"),
            12 => out.push_str("\\f"),
            other => number(out, format_args!("\\u{other:04X}")),
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// Appends a number or other formatted text that needs no escapes.
pub(super) fn number(out: &mut String, value: impl std::fmt::Display) {
    write!(out, "{value}").expect("writing to a string does not fail");
}

/// Appends a separator unless the text ends where a list or object begins.
pub(super) fn separate(out: &mut String) {
    if !out.is_empty() && !out.ends_with(['{', '[']) {
        out.push_str(", ");
    }
}

/// Appends the name of the next member of an object.
pub(super) fn member(out: &mut String, name: &str) {
    separate(out);
    string(out, name);
    out.push_str(": ");
}
