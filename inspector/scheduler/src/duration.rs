//! Time limits as users write them: Flux Standard Duration (RFC 23: `90`, `90s`, `1.5h`, `2d`) and Go's
//! (`1h30m`, `500ms`). The result is in whole seconds, rounded up, so that a limit is never cut short.

/// Maximum length of a duration in characters; no valid duration is longer.
const LONGEST: usize = 64;
/// Nanoseconds in a second.
const SECOND: i128 = 1_000_000_000;

/// Why a text is not a valid duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDuration {
    /// Not a sequence of numbers with units.
    #[error("invalid duration {text:?}: {problem} (use e.g. 90s, 1.5h, 1h30m or 2d)")]
    Syntax {
        /// The text, truncated if very long.
        text: String,
        /// The problem.
        problem: String,
    },
    /// Zero.
    #[error("invalid duration {0:?}: must be positive; omit it for a job without a limit")]
    Zero(String),
    /// `infinity` and the like.
    #[error("invalid duration {0:?}: must be a number; omit it for a job without a limit")]
    Infinite(String),
    /// Negative.
    #[error("invalid duration {0:?}: must not be negative")]
    Negative(String),
    /// More seconds than fit in an `i64`.
    #[error("invalid duration {0:?}: too long")]
    TooLong(String),
}

/// Whole seconds of a Flux Standard or Go duration, rounded up; at least 1.
pub fn parse(text: &str) -> Result<i64, InvalidDuration> {
    let shown: String = text.chars().take(LONGEST).collect();
    let syntax = |problem: &str| InvalidDuration::Syntax { text: shown.clone(), problem: problem.to_owned() };
    if text.len() > LONGEST {
        return Err(syntax("it is too long"));
    }
    if let Some(positive) = text.strip_prefix('-') {
        return Err(match parse(positive) {
            Err(error @ InvalidDuration::Zero(_)) => error,
            Ok(_) | Err(InvalidDuration::Infinite(_) | InvalidDuration::TooLong(_)) => {
                InvalidDuration::Negative(shown)
            }
            Err(_) => syntax("it is negative"),
        });
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    if ["inf", "infinity", "unlimited", "none", "nan"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return Err(InvalidDuration::Infinite(shown));
    }
    if text.is_empty() {
        return Err(syntax("it is empty"));
    }
    let mut rest = text;
    let mut nanos: i128 = 0;
    let mut parts = 0;
    while !rest.is_empty() {
        let (number, after) =
            rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len()));
        let (unit, after) =
            after.split_at(after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len()));
        if number.is_empty() {
            return Err(syntax("it does not start with a number"));
        }
        if unit.is_empty() && parts > 0 {
            return Err(syntax("a unit is missing"));
        }
        let unit = unit_nanos(unit)
            .ok_or_else(|| syntax(&format!("unknown unit {unit:?} (must be ms, s, m, h or d)")))?;
        let part = times(number, unit).map_err(|problem| match problem {
            Problem::Syntax => syntax(&format!("invalid number {number:?}")),
            Problem::TooLong => InvalidDuration::TooLong(shown.clone()),
        })?;
        nanos = nanos.checked_add(part).ok_or_else(|| InvalidDuration::TooLong(shown.clone()))?;
        parts += 1;
        rest = after;
    }
    if nanos == 0 {
        return Err(InvalidDuration::Zero(shown));
    }
    let seconds = nanos / SECOND + i128::from(nanos % SECOND != 0);
    i64::try_from(seconds).map_err(|_| InvalidDuration::TooLong(shown))
}

fn unit_nanos(unit: &str) -> Option<i128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" | "" => SECOND,
        "m" => 60 * SECOND,
        "h" => 3_600 * SECOND,
        "d" => 86_400 * SECOND,
        _ => return None,
    })
}

enum Problem {
    Syntax,
    TooLong,
}

/// A decimal number times a unit, rounded up to whole nanoseconds.
fn times(number: &str, unit: i128) -> Result<i128, Problem> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return Err(Problem::Syntax);
    }
    let mut total: i128 = 0;
    for digit in whole.bytes() {
        total = total
            .checked_mul(10)
            .and_then(|t| t.checked_add(i128::from(digit - b'0')))
            .ok_or(Problem::TooLong)?;
    }
    total = total.checked_mul(unit).ok_or(Problem::TooLong)?;
    let mut scale: i128 = 1;
    let mut part: i128 = 0;
    // Eighteen digits are more precise than a nanosecond of a day.
    for digit in fraction.bytes().take(18) {
        scale *= 10;
        part = part * 10 + i128::from(digit - b'0');
    }
    let part = part.checked_mul(unit).ok_or(Problem::TooLong)?;
    total.checked_add(part / scale + i128::from(part % scale != 0)).ok_or(Problem::TooLong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flux_and_go_durations_are_seconds_rounded_up() {
        for (text, want) in [
            ("90", 90),
            ("90s", 90),
            ("+90s", 90),
            ("1.5h", 5400),
            ("1h30m", 5400),
            ("2d", 172_800),
            ("500ms", 1),
            ("1ns", 1),
            ("1500ms", 2),
            ("0.5", 1),
            (".5m", 30),
            ("1h0m0.1s", 3601),
            ("9223372036854775807", i64::MAX),
            ("0s1s", 1),
        ] {
            assert_eq!(parse(text), Ok(want), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_says_why() {
        for (text, part) in [
            ("", "empty"),
            ("0", "must be positive"),
            ("-0", "must be positive"),
            ("0h0m", "must be positive"),
            ("infinity", "omit it"),
            ("INF", "omit it"),
            ("-5m", "negative"),
            ("-inf", "negative"),
            ("five", "start with a number"),
            ("5 m", "unknown unit \" m\""),
            ("5w", "unknown unit \"w\""),
            ("1h30", "unit is missing"),
            ("1.2.3s", "invalid number \"1.2.3\""),
            (".s", "invalid number \".\""),
            ("9223372036854775808", "too long"),
            ("99999999999999999999999999999999999999999d", "too long"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(parse(&"1s".repeat(40)).unwrap_err().to_string().contains("too long"));
    }
}
