//! Metrics of a result: makespan, wait, slowdown, utilization.

use serde::Serialize;

use super::{Machine, Outcome, TraceJob};

/// Shorter run times count as this long in slowdowns, in seconds; otherwise, the shortest jobs dominate.
const SLOWDOWN_BOUND: i64 = 10;

/// Distribution of a metric over jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// 50 % of the jobs have at most this.
    pub median: f64,
    /// 95 % of the jobs have at most this.
    pub p95: f64,
    /// The maximum.
    pub max: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let Some(&max) = values.last() else { return Self::default() };
        let at = |hundredths: usize| values[(values.len() * hundredths).div_ceil(100).max(1) - 1];
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Self { mean, median: at(50), p95: at(95), max }
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
    /// Seconds from the first submission to the last end.
    pub makespan: i64,
    /// Seconds between submission and start.
    pub wait: Spread,
    /// (wait + run) / run, with run times of at least 10 s, and at least 1.
    pub slowdown: Spread,
    /// Share of all cores in use during the makespan, 0 to 1.
    pub utilisation: f64,
    /// Number of queue passes.
    pub passes: u64,
}

impl Report {
    /// Computes the metrics of a trace's result on a machine.
    pub fn new(machine: Machine, trace: &[TraceJob], outcome: &Outcome) -> Self {
        let (mut waits, mut slowdowns) = (Vec::new(), Vec::new());
        let (mut first, mut last, mut used) = (i64::MAX, i64::MIN, 0.0);
        for (job, ran) in trace.iter().zip(&outcome.jobs) {
            let Some(ran) = ran else { continue };
            let (wait, run) = (ran.start - job.submit, ran.end - ran.start);
            let bounded = run.max(SLOWDOWN_BOUND) as f64;
            waits.push(wait as f64);
            slowdowns.push(((wait + run) as f64 / bounded).max(1.0));
            (first, last) = (first.min(job.submit), last.max(ran.end));
            let cores = if machine.whole_nodes {
                u64::from(job.cores.div_ceil(machine.cores)) * u64::from(machine.cores)
            } else {
                u64::from(job.cores)
            };
            used += cores as f64 * run as f64;
        }
        let ran = waits.len();
        let makespan = if ran == 0 { 0 } else { last - first };
        let offered = f64::from(machine.nodes) * f64::from(machine.cores) * makespan as f64;
        Self {
            ran,
            refused: trace.len() - ran,
            makespan,
            wait: Spread::of(waits),
            slowdown: Spread::of(slowdowns),
            utilisation: if offered > 0.0 { used / offered } else { 0.0 },
            passes: outcome.passes,
        }
    }
}
