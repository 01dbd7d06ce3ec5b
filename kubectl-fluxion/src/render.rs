//! Human-readable output: tables, the status screen and the output of `explain`.
//!
//! The functions are pure: they depend only on objects and the given time, and do no I/O.
//! Colors are ANSI sequences in the text; the writer removes them if the output is not a terminal.

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

/// Rendering options.
#[derive(Clone, Debug)]
pub struct Options {
    /// Current time, used to calculate ages.
    pub now: Timestamp,
    /// Time zone of the user.
    pub zone: TimeZone,
    /// Table with additional columns.
    pub wide: bool,
    /// Show a namespace column.
    pub namespaces: bool,
    /// Show column headers.
    pub headers: bool,
    /// Terminal width, at which the last column of a table is truncated; `None` to not truncate.
    pub width: Option<usize>,
}

impl Options {
    /// Tables with headers, without additional columns or truncation, with times in UTC.
    pub fn plain(now: Timestamp) -> Self {
        Self { now, zone: TimeZone::UTC, wide: false, namespaces: false, headers: true, width: None }
    }
}

/// Amounts of resources in one cell: `cpu=8,mem=16Gi,gpu=4`.
pub fn amounts(quantities: &fluxion_api::Quantities) -> String {
    quantity::summary(quantities, false)
}
