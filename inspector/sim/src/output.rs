//! Results as a table and as JSON.

use anyhow::Result;
use comfy_table::{CellAlignment, Table, presets};
use fluxion_scheduler::queue::QueuePolicy;
use fluxion_scheduler::sim::{Machine, Outcome, Ran, Report, TraceJob};
use serde::Serialize;

/// What one policy made of the trace.
pub(crate) struct PolicyRun {
    /// Its name; `own` where every queue has its own.
    pub name: &'static str,
    pub report: Report,
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

/// Policies in columns, figures in lines.
pub(crate) fn table(results: &[PolicyRun]) -> String {
    type Figure = fn(&Report) -> String;
    let lines: [(&str, Figure); 12] = [
        ("jobs run", |report| report.ran.to_string()),
        ("jobs rejected", |report| report.refused.to_string()),
        ("makespan", |report| duration(report.makespan as f64)),
        ("wait, mean", |report| duration(report.wait.mean)),
        ("wait, median", |report| duration(report.wait.median)),
        ("wait, 95th percentile", |report| duration(report.wait.p95)),
        ("wait, max", |report| duration(report.wait.max)),
        ("slowdown, mean", |report| format!("{:.2}", report.slowdown.mean)),
        ("slowdown, median", |report| format!("{:.2}", report.slowdown.median)),
        ("slowdown, 95th percentile", |report| format!("{:.2}", report.slowdown.p95)),
        ("utilization", |report| format!("{:.1}%", report.utilisation * 100.0)),
        ("scheduling passes", |report| report.passes.to_string()),
    ];
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let header = results.iter().map(|result| result.name.to_uppercase());
    table.set_header(std::iter::once(String::new()).chain(header));
    for (title, figure) in lines {
        let figures = results.iter().map(|result| figure(&result.report));
        table.add_row(std::iter::once(title.to_owned()).chain(figures));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    cluster: Cluster,
    jobs: usize,
    results: Vec<PolicyResult>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cluster {
    nodes: u32,
    cores_per_node: u32,
    whole_nodes: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PolicyResult {
    policy: &'static str,
    #[serde(flatten)]
    report: Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<Vec<Scheduled>>,
}

#[derive(Serialize)]
struct Scheduled {
    id: u64,
    submit: i64,
    /// None for a job that can never run.
    start: Option<i64>,
    end: Option<i64>,
}

/// Everything as one JSON document; times in seconds.
pub(crate) fn json(
    machine: Machine,
    trace: &[TraceJob],
    results: &[PolicyRun],
    schedule: bool,
) -> Result<String> {
    let scheduled = |(job, ran): (&TraceJob, &Option<Ran>)| Scheduled {
        id: job.id,
        submit: job.submit,
        start: ran.map(|ran| ran.start),
        end: ran.map(|ran| ran.end),
    };
    let results = results.iter().map(|result| PolicyResult {
        policy: result.name,
        report: result.report,
        schedule: schedule.then(|| trace.iter().zip(&result.outcome.jobs).map(scheduled).collect()),
    });
    let document = Document {
        cluster: Cluster {
            nodes: machine.nodes,
            cores_per_node: machine.cores,
            whole_nodes: machine.whole_nodes,
        },
        jobs: trace.len(),
        results: results.collect(),
    };
    Ok(serde_json::to_string_pretty(&document)?)
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
