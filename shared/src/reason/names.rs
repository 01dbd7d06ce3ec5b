//! Job names in a reason, limited to those the reader is allowed to see.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Maximum number of names listed.
const LISTED: usize = 5;

/// Jobs or Pods, some of which the reader may not be allowed to see.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct JobNames {
    /// `KIND/NAME`, or `NAMESPACE/KIND/NAME` in other namespaces.
    pub names: Vec<String>,
    /// Whether there are others that are not listed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub others: bool,
}

impl JobNames {
    /// As text: `job/a, job/b and others`.
    pub fn text(&self) -> String {
        self.listed("other jobs").0
    }

    /// States that they have no time limit.
    pub(super) fn without_limit(&self) -> String {
        let (names, count) = self.listed("running Pods");
        let have = if count == Some(1) { "has" } else { "have" };
        format!("{names} {have} no time limit")
    }

    /// Distinct names, at most five, and their number if known.
    fn listed(&self, nobody: &str) -> (String, Option<usize>) {
        let mut seen = BTreeSet::new();
        let names: Vec<&str> =
            self.names.iter().map(String::as_str).filter(|name| seen.insert(*name)).collect();
        let told = names[..names.len().min(LISTED)].join(", ");
        match (names.len(), self.others) {
            (0, _) => (nobody.to_owned(), None),
            (count, false) if count <= LISTED => (told, Some(count)),
            _ => (format!("{told} and others"), None),
        }
    }
}
