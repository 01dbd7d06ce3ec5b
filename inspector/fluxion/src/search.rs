//! Search expressions that select vertices of a graph by state, job, name or property.

mod expression;
mod jobid;

pub use expression::{Criterion, Expression, InvalidCriteria, Joint};
pub use jobid::parse_jobid;
