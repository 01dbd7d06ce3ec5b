//! Gangs on a graph of Fluxion: what `resource-query --kubernetes` plugs into the engine of [`fluxion`].
//!
//! [`GangReader`] reads a gang from a jobspec, [`GangMatcher`] finds its place by the same search as the scheduler, and
//! [`Shares`] books what a cluster that was written down as a graph tells of who holds what.

mod constraint;
mod index;
mod jobspec;
mod matcher;
mod print;
mod report;
mod shares;
#[cfg(test)]
mod tests;
mod yaml;

pub use jobspec::GangReader;
pub use matcher::{GangMatcher, why_gang};
pub use report::GangReport;
pub use shares::{Shares, plug_in};
