//! Parsed jobspecs.

use super::count::Count;
use super::extra::Extra;
use crate::flux_constraint::Constraint;

/// A resource in the resource tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resource {
    /// Type, such as `node`, `core` or `slot`.
    pub type_name: String,
    /// Count.
    pub count: Count,
    /// Whether it is requested exclusively; none if not specified.
    pub exclusive: Option<bool>,
    /// Label of a slot, or a label that is included in the output.
    pub label: Option<String>,
    /// Resources required below each of them.
    pub with: Vec<Resource>,
}

/// A jobspec.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Jobspec {
    /// Version of the jobspec, 1 to 9999.
    pub version: u32,
    /// Top-level resources.
    pub resources: Vec<Resource>,
    /// Duration in seconds; 0 means the lifetime of the graph. Not validated: any float is possible.
    pub duration: f64,
    /// Queue of the job, included in the output.
    pub queue: Option<String>,
    /// Constraint on nodes.
    pub constraint: Option<Constraint>,
    /// Replaces the resources if a [`Reader`] parsed them.
    pub extra: Option<Extra>,
}
