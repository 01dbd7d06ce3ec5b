//! The table of jobs.

use fluxion_api::FluxionJob;
use fluxion_api::job::Members;
use fluxion_text::{clean, hostlist, summary};

use crate::http::columns::{Cell, Column};

/// Names of nodes that are written out.
const NODES: usize = 3;

pub(super) const COLUMNS: &[Column] = &[
    Column::name("Name of the job: KIND.NAME of the object that groups the Pods."),
    Column::text("State", "State of the job."),
    Column::text("Members", "Created and required members; after the start, bound and required members."),
    Column::text("Request", "Total requests of its members."),
    Column::number("Priority", "Priority; jobs with a higher priority come first."),
    Column::text("ETA", "Time until the planned start."),
    Column::text("Age", "Time since the job was created."),
    Column::text("Queue", "Queue of the job.").wide(),
    Column::number("Position", "Position among the pending jobs of its queue.").wide(),
    Column::text("Started", "Time since the job started.").wide(),
    Column::text("Ends", "Time until the planned end.").wide(),
    Column::text("Nodes", "Allocated or reserved nodes.").wide(),
    Column::text("Reason", "Why the job is in its current state.").wide(),
];

pub(super) fn cells(job: &FluxionJob) -> Vec<Cell> {
    let status = &job.status;
    let state = if status.degraded { format!("{},Degraded", status.state) } else { status.state.to_string() };
    let (waits, ended) = (job.is_queued(), job.has_ended());
    let reason = match (&status.reason, status.warnings.first()) {
        (Some(reason), _) => reason.line().into_owned(),
        (None, Some(warning)) => format!("warning: {warning}"),
        (None, None) => String::new(),
    };
    let end = status.planned_end.as_deref().filter(|_| !waits && !ended);
    vec![
        Cell::foreign(&job.metadata.name),
        Cell::text(state),
        Cell::text(members(job)),
        Cell::text(clean(&summary(&status.request, false))),
        Cell::Number(job.spec.priority.into()),
        Cell::until(status.planned_start.as_deref().filter(|_| waits)),
        Cell::since(job.metadata.creation_timestamp.as_deref()),
        Cell::foreign(&job.spec.queue),
        Cell::Position,
        Cell::since(status.started_at.as_deref()),
        Cell::until(end),
        Cell::foreign(&nodes(job)),
        Cell::foreign(&reason),
    ]
}

/// Seen of wanted before the start, bound of wanted after it.
fn members(job: &FluxionJob) -> String {
    let Members { wanted, seen, bound, .. } = job.status.members;
    let have = if job.is_queued() { seen } else { bound };
    format!("{have}/{}", wanted.map_or_else(|| "?".to_owned(), |wanted| wanted.to_string()))
}

fn nodes(job: &FluxionJob) -> String {
    let on = job.status.allocation.iter().flat_map(|allocation| &allocation.nodes);
    let mut names: Vec<String> = on.map(|node| node.name.clone()).collect();
    if names.is_empty() {
        names.extend(job.status.reservation.iter().flat_map(|planned| &planned.nodes).cloned());
    }
    hostlist(&names, NODES)
}
