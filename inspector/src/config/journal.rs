//! The section `journal` of the configuration file.

use fluxion_scheduler::state::Settings;
use fluxion_text::quantity::Amount;
use serde::Deserialize;

use super::seconds::Seconds;
use crate::history::{JournalUrl, Location};
use crate::journal::Retention;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Section {
    url: Option<JournalUrl>,
    max_age: Option<Seconds>,
    max_size: Option<Size>,
}

/// A number of bytes, or a quantity such as 256Mi.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Size {
    Bytes(u64),
    Quantity(String),
}

/// Where the history of a cluster is stored, and for how long.
#[derive(Clone, Debug)]
pub struct JournalConfig {
    pub location: Location,
    pub retention: Retention,
}

impl Default for JournalConfig {
    fn default() -> Self {
        Self { location: Location::StateDir, retention: Retention::default() }
    }
}

/// Minimum of `maxSize` (bytes).
const SIZE_MIN: u64 = 1 << 20;

impl Section {
    /// Validates it; an error names the field.
    pub(super) fn check(self, settings: &Settings) -> Result<JournalConfig, (&'static str, String)> {
        let mut config = JournalConfig::default();
        if let Some(url) = &self.url {
            config.location = Location::parse(url).map_err(|error| ("url", error.to_string()))?;
        }
        if let Some(Seconds(seconds)) = self.max_age {
            if seconds < settings.keep_ended {
                let message = "must not be shorter than limits.keepEnded, for which finished jobs are shown";
                return Err(("maxAge", message.to_owned()));
            }
            config.retention.max_age = seconds;
        }
        config.retention.max_age = config.retention.max_age.max(settings.keep_ended);
        if let Some(size) = self.max_size {
            let bytes = match size {
                Size::Bytes(bytes) => Some(bytes),
                Size::Quantity(text) => text.parse::<Amount>().ok().and_then(Amount::units),
            };
            config.retention.max_size = bytes
                .filter(|bytes| *bytes >= SIZE_MIN)
                .ok_or_else(|| ("maxSize", "must be a quantity of at least 1Mi, e.g. 256Mi".to_owned()))?;
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_with;
    use super::*;

    fn read(text: &str) -> Result<JournalConfig, String> {
        let text = format!("limits: {{keepEnded: 2h}}\njournal: {text}\n");
        parse_with("c.yaml", &text, false).map(|config| config.journal).map_err(|error| error.to_string())
    }

    #[test]
    fn the_example_has_the_defaults() {
        let example = include_str!("../../../examples/config.yaml");
        let config = parse_with("c.yaml", example, false).unwrap().journal;
        assert_eq!(config.retention, Retention::default());
        assert!(matches!(config.location, Location::StateDir));
    }

    #[test]
    fn limits_are_checked() {
        let config = read("{url: 'sqlite:/x.db', maxAge: 3h, maxSize: 2Mi}").unwrap();
        assert_eq!(config.retention, Retention { max_age: 10_800, max_size: 2 << 20 });
        assert_eq!(config.location.to_string(), "/x.db");
        assert_eq!(read("{maxSize: 2000000}").unwrap().retention.max_size, 2_000_000);
        for (text, field) in [
            ("{maxAge: 1h}", "journal.maxAge: must not be shorter than limits.keepEnded"),
            ("{maxSize: 1k}", "journal.maxSize: must be a quantity of at least 1Mi"),
            ("{maxSize: much}", "journal.maxSize: must be a quantity of at least 1Mi"),
            ("{url: 'mysql://a:s3cret@b'}", "journal.url: must be sqlite:PATH or postgres://"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(field) && !error.contains("s3cret"), "{error}");
        }
    }
}
