//! Traces: the Standard Workload Format of the Parallel Workloads Archive, and a simple CSV.

use std::sync::Arc;

use super::TraceJob;

/// An invalid line of a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TraceError {
    /// The line number, from 1.
    pub line: usize,
    /// The problem.
    pub what: String,
}

fn wrong(line: usize, what: impl Into<String>) -> TraceError {
    TraceError { line, what: what.into() }
}

/// Maximum time limit of a job, in seconds: a thousand years.
const LONGEST: i64 = 1000 * 366 * 86_400;

/// Creates a job from parsed numbers; with a limit of 0 or -1, the run time is the limit.
fn job(line: usize, id: u64, figures: [i64; 5], queue: Option<Arc<str>>) -> Result<TraceJob, TraceError> {
    let [submit, cores, run, limit, priority] = figures;
    let count = u32::try_from(cores).ok().filter(|count| *count > 0);
    let cores = count.ok_or_else(|| {
        wrong(line, format!("invalid number of processors {cores}: must be between 1 and {}", u32::MAX))
    })?;
    for (what, value, least) in [("submit time", submit, 0), ("run time", run, 0), ("time limit", limit, -1)]
    {
        if !(least..=LONGEST).contains(&value) {
            return Err(wrong(
                line,
                format!("{what} {value} is out of range: must be between 0 and {LONGEST} s"),
            ));
        }
    }
    let run = run.max(1);
    let limit = if limit < 1 { run } else { limit };
    Ok(TraceJob { id, submit, cores, limit, run, priority, queue })
}

/// Parses the Standard Workload Format: 18 numbers per line, `;` starts a comment. Used are job number (1), submit
/// time (2), run time (4), processors (8, or 5 if that is -1), requested time (9) and queue (15). Jobs that never ran
/// (no run time or no processors) are skipped; returns the jobs and the number skipped.
pub fn read_swf(text: &str) -> Result<(Vec<TraceJob>, usize), TraceError> {
    let mut jobs = Vec::new();
    let mut left_out = 0;
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with(';') {
            continue;
        }
        let figures: Vec<i64> = line
            .split_whitespace()
            .zip(1..)
            .map(|(word, field)| {
                number(word).ok_or_else(|| not_a_number(line_number, format_args!("field {field}"), word))
            })
            .collect::<Result<_, _>>()?;
        if figures.len() < 9 {
            return Err(wrong(
                line_number,
                format!("line has {} fields, but the format requires 18", figures.len()),
            ));
        }
        let cores = if figures[7] > 0 { figures[7] } else { figures[4] };
        if cores <= 0 || figures[3] < 0 {
            left_out += 1;
            continue;
        }
        let id = u64::try_from(figures[0]).unwrap_or(line_number as u64);
        let queue = figures.get(14).filter(|queue| **queue >= 0).map(|queue| Arc::from(queue.to_string()));
        jobs.push(job(line_number, id, [figures[1], cores, figures[3], figures[8].max(-1), 0], queue)?);
    }
    Ok((jobs, left_out))
}

/// An integer; fractions of seconds are truncated.
fn number(word: &str) -> Option<i64> {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, ""));
    fraction.bytes().all(|byte| byte.is_ascii_digit()).then(|| whole.parse().ok())?
}

fn not_a_number(line: usize, place: std::fmt::Arguments<'_>, word: &str) -> TraceError {
    wrong(line, format!("{place}: invalid number `{word:.20}`"))
}

/// Parses a CSV file with a header containing, in any order, `submit`, `cores`, `run` and optionally `limit` (default:
/// run), `priority` (default: 0), `id` (default: the line number), `queue`. Times are in seconds. Empty lines and
/// lines starting with `#` are ignored.
pub fn read_csv(text: &str) -> Result<Vec<TraceJob>, TraceError> {
    const NAMES: [&str; 7] = ["submit", "cores", "run", "limit", "priority", "id", "queue"];
    // Spreadsheets start a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().enumerate().filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    let (index, header) =
        lines.next().ok_or_else(|| wrong(1, "missing header: submit,cores,run[,limit,priority,id,queue]"))?;
    let columns: Vec<&str> = header.split(',').map(str::trim).collect();
    if let Some(unknown) = columns.iter().find(|name| !NAMES.contains(name)) {
        return Err(wrong(
            index + 1,
            format!("unknown column `{unknown:.20}`: valid columns are {}", NAMES.join(", ")),
        ));
    }
    if let Some((_, twice)) =
        columns.iter().enumerate().find(|(place, name)| columns[..*place].contains(name))
    {
        return Err(wrong(index + 1, format!("duplicate column {twice}")));
    }
    let places = NAMES.map(|name| columns.iter().position(|column| *column == name));
    if let Some(missing) = NAMES.iter().zip(&places).take(3).find(|(_, place)| place.is_none()) {
        return Err(wrong(index + 1, format!("missing column {}", missing.0)));
    }
    let mut jobs = Vec::new();
    for (index, line) in lines {
        let line_number = index + 1;
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if fields.len() != columns.len() {
            return Err(wrong(
                line_number,
                format!("line has {} fields, but the header has {} columns", fields.len(), columns.len()),
            ));
        }
        let figure = |which: usize, otherwise: Option<i64>| {
            let text = places[which].map_or("", |place| fields[place]);
            let name = NAMES[which];
            match otherwise {
                Some(otherwise) if text.is_empty() => Ok(otherwise),
                None if text.is_empty() => Err(wrong(line_number, format!("{name} is empty"))),
                _ => number(text).ok_or_else(|| not_a_number(line_number, format_args!("{name}"), text)),
            }
        };
        let id = u64::try_from(figure(5, Some(-1))?).unwrap_or(line_number as u64);
        let figures =
            [figure(0, None)?, figure(1, None)?, figure(2, None)?, figure(3, Some(0))?, figure(4, Some(0))?];
        let queue = places[6].map(|place| fields[place]).filter(|name| !name.is_empty()).map(Arc::from);
        jobs.push(job(line_number, id, figures, queue)?);
    }
    Ok(jobs)
}
