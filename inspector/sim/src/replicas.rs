//! Variants of the trace, and the confidence intervals of the metrics over them.

use fluxion_scheduler::sim::{Report, TraceJob};
use serde::Serialize;

/// Means of metrics over variants of the trace, with 95 % confidence intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Confidence {
    /// Number of variants.
    pub(crate) seeds: usize,
    /// The mean wait in seconds.
    pub(crate) wait: Interval,
    /// The mean slowdown.
    pub(crate) slowdown: Interval,
    /// The utilization, 0 to 1.
    pub(crate) utilization: Interval,
}

/// A mean, and half the width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Interval {
    pub(crate) mean: f64,
    pub(crate) half_width: f64,
}

/// The 97.5 % quantiles of Student's t distribution with 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

impl Interval {
    /// The interval of at least two values that are independent and about normally distributed.
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let freedom = values.len() - 1;
        // Beyond the table, the expansion of the quantile is exact to three digits.
        let t = STUDENT.get(freedom.wrapping_sub(1)).copied().unwrap_or(1.96 + 2.37 / freedom as f64);
        Self { mean, half_width: t * (variance / count).sqrt() }
    }
}

impl Confidence {
    /// The intervals of at least two reports.
    pub(crate) fn of(reports: &[Report]) -> Self {
        let interval = |of: fn(&Report) -> f64| Interval::of(&reports.iter().map(of).collect::<Vec<_>>());
        Self {
            seeds: reports.len(),
            wait: interval(|report| report.wait.mean),
            slowdown: interval(|report| report.slowdown.mean),
            utilization: interval(|report| report.utilization),
        }
    }
}

/// The trace with every submit time moved by at most so many seconds, not before 0.
pub(crate) fn shaken(trace: &[TraceJob], seed: u64, seconds: i64) -> Vec<TraceJob> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut moved = trace.to_vec();
    for job in &mut moved {
        job.submit = (job.submit + random.i64(-seconds..=seconds)).max(0);
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_students() {
        let interval = Interval::of(&[1.0, 2.0, 3.0]);
        assert!((interval.mean - 2.0).abs() < 1e-9);
        assert!((interval.half_width - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9);
        let many: Vec<f64> = (0..41).map(|index| f64::from(index % 2)).collect();
        let error = (Interval::of(&many).half_width)
            / (many.iter().map(|v| (v - 20.0 / 41.0).powi(2)).sum::<f64>() / 40.0 / 41.0).sqrt();
        assert!((error - 2.021).abs() < 0.002, "{error}");
    }

    #[test]
    fn a_seed_moves_jobs_the_same_way() {
        let trace = vec![TraceJob { submit: 30, ..TraceJob::default() }; 100];
        let moved = shaken(&trace, 1, 60);
        assert_eq!(moved, shaken(&trace, 1, 60));
        assert_ne!(moved, shaken(&trace, 2, 60));
        assert!(moved.iter().all(|job| (0..=90).contains(&job.submit)));
    }
}
