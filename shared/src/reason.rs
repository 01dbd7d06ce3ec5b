//! Why a job is in its current state: as structured fields for programs and as text for users.
//!
//! A [`Reason`] has a class and [facts](Fact). Its summary line and its details are rendered from the facts in this module
//! only, so that tables, conditions, Events and clients show the same text.

mod exit;
mod fact;
mod left_out;
mod names;
mod nodes;
mod words;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::words::ReasonClass;

pub use exit::ExitCause;
pub use fact::{Fact, Lack, MissingMembers, NearestNode, NoEstimate, ShapeNodes, Together};
pub use left_out::NodesLeftOut;
pub use names::JobNames;
pub use words::{details, line};

/// Why a job is in its current state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Reason {
    /// Machine-readable class.
    pub class: ReasonClass,
    /// One-line summary of the facts, with times in RFC 3339 (UTC).
    pub text: String,
    /// The facts in more detail, most important first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// The content of `text` and `details` in structured form.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
}

impl Reason {
    /// Creates a reason with text and details rendered from `facts`; times stay in RFC 3339.
    pub fn new(class: ReasonClass, facts: Vec<Fact>) -> Self {
        Self { class, text: line(&facts), details: details(&facts, &str::to_owned), facts }
    }

    /// One-line summary of the facts. Falls back to the server's text if it sent facts unknown to this version, and to
    /// the class if it sent no text.
    pub fn line(&self) -> Cow<'_, str> {
        if self.is_understood() {
            return Cow::Owned(line(&self.facts));
        }
        Cow::Borrowed(if self.text.is_empty() { self.class.as_str() } else { &self.text })
    }

    /// The facts in more detail; `time` formats RFC 3339 times. Falls back to the server's details if it sent facts
    /// unknown to this version.
    pub fn details(&self, time: &dyn Fn(&str) -> String) -> Vec<String> {
        let known = if self.is_understood() { details(&self.facts, time) } else { Vec::new() };
        if known.is_empty() { self.details.clone() } else { known }
    }

    fn is_understood(&self) -> bool {
        !self.facts.is_empty() && !self.facts.iter().any(|fact| matches!(fact, Fact::Unknown(_)))
    }
}

#[cfg(test)]
mod tests;
