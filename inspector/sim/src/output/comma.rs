//! Comma-separated values.

use std::io::Write;

use anyhow::Result;
use csv::{Writer, WriterBuilder};
use fluxion_scheduler::sim::{Machine, Spread, TraceJob, series};
use serde::Serialize;

use super::PolicyRun;
use super::row::rows;

fn text(writer: Writer<Vec<u8>>) -> Result<String> {
    let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    Ok(String::from_utf8(bytes)?.trim_end().to_owned())
}

/// The metrics of every policy and, where asked for, of every group: a line each.
pub(crate) fn metrics(results: &[PolicyRun]) -> Result<String> {
    let mut writer = Writer::from_writer(Vec::new());
    writer.write_record([
        "policy",
        "planning",
        "by",
        "group",
        "jobs",
        "rejected",
        "makespan",
        "utilization",
        "load",
        "queueLengthMean",
        "queueLengthMax",
        "waitMean",
        "waitMedian",
        "waitP95",
        "waitMax",
        "slowdownMean",
        "slowdownMedian",
        "slowdownP95",
        "slowdownMax",
    ])?;
    let spread = |spread: &Spread| {
        let Spread { mean, median, p95, max } = spread;
        [mean, median, p95, max].map(f64::to_string)
    };
    for PolicyRun { name, planning, report, groups, .. } in results {
        let planning = planning.unwrap_or_default().to_owned();
        let head =
            [(*name).to_owned(), planning.clone(), String::new(), String::new(), report.measured.to_string()];
        let whole = [
            report.refused.to_string(),
            report.makespan.to_string(),
            report.utilization.to_string(),
            report.load.map_or(String::new(), |load| load.to_string()),
            report.queue_length_mean.to_string(),
            report.queue_length_max.to_string(),
        ];
        writer.write_record(
            head.into_iter().chain(whole).chain(spread(&report.wait)).chain(spread(&report.slowdown)),
        )?;
        for (by, group) in groups.iter().flat_map(|(by, groups)| groups.iter().map(move |group| (by, group)))
        {
            let head = [
                (*name).to_owned(),
                planning.clone(),
                by.name().to_owned(),
                group.name.clone(),
                group.jobs.to_string(),
            ];
            let whole = [const { String::new() }; 6];
            writer.write_record(
                head.into_iter().chain(whole).chain(spread(&group.wait)).chain(spread(&group.slowdown)),
            )?;
        }
    }
    text(writer)
}

/// The schedules of all policies: a line for every policy and job.
pub(crate) fn schedule(machine: Machine, trace: &[TraceJob], results: &[PolicyRun]) -> Result<String> {
    let mut writer = WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    writer.write_record([
        "policy",
        "id",
        "user",
        "queue",
        "submit",
        "promised",
        "start",
        "end",
        "wait",
        "run",
        "limit",
        "processors",
        "allocated",
        "nodes",
        "nodeList",
    ])?;
    for result in results {
        for row in rows(machine, trace, &result.outcome) {
            writer.serialize((result.name, row))?;
        }
    }
    text(writer)
}

/// The state of the cluster under every policy whenever it changed.
pub(crate) fn timeline(
    machine: Machine,
    trace: &[TraceJob],
    results: &[PolicyRun],
    to: impl Write,
) -> Result<()> {
    #[derive(Serialize)]
    struct Line {
        policy: &'static str,
        time: i64,
        cores: u64,
        utilization: f64,
        running: usize,
        waiting: usize,
    }
    let mut writer = Writer::from_writer(to);
    let all = f64::from(machine.nodes) * f64::from(machine.cores);
    for result in results {
        for point in series(machine, trace, &result.outcome) {
            writer.serialize(Line {
                policy: result.name,
                time: point.time,
                cores: point.cores,
                utilization: point.cores as f64 / all,
                running: point.running,
                waiting: point.waiting,
            })?;
        }
    }
    Ok(writer.flush()?)
}
