//! Planned starts, soonest first.

use fluxion_api::FluxionJob;

use super::Options;
use super::jobs::{name_some, planned_start, request};
use super::style::{BOLD, Painted};
use super::table::Table;
use super::time::{clock, until};
use fluxion_text::hostlist;

/// Marks an assumed time.
fn assumed(is: bool) -> &'static str {
    if is { " (assumed)" } else { "" }
}

/// The table of jobs that have a planned start.
pub fn reservations(jobs: &[FluxionJob], options: &Options) -> String {
    let mut columns = vec!["NAME", "STARTS", "IN", "ENDS", "REQUEST", "NODES", "WAITING FOR"];
    if options.namespaces {
        columns.insert(0, "NAMESPACE");
    }
    let mut table = Table::new(columns);
    for job in jobs {
        let Some(start) = planned_start(job) else { continue };
        let reservation = job.status.reservation.as_ref();
        let end = reservation.and_then(|it| it.end.as_deref()).or(job.status.planned_end.as_deref());
        let most = if options.wide { usize::MAX } else { 3 };
        let waits: Vec<String> = job.status.waits_for.iter().map(|other| other.job.clone()).collect();
        let mut reference = job.reference();
        let namespace = reference.namespace.take().unwrap_or_default();
        let mut row: Vec<Painted> = vec![
            Painted::new(reference.to_string(), BOLD),
            clock(start, options.now, &options.zone).into(),
            format!(
                "{}{}",
                until(Some(start), options.now),
                assumed(reservation.is_some_and(|it| it.start_assumed))
            )
            .into(),
            end.map_or_else(
                || "unknown".to_owned(),
                |end| {
                    let assumed = assumed(reservation.is_some_and(|it| it.end_assumed));
                    format!("{}{assumed}", clock(end, options.now, &options.zone))
                },
            )
            .into(),
            request(job, options.wide).into(),
            hostlist(reservation.map_or(&[][..], |it| &it.nodes), most).into(),
            name_some(&waits, most).into(),
        ];
        if options.namespaces {
            row.insert(0, namespace.into());
        }
        table.push(row);
    }
    table.take(options.headers, options.width)
}
