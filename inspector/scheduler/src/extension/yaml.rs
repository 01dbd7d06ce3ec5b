//! Parses the parts of a jobspec entry.

use std::collections::BTreeSet;
use std::sync::Arc;

use fluxion::jobspec::JobspecError;
use fluxion::jobspec::yaml::Value;

pub(super) fn refuse<T>(text: impl Into<String>) -> Result<T, JobspecError> {
    Err(JobspecError::Rule(text.into()))
}

/// Rejects anything other than a mapping, unknown keys, and duplicate keys.
pub(super) fn only(entry: &Value, what: &str, known: &[&str]) -> Result<(), JobspecError> {
    let Some(pairs) = entry.mapping() else { return refuse(format!("{what} is not a mapping")) };
    let mut seen = BTreeSet::new();
    for (key, _) in pairs {
        let key = key.scalar().unwrap_or_default();
        if !known.contains(&key) {
            return refuse(format!("unknown key \"{key}\" in {what}: must be one of {}", known.join(", ")));
        }
        if !seen.insert(key) {
            return refuse(format!("duplicate \"{key}\" in {what}"));
        }
    }
    Ok(())
}

/// The text of an optional key.
pub(super) fn text(entry: &Value, key: &str) -> Result<Option<Arc<str>>, JobspecError> {
    match entry.get(key) {
        None => Ok(None),
        Some(value) => match value.scalar() {
            Some(text) => Ok(Some(Arc::from(text))),
            None => refuse(format!("Value of \"{key}\" must be a scalar")),
        },
    }
}
