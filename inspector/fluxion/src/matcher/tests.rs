//! Small graphs, small jobs, and what must become of them.

mod basics;
mod random;
mod support;
mod why;
