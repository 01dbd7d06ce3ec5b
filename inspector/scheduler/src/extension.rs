//! Gangs on a Fluxion graph: the extension that `resource-query --kubernetes` plugs into the engine of [`fluxion`].
//!
//! [`GangReader`] reads a gang from a jobspec, [`GangMatcher`] places it with the scheduler's own search, and
//! [`Shares`] books the allocations contained in the graph of a cluster.

mod constraint;
mod index;
mod jobspec;
mod matcher;
mod peer;
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
