//! Human-readable times.

use fluxion_api::instant::{self, Piece};
use fluxion_text::clean;
pub use fluxion_text::short;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Parses a time of the API (RFC 3339).
pub fn parse(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// Seconds between two times, `later` less `earlier`.
fn between(earlier: Timestamp, later: Timestamp) -> i64 {
    later.as_second().saturating_sub(earlier.as_second())
}

/// Time since `time`; `-` if unknown.
pub fn ago(time: Option<&str>, now: Timestamp) -> String {
    time.and_then(parse).map_or_else(|| "-".to_owned(), |time| short(between(time, now)))
}

/// Time until `time`; `now` if it has passed, `-` if unknown.
pub fn until(time: Option<&str>, now: Timestamp) -> String {
    time.and_then(parse).map_or_else(
        || "-".to_owned(),
        |time| match between(now, time) {
            ..=0 => "now".to_owned(),
            left => short(left),
        },
    )
}

/// Formats a time in the given time zone, with the date if it is not today: `14:05:10`, `Mar 03 14:05`.
pub fn clock(time: &str, now: Timestamp, zone: &TimeZone) -> String {
    parse(time).map_or_else(|| clean(time).into_owned(), |time| on_clock(time, now, zone))
}

fn on_clock(time: Timestamp, now: Timestamp, zone: &TimeZone) -> String {
    let (there, here) = (time.to_zoned(zone.clone()), now.to_zoned(zone.clone()));
    let form = if there.date() == here.date() {
        "%H:%M:%S"
    } else if there.year() == here.year() {
        "%b %d %H:%M"
    } else {
        "%Y-%m-%d %H:%M"
    };
    there.strftime(form).to_string()
}

/// Converts the timestamps in a server message to the given time zone.
pub fn localised(text: &str, now: Timestamp, zone: &TimeZone) -> String {
    let shown = |piece| match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Instant(time) => on_clock(time, now, zone),
    };
    instant::pieces(text).into_iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_relative_to_now() {
        let now = parse("2026-03-01T12:00:00Z").unwrap();
        assert_eq!(ago(Some("2026-03-01T11:59:00Z"), now), "60s");
        assert_eq!(until(Some("2026-03-01T12:05:30Z"), now), "5m30s");
        assert_eq!(until(Some("2026-03-01T11:00:00Z"), now), "now");
        assert_eq!(until(Some("soon"), now), "-");
        assert_eq!(ago(None, now), "-");
    }

    #[test]
    fn times_within_a_text() {
        let now = parse("2026-03-01T12:00:00Z").unwrap();
        let show = |text: &str| localised(text, now, &TimeZone::UTC);
        assert_eq!(show("full until 2026-03-01T14:05:10Z; then free."), "full until 14:05:10; then free.");
        assert_eq!(show("(2026-03-02T14:05:10Z)."), "(Mar 02 14:05).");
        for same in ["", "job-2026-03-01T14:05:10Z", "…ä 1.5 x"] {
            assert_eq!(show(same), same);
        }
    }

    #[test]
    fn the_day_is_named_where_it_is_another() {
        let now = parse("2026-03-01T12:00:00Z").unwrap();
        assert_eq!(clock("2026-03-01T14:05:10Z", now, &TimeZone::UTC), "14:05:10");
        assert_eq!(clock("2026-03-03T14:05:10Z", now, &TimeZone::UTC), "Mar 03 14:05");
        assert_eq!(clock("2027-03-03T14:05:10Z", now, &TimeZone::UTC), "2027-03-03 14:05");
        assert_eq!(clock("later", now, &TimeZone::UTC), "later");
    }
}
