//! `fluxion-sim`: simulates a job trace on a cluster under one or more queue policies and compares the
//! results. The simulation is in `fluxion-scheduler`; this program reads files and prints.

mod arguments;
mod cluster;
mod input;
mod output;
mod replicas;
mod words;

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write, stderr, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use fluxion_scheduler::queue::QueueConfig;
use fluxion_scheduler::sim::{Machine, Report, TraceJob, groups, simulate};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use arguments::{Arguments, By, Output};
use output::PolicyRun;
use replicas::Confidence;
use words::{counted, note};

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&format!("fluxion-sim: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    arguments.check().map_err(anyhow::Error::msg)?;
    let (trace, header) = input::read(arguments)?;
    let machine = cluster::machine(arguments, header)?;
    let mut results = play(arguments, machine, &trace)?;
    if let Some(refused) = results.iter().map(|result| result.report.refused).max().filter(|count| *count > 0)
    {
        let widest = trace.iter().map(|job| job.cores).max().unwrap_or(0);
        let refused = counted(refused, "job requests", "jobs request");
        note(&format!(
            "{refused} more resources than the cluster has and can never run: the widest is {widest} processors"
        ));
    }
    replicate(arguments, machine, &trace, &mut results)?;
    if let Some(path) = &arguments.timeline {
        write_file(path, |file| output::timeline(machine, &trace, &results, file))?;
    }
    if let Some(path) = &arguments.gantt {
        write_file(path, |file| output::gantt(machine, &trace, &results, file))?;
    }
    let text = match arguments.output {
        Output::Table => output::table(&results),
        Output::Json => output::json(machine, &trace, &results, arguments.schedule)?,
        Output::Csv if arguments.schedule => output::schedule(machine, &trace, &results)?,
        Output::Csv => output::metrics(&results)?,
        Output::Swf => {
            let result = results.first().context("no policy")?;
            output::swf(machine, &trace, result)
        }
    };
    match writeln!(stdout(), "{text}") {
        // Whoever closes the pipe has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("failed to write the output"),
    }
}

fn write_file(path: &Path, write: impl FnOnce(BufWriter<File>) -> Result<()>) -> Result<()> {
    let file = File::create(path).map_err(anyhow::Error::from);
    file.and_then(|file| write(BufWriter::new(file)))
        .with_context(|| format!("failed to write {}", path.display()))
}

/// Plays variants of the trace, where asked, and adds the confidence intervals over them.
fn replicate(
    arguments: &Arguments,
    machine: Machine,
    trace: &[TraceJob],
    results: &mut [PolicyRun],
) -> Result<()> {
    let Some(seeds) = arguments.measuring.seeds else { return Ok(()) };
    let mut reports: Vec<Vec<Report>> = vec![Vec::new(); results.len()];
    for seed in 1..=seeds {
        let moved = replicas::shaken(trace, seed, arguments.measuring.shake);
        for (reports, result) in reports.iter_mut().zip(play(arguments, machine, &moved)?) {
            reports.push(result.report);
        }
    }
    for (reports, result) in reports.iter().zip(results) {
        result.confidence = Some(Confidence::of(reports));
    }
    Ok(())
}

/// Plays the trace under every policy, side by side.
fn play(arguments: &Arguments, machine: Machine, trace: &[TraceJob]) -> Result<Vec<PolicyRun>> {
    let target = if stderr().is_terminal() && !arguments.quiet {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bars = MultiProgress::with_draw_target(target);
    let style = ProgressStyle::with_template("{msg:>12} {bar:40} {pos}/{len} jobs, {eta} left")
        .context("the progress bar's template")?;
    let queues = arguments.queues().map_err(anyhow::Error::msg)?;
    let mut runs: Vec<(&'static str, Vec<QueueConfig>)> = Vec::new();
    if queues.iter().all(|queue| queue.policy.is_some()) {
        runs.push(("own", Vec::new()));
    } else {
        runs.extend(arguments.policies().into_iter().map(|policy| (output::name(policy), Vec::new())));
    }
    for ((_, configs), compared) in runs.iter_mut().zip(arguments.policies()) {
        configs.extend(queues.iter().map(|queue| {
            let policy = queue.policy.unwrap_or(compared);
            QueueConfig { policy, ..queue.config.clone() }
        }));
    }
    let play_one = |name: &'static str, configs: &[QueueConfig], bar: &ProgressBar| -> Result<PolicyRun> {
        let outcome = simulate(machine, trace, configs, &mut |done| bar.set_position(done as u64))?;
        bar.finish();
        let measure = arguments.measuring.measure();
        let report = Report::new(machine, trace, &outcome, &measure);
        let grouped = |by: &By| (*by, groups(trace, &outcome, &measure, (*by).into()));
        let groups = arguments.measuring.by.iter().map(grouped).collect();
        let planning = output::planning(configs);
        Ok(PolicyRun { name, planning, report, groups, confidence: None, outcome })
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = runs
            .iter()
            .map(|(name, configs)| {
                let bar = bars.add(ProgressBar::new(trace.len() as u64).with_style(style.clone()));
                bar.set_message(*name);
                bar.enable_steady_tick(Duration::from_millis(200));
                let play_one = &play_one;
                scope.spawn(move || play_one(name, configs, &bar))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a simulation thread panicked")))
            })
            .collect()
    })
}
