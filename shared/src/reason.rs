//! Why a job is where it is: as fields that programs read, and in words for people.
//!
//! A [`Reason`] has a class and [facts](Fact). Its one line and its details are written from the facts, here and nowhere
//! else, so that a table, a condition, an Event and a client say the same.

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

/// Why the job is where it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Reason {
    /// Programs match on this.
    pub class: ReasonClass,
    /// The facts in one line, with times in RFC 3339 and UTC.
    pub text: String,
    /// The facts in parts, largest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// What `text` and `details` say, as fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<Fact>,
}

impl Reason {
    /// A reason in words, with times as they are.
    pub fn new(class: ReasonClass, facts: Vec<Fact>) -> Self {
        Self { class, text: line(&facts), details: details(&facts, &str::to_owned), facts }
    }

    /// The facts in one line; what a server sent where it knows facts that this program does not, and the class where it
    /// sent no text either.
    pub fn line(&self) -> Cow<'_, str> {
        if self.is_understood() {
            return Cow::Owned(line(&self.facts));
        }
        Cow::Borrowed(if self.text.is_empty() { self.class.as_str() } else { &self.text })
    }

    /// The facts in parts, with times as `time` writes RFC 3339; what the server sent where it knows facts that this
    /// program does not.
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
