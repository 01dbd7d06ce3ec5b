//! What a job asks for: the Flux jobspec, read and validated.
//!
//! Fluxion accepts versions 1 to 9999 alike and takes integers the way C++ streams do (`010` is 8);
//! what is accepted here is what it accepts, apart from documents that would make it hang. A [`Reader`] of
//! one's own can take over the resources that it knows, and Fluxion does not.

mod count;
mod extra;
pub mod number;
mod read;
mod tasks;
#[cfg(test)]
mod tests;
pub mod yaml;

pub use count::{Count, Operator};
pub use extra::{Extra, Reader};
pub use read::JobspecError;

use crate::flux_constraint::Constraint;

/// One entry of the tree of resources.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resource {
    /// Type, such as `node`, `core` or `slot`.
    pub type_name: String,
    /// How many.
    pub count: Count,
    /// Whether nobody else may use it; none when the document does not say.
    pub exclusive: Option<bool>,
    /// Name of a slot, or a mark that shows up in answers.
    pub label: Option<String>,
    /// What must be below each of them.
    pub with: Vec<Resource>,
}

/// A job's request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Jobspec {
    /// Version of the document, 1 to 9999.
    pub version: u32,
    /// What is asked for at the top.
    pub resources: Vec<Resource>,
    /// Seconds; 0 means as long as the graph lives. May be anything a float can be.
    pub duration: f64,
    /// Queue named by the job, to be shown in answers.
    pub queue: Option<String>,
    /// What nodes must fulfil.
    pub constraint: Option<Constraint>,
    /// What a [`Reader`] made of the resources, in place of these.
    pub extra: Option<Extra>,
}

impl Jobspec {
    /// Reads the first YAML (or JSON) document of a text. `known` says whether a type of resource
    /// exists at all: a request for one that does not is a mistake, not a request that can't be met.
    pub fn parse(text: &str, known: &dyn Fn(&str) -> bool) -> Result<Self, JobspecError> {
        read::jobspec(text, known, None)
    }

    /// As [`Self::parse`], with a reader that takes over the resources that it knows.
    pub fn parse_with(
        text: &str,
        known: &dyn Fn(&str) -> bool,
        reader: &dyn Reader,
    ) -> Result<Self, JobspecError> {
        read::jobspec(text, known, Some(reader))
    }
}
