//! The Standard Workload Format.

use std::collections::{BTreeMap, BTreeSet};

use super::{Names, TraceError, job, not_a_number, number, without_mark, wrong};
use crate::sim::TraceJob;

/// A trace in Standard Workload Format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwfTrace {
    /// The jobs that ran.
    pub jobs: Vec<TraceJob>,
    /// Number of jobs that never ran: without run time or processors.
    pub skipped: usize,
    /// Number of lines for parts of jobs (status 2 to 4), whose jobs count once.
    pub partial: usize,
    /// Number of nodes according to the header (`MaxNodes`).
    pub max_nodes: Option<u32>,
    /// Number of processors according to the header (`MaxProcs`).
    pub max_procs: Option<u32>,
    /// Number of partitions (field 16) that jobs name.
    pub partitions: usize,
    /// Number of jobs that follow a preceding job (field 17), after a think time (field 18).
    pub preceding: usize,
}

/// Parses the Standard Workload Format: 18 numbers per line, `;` starts a comment. Used are job number (1), submit
/// time (2), run time (4), processors (8, or 5 if that is not positive), requested time (9), status (11), user (12) and
/// queue (15), and of the header `MaxNodes` and `MaxProcs`. Fractions of seconds are dropped, and a run time of 0
/// counts as 1 s. Jobs that never ran (no run time or no processors) are skipped. Lines for parts of a job (status 2
/// to 4) count only if no line sums them up: then the job runs for the sum of their run times.
pub fn read_swf(text: &str) -> Result<SwfTrace, TraceError> {
    let mut trace = SwfTrace::default();
    let (mut names, mut partitions) = (Names::default(), BTreeSet::new());
    let mut parts: Vec<TraceJob> = Vec::new();
    for (index, line) in without_mark(text).lines().enumerate() {
        let line_number = index + 1;
        let (line, comment) = line.split_once(';').unwrap_or((line, ""));
        trace.header(comment);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields = fields(line_number, line)?;
        let field = |number: usize| fields.get(number - 1).copied().unwrap_or(-1);
        let partial = (2..=4).contains(&field(11));
        trace.partial += usize::from(partial);
        let cores = if field(8) > 0 { field(8) } else { field(5) };
        if cores <= 0 || field(4) < 0 {
            trace.skipped += usize::from(!partial);
            continue;
        }
        let id = u64::try_from(field(1)).unwrap_or(line_number as u64);
        let mut name = |number: i64| (number >= 0).then(|| names.get(&number.to_string()));
        let (user, queue) = (name(field(12)), name(field(15)));
        let figures = [field(2), cores, field(4), field(9).max(-1), 0];
        let job = TraceJob { queue, user, ..job(line_number, id, figures)? };
        if partial {
            parts.push(job);
            continue;
        }
        if field(16) >= 0 {
            partitions.insert(field(16));
        }
        trace.preceding += usize::from(field(17) > 0);
        trace.jobs.push(job);
    }
    trace.partitions = partitions.len();
    trace.join(parts);
    Ok(trace)
}

/// The numbers of a line.
fn fields(line_number: usize, line: &str) -> Result<Vec<i64>, TraceError> {
    let numbers = line.split_whitespace().zip(1..).map(|(word, field)| {
        number(word).ok_or_else(|| not_a_number(line_number, format_args!("field {field}"), word))
    });
    let numbers = numbers.collect::<Result<Vec<i64>, _>>()?;
    if numbers.len() < 9 {
        let what = format!("line has {} fields, but the format requires 18", numbers.len());
        return Err(wrong(line_number, what));
    }
    Ok(numbers)
}

impl SwfTrace {
    /// Reads a line of the header, as `MaxNodes: 128`; a remark may follow the number.
    fn header(&mut self, comment: &str) {
        let Some((key, value)) = comment.split_once(':') else { return };
        let place = match key.trim() {
            "MaxNodes" => &mut self.max_nodes,
            "MaxProcs" => &mut self.max_procs,
            _ => return,
        };
        let digits = value.trim_start();
        let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
        *place = place.or(digits[..end].parse().ok().filter(|count| *count > 0));
    }

    /// Adds the jobs of which there are only parts.
    fn join(&mut self, parts: Vec<TraceJob>) {
        let whole: BTreeSet<u64> =
            if parts.is_empty() { BTreeSet::new() } else { self.jobs.iter().map(|job| job.id).collect() };
        let mut joined: BTreeMap<u64, usize> = BTreeMap::new();
        for part in parts.into_iter().filter(|part| !whole.contains(&part.id)) {
            if let Some(job) = joined.get(&part.id).and_then(|place| self.jobs.get_mut(*place)) {
                job.run = job.run.saturating_add(part.run);
                job.limit = job.limit.max(part.limit);
                job.cores = job.cores.max(part.cores);
                job.submit = job.submit.min(part.submit);
            } else {
                joined.insert(part.id, self.jobs.len());
                self.jobs.push(part);
            }
        }
    }
}
