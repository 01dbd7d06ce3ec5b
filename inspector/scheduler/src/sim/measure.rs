//! Metrics of a result: makespan, wait, slowdown, utilization, queue length.

use serde::Serialize;

use super::series::{Point, allocated, series};
use super::{Machine, Outcome, Ran, TraceJob};

/// What a result is measured by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Shorter run times count as this long in slowdowns, in seconds; otherwise, the shortest jobs dominate. At least 1.
    pub slowdown_bound: i64,
    /// What is left out at the start.
    pub warm_up: Cut,
    /// What is left out at the end. Unless nothing is, the time after the last submission is not measured.
    pub cool_down: Cut,
}

impl Default for Measure {
    fn default() -> Self {
        Self { slowdown_bound: 10, warm_up: Cut::Nothing, cool_down: Cut::Nothing }
    }
}

/// What is left out of the metrics at an end of the trace; it is simulated all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Cut {
    /// Nothing.
    #[default]
    Nothing,
    /// So many seconds from the first submission, or before the last one.
    Seconds(i64),
    /// A share of the jobs, 0 to 1, in order of submission.
    Jobs(f64),
}

/// Distribution of a metric over jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The median: of an even number of jobs, the mean of the two in the middle.
    pub median: f64,
    /// 95 % of the jobs have at most this.
    pub p95: f64,
    /// The maximum.
    pub max: f64,
}

impl Spread {
    /// Computes the distribution of values; all are 0 if there are none.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let Some(&max) = values.last() else { return Self::default() };
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let median = f64::midpoint(values[(count - 1) / 2], values[count / 2]);
        Self { mean, median, p95: values[(count * 95).div_ceil(100).max(1) - 1], max }
    }
}

/// The metrics of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Number of jobs that ran.
    pub ran: usize,
    /// Number of jobs that can never run on the cluster.
    pub refused: usize,
    /// Number of jobs that ran and count in wait and slowdown.
    pub measured: usize,
    /// Seconds from the first submission to the last end, of all jobs that ran.
    pub makespan: i64,
    /// Seconds between submission and start.
    pub wait: Spread,
    /// (wait + run) / run, with run times of at least the bound, and at least 1.
    pub slowdown: Spread,
    /// Share of all cores in use during the measured time, 0 to 1.
    pub utilization: f64,
    /// Offered load: the core seconds of all jobs that ran, as a share of those between first and last submission. None
    /// if all were submitted at once.
    pub load: Option<f64>,
    /// Mean number of waiting jobs over the measured time.
    pub queue_length_mean: f64,
    /// Maximum number of waiting jobs in the measured time.
    pub queue_length_max: usize,
    /// Number of queue passes.
    pub passes: u64,
}

/// The jobs and the time that count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    from: i64,
    /// The last submission that counts.
    last: i64,
    /// Until when utilization and queue length are measured.
    until: i64,
}

impl Measure {
    /// The window of a result; none if nothing ran.
    pub(super) fn window(&self, trace: &[TraceJob], outcome: &Outcome) -> Option<Window> {
        let mut submits: Vec<i64> = ran(trace, outcome).map(|(job, _)| job.submit).collect();
        submits.sort_unstable();
        let (&first, &last) = (submits.first()?, submits.last()?);
        let from = match self.warm_up {
            Cut::Nothing => first,
            Cut::Seconds(seconds) => first.saturating_add(seconds),
            Cut::Jobs(share) => submits[part(submits.len(), share)],
        };
        let end = outcome.jobs.iter().flatten().map(|ran| ran.end).max()?;
        let (last, until) = match self.cool_down {
            Cut::Nothing => (last, end),
            Cut::Seconds(seconds) => (last.saturating_sub(seconds), last.saturating_sub(seconds)),
            Cut::Jobs(share) => {
                let last = submits[submits.len() - 1 - part(submits.len(), share)];
                (last, last)
            }
        };
        Some(Window { from, last, until })
    }

    /// The slowdown of a job.
    pub(super) fn slowdown(&self, job: &TraceJob, ran: Ran) -> f64 {
        let bound = (ran.end - ran.start).max(self.slowdown_bound).max(1);
        ((ran.end - job.submit) as f64 / bound as f64).max(1.0)
    }
}

/// A share of a count, less than the count.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the count")]
fn part(count: usize, share: f64) -> usize {
    ((count as f64 * share.clamp(0.0, 1.0)) as usize).min(count.saturating_sub(1))
}

impl Window {
    pub(super) fn counts(&self, job: &TraceJob) -> bool {
        (self.from..=self.last).contains(&job.submit)
    }
}

/// The jobs that ran.
pub(super) fn ran<'a>(
    trace: &'a [TraceJob],
    outcome: &'a Outcome,
) -> impl Iterator<Item = (&'a TraceJob, Ran)> {
    trace.iter().zip(&outcome.jobs).filter_map(|(job, ran)| Some((job, (*ran)?)))
}

impl Report {
    /// Computes the metrics of a trace's result on a machine.
    pub fn new(machine: Machine, trace: &[TraceJob], outcome: &Outcome, measure: &Measure) -> Self {
        let passes = outcome.passes;
        let Some(window) = measure.window(trace, outcome) else {
            return Self { refused: trace.len(), passes, ..Self::default() };
        };
        let (mut waits, mut slowdowns) = (Vec::new(), Vec::new());
        let (mut first, mut last, mut end) = (i64::MAX, i64::MIN, i64::MIN);
        let (mut count, mut area) = (0, 0.0);
        for (job, ran) in ran(trace, outcome) {
            count += 1;
            (first, last, end) = (first.min(job.submit), last.max(job.submit), end.max(ran.end));
            area += allocated(machine, job) as f64 * (ran.end - ran.start) as f64;
            if window.counts(job) {
                waits.push((ran.start - job.submit) as f64);
                slowdowns.push(measure.slowdown(job, ran));
            }
        }
        let cores = f64::from(machine.nodes) * f64::from(machine.cores);
        let over = OverTime::of(&series(machine, trace, outcome), window);
        Self {
            ran: count,
            refused: trace.len() - count,
            measured: waits.len(),
            makespan: end - first,
            wait: Spread::of(waits),
            slowdown: Spread::of(slowdowns),
            utilization: over.cores / cores,
            load: (last > first).then(|| area / (cores * (last - first) as f64)),
            queue_length_mean: over.waiting,
            queue_length_max: over.longest,
            passes,
        }
    }
}

/// Means over the measured time.
#[derive(Default)]
struct OverTime {
    cores: f64,
    waiting: f64,
    longest: usize,
}

impl OverTime {
    fn of(points: &[Point], window: Window) -> Self {
        let mut over = Self::default();
        let span = (window.until - window.from) as f64;
        if span <= 0.0 {
            return over;
        }
        for (index, point) in points.iter().enumerate() {
            let next = points.get(index + 1).map_or(point.time, |next| next.time);
            let length = next.min(window.until) - point.time.max(window.from);
            if length > 0 {
                over.cores += point.cores as f64 * length as f64 / span;
                over.waiting += point.waiting as f64 * length as f64 / span;
                over.longest = over.longest.max(point.waiting);
            }
        }
        over
    }
}

#[cfg(test)]
mod tests;
