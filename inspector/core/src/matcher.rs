//! Finding and booking resources for a request.

pub mod gang;
pub mod sink;
