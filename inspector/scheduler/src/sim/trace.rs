//! Traces: the Standard Workload Format of the Parallel Workloads Archive, and a simple CSV.

mod swf;
mod table;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::TraceJob;

pub use swf::{SwfTrace, read_swf};
pub use table::read_csv;

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

/// Creates a job from parsed numbers; with a limit of 0 or -1, the run time is the limit. Jobs take at least 1 s.
fn job(line: usize, id: u64, figures: [i64; 5]) -> Result<TraceJob, TraceError> {
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
    Ok(TraceJob { id, submit, cores, limit, run, priority, ..TraceJob::default() })
}

/// An integer; fractions of seconds are truncated, also where nothing is before the point. Some programs write large
/// numbers with an exponent (`1e5`).
fn number(word: &str) -> Option<i64> {
    let (mantissa, exponent) = word.split_once(['e', 'E']).unwrap_or((word, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = if matches!(whole, "" | "-" | "+") && !fraction.is_empty() {
        format!("{whole}0")
    } else {
        whole.to_owned()
    };
    let exponent = exponent.strip_prefix('+').unwrap_or(exponent);
    if whole.parse::<i64>().is_err()
        || !fraction.bytes().chain(exponent.bytes()).all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let places: usize = exponent.parse().ok().filter(|places| *places <= 18)?;
    let digits = fraction.chars().chain(std::iter::repeat('0')).take(places);
    whole.chars().chain(digits).collect::<String>().parse().ok()
}

/// A text without the byte order mark that some programs start files with.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Names, each stored once.
#[derive(Default)]
struct Names(BTreeSet<Arc<str>>);

impl Names {
    fn get(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return known.clone();
        }
        let name: Arc<str> = name.into();
        self.0.insert(name.clone());
        name
    }
}

fn not_a_number(line: usize, place: std::fmt::Arguments<'_>, word: &str) -> TraceError {
    wrong(line, format!("{place}: invalid number `{word:.20}`"))
}

#[cfg(test)]
mod tests;
