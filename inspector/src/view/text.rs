//! How times and quantities are written.

use fluxion_api::Quantities;
use fluxion_scheduler::resources::ResourceList;
use fluxion_text::quantity;
use jiff::Timestamp;

/// Epoch seconds as RFC 3339 in UTC, whole seconds. A time beyond the calendar is its last second.
pub fn time(seconds: i64) -> String {
    Timestamp::from_second(seconds.max(0))
        .unwrap_or(Timestamp::MAX)
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}

/// Resources as Kubernetes writes them; what there is none of is left out where it says nothing.
pub fn quantities(list: &ResourceList) -> Quantities {
    list.iter().map(|(name, amount)| (name.to_string(), quantity::format(name, amount))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_and_never_fail() {
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(1_785_000_061), "2026-07-25T17:21:01Z");
        assert_eq!(time(-5), "1970-01-01T00:00:00Z");
        assert_eq!(time(i64::MAX), "9999-12-30T22:00:00Z");
    }
}
