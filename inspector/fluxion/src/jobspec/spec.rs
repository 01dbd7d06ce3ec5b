//! What a job asks for, as it was read.

use super::count::Count;
use super::extra::Extra;
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
