//! Human-readable names and quantities, and sanitizing of untrusted text for terminals and logs.
//!
//! Names, annotations and messages of a cluster may contain any character. Some move the cursor, change colors, start a
//! new line or reverse the writing direction, so that the output is misleading. All untrusted text is sanitized by this
//! crate before it is written to a terminal or a log.

mod age;
mod hostlist;
mod natural;
pub mod quantity;
mod summary;

pub use age::short;
pub use hostlist::hostlist;
pub use natural::natural_order;
pub use summary::{is_gpu, summary};

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Whether a character affects the display instead of being displayed: control characters (C0, DEL, C1), line and
/// paragraph separators, and format characters (Unicode category Cf: bidirectional controls, zero-width characters,
/// tags).
pub fn is_unsafe(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    matches!(
        c.general_category(),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
    )
}

/// Shortens untrusted text to at most `most` characters.
pub fn shorten(text: &str, most: usize) -> Cow<'_, str> {
    if text.chars().nth(most).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().take(most.saturating_sub(1)).chain(['…']).collect())
}

/// Makes a text safe to print on one line: tabs and line breaks become spaces, other unsafe characters `U+FFFD`.
pub fn clean(text: &str) -> Cow<'_, str> {
    replace(text, |c, out| {
        out.push(if matches!(c, '\n' | '\t' | '\u{2028}' | '\u{2029}') { ' ' } else { '\u{fffd}' });
    })
}

/// Like [`clean`], but keeps line feeds.
pub fn clean_lines(text: &str) -> Cow<'_, str> {
    replace(text, |c, out| match c {
        '\n' => out.push('\n'),
        '\t' | '\u{2028}' | '\u{2029}' => out.push(' '),
        _ => out.push('\u{fffd}'),
    })
}

/// Escape syntax for characters outside the Basic Multilingual Plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// Surrogate pair, `\udb40\udc01`.
    Json,
    /// `\U000e0001`.
    Yaml,
}

/// Escapes unsafe characters except those in `keep`, as in double-quoted JSON strings (`\n`, `\u202e`). The meaning of
/// a JSON document does not change if its line feeds are kept.
pub fn escape<'t>(text: &'t str, keep: &[char], syntax: Syntax) -> Cow<'t, str> {
    replace(text, |c, out| match c {
        _ if keep.contains(&c) => out.push(c),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        // Writing to a String does not fail.
        _ if syntax == Syntax::Yaml && c > '\u{ffff}' => _ = write!(out, "\\U{:08x}", u32::from(c)),
        _ => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                _ = write!(out, "\\u{unit:04x}");
            }
        }
    })
}

fn replace(text: &str, mut by: impl FnMut(char, &mut String)) -> Cow<'_, str> {
    let Some(first) = text.find(is_unsafe) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if is_unsafe(c) {
            by(c, &mut out);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_the_terminal_is_told_from_what_is_shown() {
        for c in [
            '\0',
            '\t',
            '\n',
            '\r',
            '\u{7}',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{9b}',
            '\u{ad}',
            '\u{61c}',
            '\u{200b}',
            '\u{200e}',
            '\u{2028}',
            '\u{2029}',
            '\u{202a}',
            '\u{202e}',
            '\u{2066}',
            '\u{2069}',
            '\u{feff}',
            '\u{e0001}',
            '\u{e0041}',
        ] {
            assert!(is_unsafe(c), "{c:?}");
        }
        for c in [' ', 'a', '~', '|', 'ä', '結', 'ع', 'א', '🦀', '\u{301}', '\u{a0}', '\u{fffd}'] {
            assert!(!is_unsafe(c), "{c:?}");
        }
    }

    #[test]
    fn a_text_stays_on_its_line() {
        assert_eq!(clean("1h\n\nNAME\tSTATE\u{2028}x"), "1h  NAME STATE x");
        assert_eq!(
            clean("\u{202e}h1\u{202c}\u{1b}[31m\u{7}\r"),
            "\u{fffd}h1\u{fffd}\u{fffd}[31m\u{fffd}\u{fffd}"
        );
        assert_eq!(clean_lines("a\nb\u{202e}\n"), "a\nb\u{fffd}\n");
        assert!(matches!(clean("結果 a|b"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_is_escaped_reads_back_as_it_was() {
        let text = "a\n\u{202e}\u{9b}\u{7f}\u{e0001}z";
        assert_eq!(escape(text, &[], Syntax::Json), r"a\n\u202e\u009b\u007f\udb40\udc01z");
        assert_eq!(escape(text, &['\n'], Syntax::Yaml), "a\n\\u202e\\u009b\\u007f\\U000e0001z");
        assert_eq!(escape("plain", &[], Syntax::Json), "plain");
    }
}
