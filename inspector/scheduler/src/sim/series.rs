//! The state of the cluster over time.

use serde::Serialize;

use super::{Machine, Outcome, TraceJob};

/// The state of the cluster from a time until the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Point {
    /// Time in seconds.
    pub time: i64,
    /// Number of cores allocated.
    pub cores: u64,
    /// Number of jobs running.
    pub running: usize,
    /// Number of jobs waiting.
    pub waiting: usize,
}

/// The number of cores allocated to a job.
pub fn allocated(machine: Machine, job: &TraceJob) -> u64 {
    if machine.whole_nodes {
        u64::from(job.cores.div_ceil(machine.cores)) * u64::from(machine.cores)
    } else {
        u64::from(job.cores)
    }
}

/// The state of the cluster whenever it changed, in order of time. Jobs that can never run are left out.
pub fn series(machine: Machine, trace: &[TraceJob], outcome: &Outcome) -> Vec<Point> {
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    enum Change {
        End,
        Submit,
        Start,
    }
    let mut changes = Vec::new();
    for (index, (job, ran)) in trace.iter().zip(&outcome.jobs).enumerate() {
        let Some(ran) = ran else { continue };
        changes.extend([
            (job.submit, Change::Submit, index),
            (ran.start, Change::Start, index),
            (ran.end, Change::End, index),
        ]);
    }
    changes.sort_unstable();
    let mut points: Vec<Point> = Vec::new();
    for (time, change, index) in changes {
        let mut point = points.last().copied().unwrap_or_default();
        let cores = allocated(machine, &trace[index]);
        match change {
            Change::Submit => point.waiting += 1,
            Change::Start => {
                (point.waiting, point.running) = (point.waiting - 1, point.running + 1);
                point.cores += cores;
            }
            Change::End => {
                point.running -= 1;
                point.cores -= cores;
            }
        }
        if points.last().is_some_and(|last| last.time == time) {
            points.pop();
        }
        point.time = time;
        points.push(point);
    }
    points
}
