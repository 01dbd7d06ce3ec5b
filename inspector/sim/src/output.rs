//! Results as tables; other formats are in the modules below.

mod comma;
mod gantt;
mod json;
mod row;
mod swf;

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};
use fluxion_scheduler::queue::{Planning, QueueConfig, QueuePolicy};
use fluxion_scheduler::sim::{Group, Outcome, Report};

use crate::arguments::By;
use crate::replicas::{Confidence, Interval};

pub(crate) use comma::{metrics, schedule, timeline};
pub(crate) use gantt::gantt;
pub(crate) use json::json;
pub(crate) use swf::swf;

/// What one policy made of the trace.
pub(crate) struct PolicyRun {
    /// Its name; `own` where every queue has its own.
    pub name: &'static str,
    /// What becomes of reservations, if a queue is conservative; `mixed` if that differs between queues.
    pub planning: Option<&'static str>,
    pub report: Report,
    /// The same by group.
    pub groups: Vec<(By, Vec<Group>)>,
    /// Over several seeds, where asked.
    pub confidence: Option<Confidence>,
    pub outcome: Outcome,
}

/// The name of a policy.
pub(crate) fn name(policy: QueuePolicy) -> &'static str {
    match policy {
        QueuePolicy::Fcfs => "fcfs",
        QueuePolicy::Easy => "easy",
        QueuePolicy::Conservative => "conservative",
        QueuePolicy::Hybrid => "hybrid",
    }
}

/// What becomes of the reservations of conservative queues, if there are any.
pub(crate) fn planning(queues: &[QueueConfig]) -> Option<&'static str> {
    let mut conservative = queues.iter().filter(|queue| queue.policy == QueuePolicy::Conservative);
    let first = conservative.next()?.planning;
    Some(match first {
        _ if conservative.any(|queue| queue.planning != first) => "mixed",
        Planning::Compress => "compress",
        Planning::Replan => "replan",
    })
}

/// Policies in columns, figures in lines.
pub(crate) fn table(results: &[PolicyRun]) -> String {
    type Figure = fn(&Report) -> String;
    let lines: [(&str, Figure); 16] = [
        ("jobs run", |report| report.ran.to_string()),
        ("jobs rejected", |report| report.refused.to_string()),
        ("jobs measured", |report| report.measured.to_string()),
        ("makespan", |report| duration(report.makespan as f64)),
        ("wait, mean", |report| duration(report.wait.mean)),
        ("wait, median", |report| duration(report.wait.median)),
        ("wait, 95th percentile", |report| duration(report.wait.p95)),
        ("wait, max", |report| duration(report.wait.max)),
        ("slowdown, mean", |report| format!("{:.2}", report.slowdown.mean)),
        ("slowdown, median", |report| format!("{:.2}", report.slowdown.median)),
        ("slowdown, 95th percentile", |report| format!("{:.2}", report.slowdown.p95)),
        ("utilization", |report| format!("{:.1}%", report.utilization * 100.0)),
        ("offered load", |report| report.load.map_or("-".to_owned(), |load| format!("{:.1}%", load * 100.0))),
        ("queue length, mean", |report| format!("{:.1}", report.queue_length_mean)),
        ("queue length, max", |report| report.queue_length_max.to_string()),
        ("scheduling passes", |report| report.passes.to_string()),
    ];
    let mut table = plain();
    let header = results.iter().map(|result| result.name.to_uppercase());
    table.set_header(std::iter::once(String::new()).chain(header));
    if results.iter().any(|result| result.planning.is_some()) {
        let plannings = results.iter().map(|result| result.planning.unwrap_or("-").to_owned());
        table.add_row(std::iter::once("planning".to_owned()).chain(plannings));
    }
    for (title, figure) in lines {
        let figures = results.iter().map(|result| figure(&result.report));
        table.add_row(std::iter::once(title.to_owned()).chain(figures));
    }
    for (title, row) in confidence_rows(results) {
        table.add_row(std::iter::once(title).chain(row));
    }
    let mut text = aligned(table);
    for (at, (by, _)) in results.first().map(|result| &result.groups).into_iter().flatten().enumerate() {
        text.push_str("\n\n");
        text.push_str(&group_table(results, at, *by));
    }
    text
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

/// Figures to the right.
fn aligned(mut table: Table) -> String {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

/// The means over seeds, with half the width of their confidence intervals.
fn confidence_rows(results: &[PolicyRun]) -> Vec<(String, Vec<String>)> {
    type Figure = (&'static str, fn(&Confidence) -> Interval, fn(f64) -> String);
    let lines: [Figure; 3] = [
        ("wait, mean", |confidence| confidence.wait, duration),
        ("slowdown, mean", |confidence| confidence.slowdown, |value| format!("{value:.2}")),
        ("utilization", |confidence| confidence.utilization, |value| format!("{:.1}%", value * 100.0)),
    ];
    let confidences: Option<Vec<Confidence>> = results.iter().map(|result| result.confidence).collect();
    let Some(confidences) = confidences.filter(|all| !all.is_empty()) else { return Vec::new() };
    let row = |(title, of, show): &Figure| {
        let cells = confidences.iter().map(|confidence| {
            let Interval { mean, half_width } = of(confidence);
            format!("{} ± {}", show(mean), show(half_width))
        });
        (format!("{title}, {} seeds", confidences[0].seeds), cells.collect())
    };
    lines.iter().map(row).collect()
}

/// The most lines of a table by user or queue; JSON and CSV have all.
const MOST_GROUPS: usize = 25;

/// Groups in lines; for every policy the mean wait and slowdown.
fn group_table(results: &[PolicyRun], at: usize, by: By) -> String {
    let mut table = plain();
    let mut header = vec![by.name().to_uppercase(), "JOBS".to_owned()];
    for result in results {
        let name = result.name.to_uppercase();
        header.extend([format!("{name} WAIT"), format!("{name} SLOWDOWN")]);
    }
    table.set_header(header);
    let groups = &results[0].groups[at].1;
    let mut shown: Vec<&Group> = groups.iter().collect();
    shown.sort_by_key(|group| std::cmp::Reverse(group.jobs));
    shown.truncate(MOST_GROUPS);
    for (index, group) in groups.iter().enumerate() {
        if !shown.iter().any(|other| other.name == group.name) {
            continue;
        }
        let mut row = vec![fluxion_text::clean(&group.name).to_string(), group.jobs.to_string()];
        // The same jobs run and count under every policy, so all have the same groups.
        for group in results.iter().filter_map(|result| result.groups[at].1.get(index)) {
            row.extend([duration(group.wait.mean), format!("{:.2}", group.slowdown.mean)]);
        }
        table.add_row(row);
    }
    let mut text = aligned(table);
    if groups.len() > shown.len() {
        let more = groups.len() - shown.len();
        let _ = write!(text, "\n{more} more with fewer jobs: use -o json or -o csv");
    }
    text
}

/// Seconds as `1d02h`, `3h05m`, `7m30s` or `12.5s`.
fn duration(seconds: f64) -> String {
    if seconds < 60.0 {
        return if seconds.fract() == 0.0 { format!("{seconds:.0}s") } else { format!("{seconds:.1}s") };
    }
    // Durations of traces are far below 2^53 s.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be small and positive"
    )]
    let whole = seconds.round() as u64;
    let (days, hours, minutes) = (whole / 86_400, whole / 3600 % 24, whole / 60 % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}m{:02}s", whole % 60),
        (0, _) => format!("{hours}h{minutes:02}m"),
        _ => format!("{days}d{hours:02}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short_to_read() {
        for (seconds, text) in [
            (0.0, "0s"),
            (12.25, "12.2s"),
            (450.0, "7m30s"),
            (11_100.0, "3h05m"),
            (93_600.0, "1d02h"),
            (59.99, "60.0s"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}
