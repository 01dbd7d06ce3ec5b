//! A duration in the configuration file: `90s`, `1.5h`, `1h30m`, or a number of seconds.

use std::fmt;

use fluxion_scheduler::duration::InvalidDuration;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// Whole seconds, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seconds(pub(super) i64);

/// The same, or `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SecondsOrNone(pub(super) Option<i64>);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = deserializer.deserialize_any(Read { none: false })?;
        seconds.map(Seconds).ok_or_else(|| D::Error::custom("must be a duration"))
    }
}

impl<'de> Deserialize<'de> for SecondsOrNone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Read { none: true }).map(SecondsOrNone)
    }
}

struct Read {
    /// Whether `none` is accepted.
    none: bool,
}

impl Visitor<'_> for Read {
    type Value = Option<i64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none = if self.none { "none, or " } else { "" };
        write!(f, "{none}a duration such as 90s, 1.5h, 1h30m or 2d")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Option<i64>, E> {
        if self.none && text == "none" {
            return Ok(None);
        }
        fluxion_scheduler::duration::parse(text).map(Some).map_err(|error| match error {
            // What that would mean for a job has no place here.
            InvalidDuration::Zero(text) => {
                E::custom(format!("invalid duration {text:?}: must be at least 1s"))
            }
            InvalidDuration::Infinite(text) => {
                E::custom(format!("invalid duration {text:?}: must be e.g. 90s or 2d"))
            }
            other => E::custom(other),
        })
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Option<i64>, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Option<i64>, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Option<i64>, E> {
        self.visit_str(&number.to_string())
    }
}

/// Whole seconds, including 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SecondsOrZero(pub(super) i64);

impl<'de> Deserialize<'de> for SecondsOrZero {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Read {
            Number(f64),
            Text(String),
        }
        let text = match Read::deserialize(deserializer)? {
            Read::Number(number) => number.to_string(),
            Read::Text(text) => text,
        };
        match fluxion_scheduler::duration::parse(&text) {
            Ok(seconds) => Ok(Self(seconds)),
            Err(InvalidDuration::Zero(_)) => Ok(Self(0)),
            Err(InvalidDuration::Infinite(text)) => Err(D::Error::custom(format!(
                "invalid duration {text:?}: must be e.g. 90s, or 0 to disable it"
            ))),
            Err(other) => Err(D::Error::custom(other)),
        }
    }
}
