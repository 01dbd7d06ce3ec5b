//! Names of jobs that a reason tells, as far as the reader may know them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Names that are written out.
const LISTED: usize = 5;

/// Jobs or Pods of which the reader may know some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct JobNames {
    /// `KIND/NAME`, with the namespace in front when it is another one.
    pub names: Vec<String>,
    /// There are others, which are not named.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub others: bool,
}

impl JobNames {
    /// In words: `job/a, job/b and others`.
    pub fn text(&self) -> String {
        self.listed("other jobs").0
    }

    /// That they have no time limit.
    pub(super) fn without_limit(&self) -> String {
        let (names, count) = self.listed("running Pods");
        let have = if count == Some(1) { "has" } else { "have" };
        format!("{names} {have} no time limit")
    }

    /// Each once, at most five, and how many there are, where that is known.
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
