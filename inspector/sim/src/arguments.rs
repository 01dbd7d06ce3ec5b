//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use fluxion_core::queue::QueuePolicy;

/// More nodes than any machine has.
const MAX_NODES: i64 = 1_000_000;

/// Plays a trace of jobs on a cluster under queue policies and compares them.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    /// The trace: Standard Workload Format, or a CSV with columns submit, cores, run and optionally limit,
    /// priority and id (times in seconds); - for standard input
    pub(crate) trace: PathBuf,
    /// Form of the trace; without: csv for files that end in .csv, else swf
    #[arg(long, value_enum)]
    pub(crate) trace_format: Option<TraceFormat>,
    /// Nodes of the cluster
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=MAX_NODES))]
    pub(crate) nodes: u32,
    /// Cores of each node
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MAX_NODES))]
    pub(crate) cores_per_node: u32,
    /// Give jobs whole nodes
    #[arg(long)]
    pub(crate) whole_nodes: bool,
    /// Queue policy, repeatable; without: all four
    #[arg(long = "policy", value_enum)]
    policies: Vec<Policy>,
    /// Jobs that one pass looks at
    #[arg(long, default_value_t = 10_000)]
    pub(crate) queue_depth: usize,
    /// Reservations that one pass makes under hybrid
    #[arg(long, default_value_t = 64)]
    pub(crate) reservation_depth: usize,
    /// Play only the first jobs of the trace
    #[arg(long)]
    pub(crate) jobs: Option<usize>,
    /// Form of the result
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
    /// Add the start and end of every job to the JSON result
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

impl Arguments {
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
