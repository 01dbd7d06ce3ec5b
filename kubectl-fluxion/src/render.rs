//! Text for a person: tables, the status screen, the answer of `explain`.
//!
//! Everything here is a function of objects and of the time it is told; it neither asks nor writes.
//! Colours are ANSI sequences in the text; who writes it takes them out where they don't belong.

mod bars;
mod explain;
mod graph;
mod jobs;
mod nodes;
mod quantity;
mod report;
mod reservations;
mod style;
mod table;
mod time;

pub use fluxion_text::clean;
use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use bars::{Share, bar};
pub use explain::explain;
pub use fluxion_text::quantity::Amount;
pub use fluxion_text::{hostlist, natural_order};
pub use graph::graph;
pub use jobs::{Columns, job_row, jobs, members, queue, request, state_style};
pub use nodes::{NodeUse, gpus, node_row, node_table, nodes, resources_of, unschedulable};
pub use quantity::amount_of;
pub use report::{StatusReport, status};
pub use reservations::reservations;
pub use style::{BAD, BOLD, DIM, GOOD, Painted, WARN};
pub use table::{Table, cut};
pub use time::{ago, clock, localised, parse, short, until};

/// What all renderers are told.
#[derive(Clone, Debug)]
pub struct Options {
    /// The time that ages are reckoned from.
    pub now: Timestamp,
    /// The zone of who reads.
    pub zone: TimeZone,
    /// Table with additional columns.
    pub wide: bool,
    /// A column for the namespace.
    pub namespaces: bool,
    /// Names of the columns.
    pub headers: bool,
    /// Columns of the terminal: the last column of a table is cut there. `None`: nothing is cut.
    pub width: Option<usize>,
}

impl Options {
    /// Tables with headers, no extra columns, nothing cut, times in UTC.
    pub fn plain(now: Timestamp) -> Self {
        Self { now, zone: TimeZone::UTC, wide: false, namespaces: false, headers: true, width: None }
    }
}

/// Amounts of resources in one cell: `cpu=8,mem=16Gi,gpu=4`.
pub fn amounts(quantities: &fluxion_api::Quantities) -> String {
    quantity::summary(quantities, false)
}
