//! A Gantt chart as Scalable Vector Graphics: time from left to right, cores from top to bottom, a panel for every
//! policy.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::{Result, ensure};
use fluxion_scheduler::sim::{Machine, Outcome, TraceJob};

use super::{PolicyRun, duration};

/// The most cores that are drawn.
const MOST_CORES: u64 = 1 << 16;
/// The most rectangles that are drawn: more than a browser shows with ease.
const MOST_BARS: usize = 1_000_000;
/// Measures of a panel, in pixels.
const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 30.0;

/// A job on adjacent cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bar {
    job: usize,
    first: u32,
    count: u32,
}

/// The cores of every job: on each of its nodes, the lowest that are free.
fn bars(machine: Machine, outcome: &Outcome) -> Vec<Bar> {
    let mut events: Vec<(i64, bool, usize)> = Vec::new();
    for (job, ran) in outcome.jobs.iter().enumerate() {
        let Some(ran) = ran else { continue };
        events.extend([(ran.start, true, job), (ran.end, false, job)]);
    }
    events.sort_unstable();
    let mut free: Vec<BTreeSet<u32>> =
        (0..machine.nodes).map(|node| (node * machine.cores..(node + 1) * machine.cores).collect()).collect();
    let mut held: Vec<Vec<u32>> = vec![Vec::new(); outcome.jobs.len()];
    let mut bars: Vec<Bar> = Vec::new();
    for (_, starts, job) in events {
        if !starts {
            for core in std::mem::take(&mut held[job]) {
                free[(core / machine.cores) as usize].insert(core);
            }
            continue;
        }
        let first = bars.len();
        for span in &outcome.nodes[job] {
            for node in span.first..=span.last {
                for _ in 0..span.cores {
                    let Some(core) = free[node as usize].pop_first() else { continue };
                    held[job].push(core);
                    match bars[first..].last_mut() {
                        Some(bar) if bar.first + bar.count == core => bar.count += 1,
                        _ => bars.push(Bar { job, first: core, count: 1 }),
                    }
                }
            }
        }
    }
    bars
}

/// Writes the chart.
pub(crate) fn gantt(
    machine: Machine,
    trace: &[TraceJob],
    results: &[PolicyRun],
    mut to: impl Write,
) -> Result<()> {
    let cores = u64::from(machine.nodes) * u64::from(machine.cores);
    ensure!(cores <= MOST_CORES, "a Gantt chart has at most {MOST_CORES} cores, but the cluster has {cores}");
    let charts: Vec<Vec<Bar>> = results.iter().map(|result| bars(machine, &result.outcome)).collect();
    let count: usize = charts.iter().map(Vec::len).sum();
    ensure!(
        count <= MOST_BARS,
        "a Gantt chart has at most {MOST_BARS} rectangles, but this one would have {count}: use --jobs or fewer policies"
    );
    let ran = || results.iter().flat_map(|result| result.outcome.jobs.iter().flatten());
    let first = trace.iter().map(|job| job.submit).min().unwrap_or(0);
    let last = ran().map(|ran| ran.end).max().unwrap_or(first).max(first + 1);
    let (across, down) = (WIDTH / (last - first) as f64, HEIGHT / cores as f64);
    let panel = HEIGHT + 2.0 * TOP;
    let (width, height) = (LEFT + WIDTH + 20.0, panel * results.len() as f64 + 10.0);
    writeln!(
        to,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
    )?;
    for (index, (result, bars)) in results.iter().zip(&charts).enumerate() {
        let top = panel * index as f64 + TOP;
        writeln!(to, "<g transform=\"translate({LEFT} {top})\">\n<text y=\"-8\">{}</text>", result.name)?;
        writeln!(to, "<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"black\"/>")?;
        writeln!(to, "<text x=\"-8\" y=\"10\" text-anchor=\"end\">0</text>")?;
        writeln!(to, "<text x=\"-8\" y=\"{HEIGHT}\" text-anchor=\"end\">{}</text>", cores - 1)?;
        for tick in 0..=4 {
            let (part, y) = (f64::from(tick) / 4.0, HEIGHT + 16.0);
            let time = duration(((last - first) as f64 * part).round());
            writeln!(to, "<text x=\"{}\" y=\"{y}\" text-anchor=\"middle\">{time}</text>", WIDTH * part)?;
        }
        for bar in bars {
            let (job, Some(ran)) = (&trace[bar.job], result.outcome.jobs[bar.job]) else { continue };
            writeln!(
                to,
                "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"hsl({} 60% 65%)\" \
                 stroke=\"black\" stroke-width=\"0.2\"><title>job {}: {} processors, submitted {}, start {}, \
                 end {}</title></rect>",
                (ran.start - first) as f64 * across,
                f64::from(bar.first) * down,
                (ran.end - ran.start) as f64 * across,
                f64::from(bar.count) * down,
                // The golden angle: jobs that follow each other differ.
                bar.job.wrapping_mul(137) % 360,
                job.id,
                job.cores,
                job.submit,
                ran.start,
                ran.end,
            )?;
        }
        writeln!(to, "</g>")?;
    }
    writeln!(to, "</svg>")?;
    Ok(to.flush()?)
}

#[cfg(test)]
mod tests {
    use fluxion_scheduler::sim::{NodeSpan, Ran};

    use super::*;

    #[test]
    fn no_core_has_two_jobs_at_a_time() {
        let machine =
            Machine { nodes: 2, cores: 2, whole_nodes: false, enforce_limits: true, each_node: false };
        let span = |first, last, cores| Box::from([NodeSpan { first, last, cores }]);
        let ran = |start, end| Some(Ran { start, end });
        let outcome = Outcome {
            jobs: vec![ran(0, 10), ran(0, 20), None, ran(10, 20)],
            nodes: vec![span(0, 0, 1), span(0, 1, 1), Box::default(), span(0, 0, 1)],
            promised: vec![None; 4],
            passes: 0,
        };
        let bar = |job, first, count| Bar { job, first, count };
        assert_eq!(bars(machine, &outcome), [bar(0, 0, 1), bar(1, 1, 2), bar(3, 0, 1)]);
    }
}
