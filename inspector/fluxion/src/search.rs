//! Searching a graph for vertices by state, job, name or property.
//!
//! `expression` reads what is searched for.

mod expression;
mod jobid;

pub use expression::{Criterion, Expression, InvalidCriteria, Joint};
pub use jobid::parse_jobid;
