//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use fluxion_scheduler::queue::{QueueConfig, QueuePolicy};

mod queue;

pub(crate) use queue::Queue;

/// More nodes than any machine has.
const MAX_NODES: i64 = 1_000_000;

/// Simulate a job trace on a cluster and compare queue policies
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    /// Trace file in Standard Workload Format, or CSV with columns submit, cores, run and optionally limit (default:
    /// run; a job is killed when it reaches its limit), priority (higher runs first), id and queue, with times in
    /// seconds; use - to read standard input
    pub(crate) trace: PathBuf,
    /// Trace format [default: csv for files ending in .csv, otherwise swf]
    #[arg(long, value_enum)]
    pub(crate) trace_format: Option<TraceFormat>,
    /// Number of nodes
    #[arg(long, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=MAX_NODES))]
    pub(crate) nodes: u32,
    /// Cores per node
    #[arg(long, default_value_t = 1, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=MAX_NODES))]
    pub(crate) cores_per_node: u32,
    /// Allocate whole nodes to jobs
    #[arg(long)]
    pub(crate) whole_nodes: bool,
    /// Queue policy; can be repeated to compare policies [default: all four]
    #[arg(long = "policy", value_enum)]
    policies: Vec<Policy>,
    /// Queue, as NAME[:POLICY][,queue-depth=N][,reservation-depth=N][,max-reservation-depth=N]; can be repeated.
    /// Queues are scheduled in the order given. A job selects its queue by the CSV column queue or by field 15 of the
    /// Standard Workload Format; other jobs use the first queue, and a single queue receives all jobs. Queues
    /// without a policy use each policy being compared [default: one queue for all jobs]
    #[arg(long = "queue", value_name = "QUEUE")]
    queues: Vec<String>,
    /// Maximum number of jobs considered per scheduling pass over a queue
    #[arg(long, default_value_t = QueueConfig::default().queue_depth, value_parser = depth)]
    queue_depth: usize,
    /// Number of reservations per scheduling pass with policy hybrid
    #[arg(long, default_value_t = QueueConfig::default().reservation_depth, value_parser = depth)]
    reservation_depth: usize,
    /// Maximum number of reservations per scheduling pass with policies conservative and hybrid
    #[arg(long, default_value_t = QueueConfig::default().max_reservation_depth, value_parser = depth)]
    max_reservation_depth: usize,
    /// Simulate only the first N jobs of the trace
    #[arg(long, value_parser = depth)]
    pub(crate) jobs: Option<usize>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
    /// Include the start and end of every job in the JSON output; requires -o json
    #[arg(long)]
    pub(crate) schedule: bool,
    /// Do not show progress bars
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Trace formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    Swf,
    Csv,
}

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Table,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Policy {
    Fcfs,
    Easy,
    Conservative,
    Hybrid,
}

fn depth(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|depth| *depth > 0).ok_or_else(|| "must be a positive integer".to_owned())
}

impl Arguments {
    /// Refuses what would have no effect.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.schedule && self.output != Output::Json {
            return Err("--schedule requires -o json".to_owned());
        }
        if !self.policies.is_empty() && self.queues()?.iter().all(|queue| queue.policy.is_some()) {
            let why = "--policy has no effect because every --queue has its own policy";
            return Err(format!("{why}; omit one of them"));
        }
        Ok(())
    }

    /// The queues.
    pub(crate) fn queues(&self) -> Result<Vec<Queue>, String> {
        let rest = QueueConfig {
            queue_depth: self.queue_depth,
            reservation_depth: self.reservation_depth,
            max_reservation_depth: self.max_reservation_depth,
            ..QueueConfig::default()
        };
        if self.queues.is_empty() {
            return Ok(vec![Queue { config: rest, policy: None }]);
        }
        let mut queues: Vec<Queue> = Vec::new();
        for text in &self.queues {
            let queue = queue::parse(text, &rest)?;
            if queues.iter().any(|other| other.config.name == queue.config.name) {
                return Err(format!("duplicate queue '{}'", queue.config.name));
            }
            queues.push(queue);
        }
        Ok(queues)
    }

    /// The policies to compare, each once, in the order given.
    pub(crate) fn policies(&self) -> Vec<QueuePolicy> {
        let mut policies = Vec::new();
        let asked = if self.policies.is_empty() { Policy::value_variants() } else { &self.policies };
        for policy in asked {
            let policy = match policy {
                Policy::Fcfs => QueuePolicy::Fcfs,
                Policy::Easy => QueuePolicy::Easy,
                Policy::Conservative => QueuePolicy::Conservative,
                Policy::Hybrid => QueuePolicy::Hybrid,
            };
            if !policies.contains(&policy) {
                policies.push(policy);
            }
        }
        policies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_server() {
        let arguments = Arguments::parse_from(["fluxion-sim", "trace.csv", "--nodes", "1"]);
        assert_eq!(arguments.queues().unwrap()[0].config, QueueConfig::default());
    }
}
