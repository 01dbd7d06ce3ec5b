//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use fluxion_scheduler::queue::{QueueConfig, QueuePolicy};

mod queue;

pub(crate) use queue::Queue;

/// More nodes than any machine has.
const MAX_NODES: i64 = 1_000_000;

/// Plays a trace of jobs on a cluster under queue policies and compares them.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    /// The trace: Standard Workload Format, or a CSV with columns submit, cores, run and optionally limit (as run
    /// without; a job is ended then), priority (larger goes first), id and queue, times in seconds; - for
    /// standard input
    pub(crate) trace: PathBuf,
    /// Form of the trace; without: csv for files that end in .csv, else swf
    #[arg(long, value_enum)]
    pub(crate) trace_format: Option<TraceFormat>,
    /// Nodes of the cluster
    #[arg(long, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=MAX_NODES))]
    pub(crate) nodes: u32,
    /// Cores of each node
    #[arg(long, default_value_t = 1, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=MAX_NODES))]
    pub(crate) cores_per_node: u32,
    /// Give jobs whole nodes
    #[arg(long)]
    pub(crate) whole_nodes: bool,
    /// Queue policy, repeatable; without: all four
    #[arg(long = "policy", value_enum)]
    policies: Vec<Policy>,
    /// A queue, NAME[:POLICY][,queue-depth=N][,reservation-depth=N][,max-reservation-depth=N], repeatable; they
    /// get nodes in this order. Jobs name theirs in the column queue of a CSV, or in field 15 of a Standard
    /// Workload Format; a job that names none waits in the first, and a single queue takes all jobs. Queues
    /// without a policy have the one that is compared. Without: one queue for all jobs
    #[arg(long = "queue", value_name = "QUEUE")]
    queues: Vec<String>,
    /// Jobs that one pass over a queue looks at
    #[arg(long, default_value_t = QueueConfig::default().queue_depth, value_parser = depth)]
    queue_depth: usize,
    /// Reservations that one pass makes under hybrid
    #[arg(long, default_value_t = QueueConfig::default().reservation_depth, value_parser = depth)]
    reservation_depth: usize,
    /// Reservations that one pass makes under conservative and hybrid, at most
    #[arg(long, default_value_t = QueueConfig::default().max_reservation_depth, value_parser = depth)]
    max_reservation_depth: usize,
    /// Play only so many jobs, the first of the trace
    #[arg(long, value_parser = depth)]
    pub(crate) jobs: Option<usize>,
    /// Form of the result
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
    /// Add the start and end of every job to the JSON result; needs -o json
    #[arg(long)]
    pub(crate) schedule: bool,
    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Forms of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    Swf,
    Csv,
}

/// Forms of the result.
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
    text.parse().ok().filter(|depth| *depth > 0).ok_or_else(|| "want a number from 1".to_owned())
}

impl Arguments {
    /// Refuses what would have no effect.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.schedule && self.output != Output::Json {
            return Err("--schedule is for the JSON result: add -o json".to_owned());
        }
        if !self.policies.is_empty() && self.queues()?.iter().all(|queue| queue.policy.is_some()) {
            let why = "every --queue has a policy of its own, so --policy has nothing to compare";
            return Err(format!("{why}: leave one of them out"));
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
                return Err(format!("there are two queues {}", queue.config.name));
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
