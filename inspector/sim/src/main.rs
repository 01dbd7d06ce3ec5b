//! `fluxion-sim`: plays a trace of jobs on a cluster under one or several queue policies, and compares
//! what comes out. The simulation is in `fluxion-core`; this program reads files and prints.

mod arguments;
mod output;

use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use fluxion_core::queue::QueueConfig;
use fluxion_core::sim::{Job, Machine, Outcome, Report, read_csv, read_swf, simulate};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use arguments::{Arguments, Output, TraceFormat};

/// What one policy made of the trace.
struct PolicyRun {
    /// Its name; `own` where every queue has its own.
    name: &'static str,
    report: Report,
    outcome: Outcome,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fluxion-sim: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let trace = read(arguments)?;
    let machine = Machine {
        nodes: arguments.nodes,
        cores: arguments.cores_per_node,
        whole_nodes: arguments.whole_nodes,
    };
    let results = play(arguments, machine, &trace)?;
    let text = match arguments.output {
        Output::Table => output::table(&results),
        Output::Json => output::json(machine, &trace, &results, arguments.schedule)?,
    };
    match writeln!(stdout(), "{text}") {
        // Whoever closes the pipe has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("writing the result"),
    }
}

fn read(arguments: &Arguments) -> Result<Vec<Job>> {
    let path = &arguments.trace;
    let text = if path == Path::new("-") {
        std::io::read_to_string(std::io::stdin()).context("reading the trace from standard input")?
    } else {
        std::fs::read_to_string(path).with_context(|| format!("reading the trace {}", path.display()))?
    };
    let format = arguments.trace_format.unwrap_or_else(|| match path.extension() {
        Some(extension) if extension == "csv" => TraceFormat::Csv,
        _ => TraceFormat::Swf,
    });
    let in_trace = || format!("in the trace {}", path.display());
    let mut jobs = match format {
        TraceFormat::Csv => read_csv(&text).with_context(in_trace)?,
        TraceFormat::Swf => {
            let (jobs, left_out) = read_swf(&text).with_context(in_trace)?;
            if left_out > 0 {
                eprintln!("{left_out} jobs without run time or processors are left out");
            }
            jobs
        }
    };
    if let Some(count) = arguments.jobs {
        jobs.truncate(count);
    }
    anyhow::ensure!(!jobs.is_empty(), "the trace {} has no jobs", path.display());
    Ok(jobs)
}

/// Plays the trace under every policy, side by side.
fn play(arguments: &Arguments, machine: Machine, trace: &[Job]) -> Result<Vec<PolicyRun>> {
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
        Ok(PolicyRun { name, report: Report::new(machine, trace, &outcome), outcome })
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
            .map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a simulation ended early"))))
            .collect()
    })
}
