//! Gangs in words and on graphs.

mod gangs;
mod jobspec;
mod mixed;
mod support;
