//! Finding and booking resources for a request.

pub mod sink;
