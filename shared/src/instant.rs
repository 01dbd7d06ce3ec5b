//! Timestamps in human-readable text. The server writes them in one format, so that clients can find them and show
//! them in the user's time zone.
//!
//! The format is RFC 3339 in UTC and whole seconds, `2026-03-01T14:05:10Z`, as a separate word.

use jiff::Timestamp;

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    Text(&'a str),
    Instant(Timestamp),
}

/// Formats seconds since the epoch. Out-of-range times are clamped: negative ones to 0, too large ones to the maximum.
pub fn write(seconds: i64) -> String {
    let instant = Timestamp::from_second(seconds.max(0)).unwrap_or(Timestamp::MAX);
    instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Splits a text into plain text and timestamps.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let of_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | ':' | '+' | '.' | '_' | '/');
    let mut pieces = Vec::new();
    // Where the text begins that is not yet in a piece, and where to look on.
    let (mut begun, mut at) = (0, 0);
    while let Some(start) = text[at..].find(of_word).map(|found| at + found) {
        let end = text[start..].find(|c| !of_word(c)).map_or(text.len(), |found| start + found);
        let word = text[start..end].trim_end_matches(['.', ':']);
        if let Some(instant) = read(word) {
            if begun < start {
                pieces.push(Piece::Text(&text[begun..start]));
            }
            pieces.push(Piece::Instant(instant));
            begun = start + word.len();
        }
        at = end;
    }
    if begun < text.len() {
        pieces.push(Piece::Text(&text[begun..]));
    }
    pieces
}

/// Parses a timestamp; the inverse of [`write`].
fn read(word: &str) -> Option<Timestamp> {
    let instant: Timestamp = word.ends_with('Z').then(|| word.parse().ok())??;
    (write(instant.as_second()) == word).then_some(instant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_utc_and_never_fail() {
        assert_eq!(write(0), "1970-01-01T00:00:00Z");
        assert_eq!(write(1_785_000_061), "2026-07-25T17:21:01Z");
        assert_eq!(write(-5), "1970-01-01T00:00:00Z");
        assert_eq!(write(i64::MAX), "9999-12-30T22:00:00Z");
    }

    #[test]
    fn what_was_written_is_found() {
        let seconds = 1_772_373_910;
        let (word, instant) = (write(seconds), Timestamp::from_second(seconds).unwrap());
        for (before, after) in
            [("", ""), ("full until ", "; then free"), ("(", ")."), ("…ä ", ".\n"), ("at ", ": x")]
        {
            let text = format!("{before}{word}{after}");
            let mut expected = vec![Piece::Text(before), Piece::Instant(instant), Piece::Text(after)];
            expected.retain(|piece| *piece != Piece::Text(""));
            assert_eq!(pieces(&text), expected, "{text}");
        }
        let twice = format!("{word} {word}");
        assert_eq!(pieces(&twice), [Piece::Instant(instant), Piece::Text(" "), Piece::Instant(instant)]);
        assert!(pieces("").is_empty());
    }

    #[test]
    fn nothing_else_is_taken_for_an_instant() {
        for text in [
            "job-2026-03-01T14:05:10Z",
            "job/2026-03-01T14:05:10Z",
            "2026-03-01T14:05:10Z-0",
            "2026-03-01",
            "2026-03-01T14:05:10+00:00",
            "2026-03-01T14:05:10.5Z",
            "2026-99-01T14:05:10Z",
            "…ä 1.5 x",
        ] {
            assert_eq!(pieces(text), [Piece::Text(text)]);
        }
    }
}
