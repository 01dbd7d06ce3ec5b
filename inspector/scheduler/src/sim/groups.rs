//! Metrics by user, width or queue.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::measure::ran;
use super::{Measure, Outcome, Spread, TraceJob};

/// What jobs are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// The user.
    User,
    /// The number of processors, in classes that double: 1, 2, 3-4, 5-8 and so on.
    Width,
    /// The queue.
    Queue,
}

/// The metrics of a group of jobs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// The user or queue, or the numbers of processors, as `5-8`; `-` for jobs without a user or queue.
    pub name: String,
    /// Number of jobs.
    pub jobs: usize,
    /// Seconds between submission and start.
    pub wait: Spread,
    /// Slowdown, as in the report.
    pub slowdown: Spread,
}

/// A number to order by, and a name.
type Key = (u64, Option<Arc<str>>);

/// The groups of the jobs that ran and count: widths from narrow to wide, others by name, numbers by value.
pub fn groups(trace: &[TraceJob], outcome: &Outcome, measure: &Measure, by: GroupBy) -> Vec<Group> {
    let Some(window) = measure.window(trace, outcome) else { return Vec::new() };
    let mut groups: BTreeMap<Key, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for (job, ran) in ran(trace, outcome).filter(|(job, _)| window.counts(job)) {
        let named = |name: &Option<Arc<str>>| {
            let number = name.as_ref().and_then(|name| name.parse().ok());
            (number.unwrap_or(u64::MAX), name.clone())
        };
        let key = match by {
            GroupBy::User => named(&job.user),
            GroupBy::Queue => named(&job.queue),
            GroupBy::Width => (u64::from(job.cores).next_power_of_two(), None),
        };
        let (waits, slowdowns) = groups.entry(key).or_default();
        waits.push((ran.start - job.submit) as f64);
        slowdowns.push(measure.slowdown(job, ran));
    }
    let group = |((number, name), (waits, slowdowns)): (Key, (Vec<f64>, Vec<f64>))| Group {
        name: match (by, name) {
            (GroupBy::Width, _) if number <= 2 => number.to_string(),
            (GroupBy::Width, _) => format!("{}-{number}", number / 2 + 1),
            (_, Some(name)) => name.to_string(),
            (_, None) => "-".to_owned(),
        },
        jobs: waits.len(),
        wait: Spread::of(waits),
        slowdown: Spread::of(slowdowns),
    };
    groups.into_iter().map(group).collect()
}
