//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use fluxion_scheduler::placement::NodePolicy;
use fluxion_scheduler::queue::{Planning, QueueConfig, QueuePolicy};

mod measuring;
mod queue;

pub(crate) use measuring::{By, Measuring};
pub(crate) use queue::Queue;

/// More nodes than any machine has.
const MAX_NODES: i64 = 1_000_000;

/// The end of --help: what to know before comparing with others.
const NOTES: &str = concat!(
    "A run is deterministic: the same trace and options give the same schedule. Use --seeds to see how much the ",
    "metrics depend on exact submit times.\n\n",
    "Traces of the Parallel Workloads Archive count processors, not nodes. Unless the nodes of the machine matter, ",
    "use --nodes 1 --cores-per-node PROCESSORS: any free processors will do for a job, as in most published ",
    "simulations.\n\n",
    "Times are whole seconds. Fractions are dropped, and a run time of 0 counts as 1 s.",
);

/// Simulate a job trace on a cluster and compare queue policies
#[derive(Debug, Parser)]
#[command(version, after_long_help = NOTES)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Arguments {
    /// Trace file in Standard Workload Format, or CSV with columns submit, cores, run and optionally limit (default:
    /// run; a job is killed when it reaches its limit), priority (higher runs first), id, queue and user, with times in
    /// seconds; use - to read standard input
    pub(crate) trace: PathBuf,
    /// Trace format [default: csv for files ending in .csv, otherwise swf]
    #[arg(long, value_enum)]
    pub(crate) trace_format: Option<TraceFormat>,
    /// Number of nodes [default: `MaxNodes` in the header of a trace in Standard Workload Format, otherwise `MaxProcs`
    /// divided by --cores-per-node]
    #[arg(long, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=MAX_NODES))]
    pub(crate) nodes: Option<u32>,
    /// Cores per node [default: `MaxProcs` divided by `MaxNodes` in the header of a trace in Standard Workload Format,
    /// otherwise 1]
    #[arg(long, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=MAX_NODES))]
    pub(crate) cores_per_node: Option<u32>,
    /// Allocate whole nodes to jobs
    #[arg(long)]
    pub(crate) whole_nodes: bool,
    /// Place jobs on individual nodes as the inspector would [default: only where starts depend on which nodes are free;
    /// otherwise count the free ones, which is faster, and assign those with the lowest or highest numbers]
    #[arg(long)]
    pub(crate) each_node: bool,
    /// Queue policy; can be repeated to compare policies [default: all four]
    #[arg(long = "policy", value_enum)]
    policies: Vec<Policy>,
    /// Queue, as NAME[:POLICY][,queue-depth=N][,reservation-depth=N][,max-reservation-depth=N][,planning=PLANNING]
    /// [,node-policy=NODES]; can be repeated. Queues are scheduled in the order given. A job selects its queue by the CSV column queue or by field 15 of the
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
    /// What becomes of reservations with policy conservative when something changes: compress keeps them and only moves
    /// them to an earlier start, replan plans all of them again in queue order
    #[arg(long, value_enum, default_value_t = Plans::Compress)]
    planning: Plans,
    /// Which of the suitable nodes jobs run on: low takes the first ones, high the last ones, spread those that would be the
    /// least allocated
    #[arg(long, value_enum, default_value_t = Nodes::Low)]
    node_policy: Nodes,
    /// Simulate only the first N jobs of the trace
    #[arg(long, value_parser = depth)]
    pub(crate) jobs: Option<usize>,
    #[command(flatten)]
    pub(crate) measuring: Measuring,
    /// Output format; swf requires --schedule and a single policy
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
    /// Print every job with its nodes, processors, start, end, run time, wait time, queue and limit: within the JSON
    /// output, or as CSV or in Standard Workload Format; requires -o json, csv or swf
    #[arg(long)]
    pub(crate) schedule: bool,
    /// Write cores in use, utilization, running and waiting jobs over time to a CSV file
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
    /// Write a Gantt chart of the schedule to an SVG file
    #[arg(long, value_name = "FILE")]
    pub(crate) gantt: Option<PathBuf>,
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
    Csv,
    Swf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Policy {
    Fcfs,
    Easy,
    Conservative,
    Hybrid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Plans {
    Compress,
    Replan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Nodes {
    Low,
    High,
    Spread,
}

fn depth(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|depth| *depth > 0).ok_or_else(|| "must be a positive integer".to_owned())
}

impl Arguments {
    /// Refuses what would have no effect.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.schedule && self.output == Output::Table {
            return Err("--schedule requires -o json, csv or swf".to_owned());
        }
        if self.output == Output::Swf
            && !(self.schedule && (self.policies().len() == 1 || self.own_policies()?))
        {
            return Err("-o swf requires --schedule and a single --policy".to_owned());
        }
        if !self.policies.is_empty() && self.own_policies()? {
            let why = "--policy has no effect because every --queue has its own policy";
            return Err(format!("{why}; omit one of them"));
        }
        Ok(())
    }

    /// Whether every queue has its own policy.
    pub(crate) fn own_policies(&self) -> Result<bool, String> {
        Ok(self.queues()?.iter().all(|queue| queue.policy.is_some()))
    }

    /// The queues.
    pub(crate) fn queues(&self) -> Result<Vec<Queue>, String> {
        let rest = QueueConfig {
            queue_depth: self.queue_depth,
            reservation_depth: self.reservation_depth,
            max_reservation_depth: self.max_reservation_depth,
            planning: match self.planning {
                Plans::Compress => Planning::Compress,
                Plans::Replan => Planning::Replan,
            },
            node_policy: match self.node_policy {
                Nodes::Low => NodePolicy::Low,
                Nodes::High => NodePolicy::High,
                Nodes::Spread => NodePolicy::Spread,
            },
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
