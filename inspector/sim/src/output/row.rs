//! A job of a schedule, in every format that has one.

use fluxion_scheduler::sim::{Machine, Outcome, TraceJob, allocated, node_list};
use serde::Serialize;

/// A job of a schedule; times in seconds. A job that can never run has no start, end, run, wait and nodes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row<'a> {
    pub(super) id: u64,
    pub(super) user: Option<&'a str>,
    pub(super) queue: Option<&'a str>,
    pub(super) submit: i64,
    /// The start that was planned first, if the job ever had a reservation.
    pub(super) promised: Option<i64>,
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
    pub(super) wait: Option<i64>,
    pub(super) run: Option<i64>,
    pub(super) limit: i64,
    /// Processors requested.
    pub(super) processors: u32,
    /// Processors allocated: more than requested with whole nodes.
    pub(super) allocated: Option<u64>,
    /// Number of nodes.
    pub(super) nodes: Option<u64>,
    /// Their indices, as `0-3,7`.
    pub(super) node_list: Option<String>,
}

/// The jobs of a schedule, in the order of the trace.
pub(super) fn rows<'a>(
    machine: Machine,
    trace: &'a [TraceJob],
    outcome: &'a Outcome,
) -> impl Iterator<Item = Row<'a>> {
    let outcomes = outcome.jobs.iter().zip(&outcome.nodes).zip(&outcome.promised);
    trace.iter().zip(outcomes).map(move |(job, ((ran, nodes), promised))| Row {
        id: job.id,
        user: job.user.as_deref(),
        queue: job.queue.as_deref(),
        submit: job.submit,
        promised: *promised,
        start: ran.map(|ran| ran.start),
        end: ran.map(|ran| ran.end),
        wait: ran.map(|ran| ran.start - job.submit),
        run: ran.map(|ran| ran.end - ran.start),
        limit: job.limit,
        processors: job.cores,
        allocated: ran.map(|_| allocated(machine, job)),
        nodes: ran.map(|_| nodes.iter().map(|span| u64::from(span.last - span.first) + 1).sum()),
        node_list: ran.map(|_| node_list(nodes)),
    })
}
