//! Tables of waiting jobs and of all jobs.

use anstyle::Style;
use fluxion_api::job::Members;
use fluxion_api::{FluxionJob, JobState};

use super::Options;
use super::quantity::summary;
use super::style::{BAD, BOLD, DIM, GOOD, Painted, WARN};
use super::table::Table;
use super::time::{ago, localised, short, until};
use fluxion_text::hostlist;

/// Which job table to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Waiting jobs.
    Queue,
    /// All jobs.
    Jobs,
}

impl Columns {
    /// An empty table of this kind.
    pub fn table(self, options: &Options) -> Table {
        let mut columns = Vec::new();
        if options.namespaces {
            columns.push("NAMESPACE");
        }
        columns.extend(["NAME", "STATE", "MEMBERS", "REQUEST", "PRIORITY", "AGE"]);
        match self {
            Self::Queue => columns.push("ETA"),
            Self::Jobs => columns.extend(["STARTED", "ENDS", "NODES"]),
        }
        if options.wide {
            columns.extend(["QUEUE", "POSITION", "DURATION"]);
            if self == Self::Queue {
                columns.push("PLANNED-NODES");
            }
        }
        columns.push("REASON");
        Table::new(columns)
    }
}

/// The table of waiting jobs, in the given order.
pub fn queue(jobs: &[FluxionJob], options: &Options) -> String {
    table(jobs, Columns::Queue, options)
}

/// The table of all jobs, in the given order.
pub fn jobs(jobs: &[FluxionJob], options: &Options) -> String {
    table(jobs, Columns::Jobs, options)
}

fn table(jobs: &[FluxionJob], columns: Columns, options: &Options) -> String {
    let mut table = columns.table(options);
    for job in jobs {
        table.push(job_row(job, columns, options));
    }
    table.take(options.headers, options.width)
}

/// One row of such a table.
pub fn job_row(job: &FluxionJob, columns: Columns, options: &Options) -> Vec<Painted> {
    let status = &job.status;
    let mut reference = job.reference();
    let namespace = reference.namespace.take().unwrap_or_default();
    let mut row: Vec<Painted> = Vec::new();
    if options.namespaces {
        row.push(namespace.into());
    }
    row.push(Painted::new(reference.to_string(), BOLD));
    row.push(state(job));
    row.push(members(job).into());
    row.push(request(job, options.wide).into());
    row.push(job.spec.priority.to_string().into());
    row.push(ago(job.metadata.creation_timestamp.as_deref(), options.now).into());
    match columns {
        Columns::Queue => row.push(until(planned_start(job), options.now).into()),
        Columns::Jobs => {
            row.push(match status.started_at.as_deref() {
                Some(started) => ago(Some(started), options.now).into(),
                None => "-".into(),
            });
            row.push(ends(job, options).into());
            row.push(nodes(job).into());
        }
    }
    if options.wide {
        row.push(job.spec.queue.clone().into());
        row.push(status.position.map_or_else(|| "-".to_owned(), |position| position.to_string()).into());
        row.push(job.spec.duration_seconds.map_or_else(|| "-".to_owned(), short).into());
        if columns == Columns::Queue {
            let planned = status.reservation.as_ref().map_or(&[][..], |reservation| &reservation.nodes);
            row.push(hostlist(planned, 8).into());
        }
    }
    row.push(reason(job, options));
    row
}

fn state(job: &FluxionJob) -> Painted {
    let state = &job.status.state;
    let style = state_style(state);
    if job.status.degraded {
        Painted::new(format!("{state},Degraded"), WARN)
    } else {
        Painted::new(state.as_str(), style)
    }
}

/// The colour of a state.
pub fn state_style(state: &JobState) -> Style {
    match state {
        JobState::Running | JobState::Binding => GOOD,
        JobState::Reserved | JobState::Gathering | JobState::Suspended | JobState::Releasing => WARN,
        JobState::Unsatisfiable | JobState::Failed => BAD,
        JobState::Completed | JobState::Cancelled => DIM,
        JobState::Pending | JobState::Unknown(_) => Style::new(),
    }
}

/// Seen/wanted members before the start, bound/wanted members afterwards; for a finished job, those of the last attempt.
pub fn members(job: &FluxionJob) -> String {
    let Members { wanted, seen, bound, .. } = job.status.members;
    let have = if job.is_queued() { seen } else { bound };
    format!("{have}/{}", wanted.map_or_else(|| "?".to_owned(), |wanted| wanted.to_string()))
}

/// Requests of the job, in one cell.
pub fn request(job: &FluxionJob, full_names: bool) -> String {
    summary(&job.status.request, full_names)
}

pub(super) fn planned_start(job: &FluxionJob) -> Option<&str> {
    let status = &job.status;
    status
        .planned_start
        .as_deref()
        .or(status.reservation.as_ref().map(|reservation| reservation.start.as_str()))
}

/// When the job ends or ended, or by how much it is overdue.
fn ends(job: &FluxionJob, options: &Options) -> String {
    let status = &job.status;
    if let Some(ended) = &status.ended_at {
        return format!("{} ago", ago(Some(ended), options.now));
    }
    if status.started_at.is_none() {
        return "-".to_owned();
    }
    match until(status.planned_end.as_deref(), options.now).as_str() {
        "-" => "-".to_owned(),
        "now" => format!("overdue {}", ago(status.planned_end.as_deref(), options.now)),
        left => format!("in {left}"),
    }
}

fn nodes(job: &FluxionJob) -> String {
    let names: Vec<String> = job
        .status
        .allocation
        .iter()
        .flat_map(|allocation| allocation.nodes.iter().map(|node| node.name.clone()))
        .collect();
    hostlist(&names, 3)
}

/// The first few names and the number of remaining ones.
pub(super) fn name_some(names: &[String], most: usize) -> String {
    match names.len() {
        0 => "-".to_owned(),
        count if count > most => format!("{},+{}", names[..most].join(","), count - most),
        _ => names.join(","),
    }
}

fn reason(job: &FluxionJob, options: &Options) -> Painted {
    match &job.status.reason {
        Some(reason) => localised(&reason.line(), options.now, &options.zone).into(),
        None => match job.status.warnings.first() {
            Some(warning) => Painted::new(format!("warning: {warning}"), WARN),
            None => "".into(),
        },
    }
}
