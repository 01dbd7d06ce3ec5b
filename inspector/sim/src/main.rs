//! `fluxion-sim`: simulates a job trace on a cluster under one or more queue policies and compares the
//! results. The simulation is in `fluxion-scheduler`; this program reads files and prints.

mod arguments;
mod input;
mod output;
mod words;

use std::io::{IsTerminal, Write, stderr, stdout};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use fluxion_scheduler::queue::QueueConfig;
use fluxion_scheduler::sim::{Machine, Report, TraceJob, simulate};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use arguments::{Arguments, Output};
use output::PolicyRun;
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
    let trace = input::read(arguments)?;
    let machine = Machine {
        nodes: arguments.nodes,
        cores: arguments.cores_per_node,
        whole_nodes: arguments.whole_nodes,
    };
    let results = play(arguments, machine, &trace)?;
    if let Some(refused) = results.iter().map(|result| result.report.refused).max().filter(|count| *count > 0)
    {
        let refused = counted(refused, "job requests", "jobs request");
        note(&format!("{refused} more resources than the cluster has and can never run"));
    }
    let text = match arguments.output {
        Output::Table => output::table(&results),
        Output::Json => output::json(machine, &trace, &results, arguments.schedule)?,
    };
    match writeln!(stdout(), "{text}") {
        // Whoever closes the pipe has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("failed to write the output"),
    }
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
            .map(|thread| {
                thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a simulation thread panicked")))
            })
            .collect()
    })
}
