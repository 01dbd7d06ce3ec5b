//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// The server behind `kubectl fluxion`: schedules groups of Pods as one, and shows every decision.
#[derive(Debug, Parser)]
#[command(name = "fluxion-inspector", version, max_term_width = 110)]
pub struct Cli {
    /// How the log on stderr is written.
    #[arg(long, value_enum, default_value_t = LogFormat::Text, global = true, env = "FLUXION_LOG_FORMAT")]
    pub log_format: LogFormat,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Schedule the Pods of a Kubernetes cluster.
    Cluster(ClusterOptions),
}

/// What both modes share.
#[derive(Clone, Debug, Args)]
pub struct CommonOptions {
    /// Where the HTTP API listens.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8181")]
    pub listen: SocketAddr,
    /// Holds server.json (address and token, only for its owner to read) and the journal
    /// [default: $XDG_STATE_HOME/fluxion].
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Settings (YAML): queues, topology keys, limits. Flags win over it.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// `spec.schedulerName` of the Pods to schedule; repeat it for several [default: fluxion].
    #[arg(long = "scheduler-name", value_name = "NAME")]
    pub scheduler_names: Vec<String>,
}

#[derive(Clone, Debug, Args)]
pub struct ClusterOptions {
    #[command(flatten)]
    pub common: CommonOptions,
    /// How the cluster is reached [default: the service account in a Pod, else $KUBECONFIG, else ~/.kube/config].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Which context of the kubeconfig.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Where the Lease lies that lets only one inspector bind [default: that of the Pod or context].
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Name of that Lease.
    #[arg(long, value_name = "NAME", default_value = "fluxion-inspector")]
    pub lease: String,
    /// Seconds after which the Lease of an inspector that is not heard of is taken over.
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u16).range(3..=600))]
    pub lease_seconds: u16,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn scheduler_names_repeat() {
        let line = "fluxion-inspector cluster --scheduler-name fluxion --scheduler-name fluence --context c";
        let Command::Cluster(options) = Cli::parse_from(line.split(' ')).command;
        assert_eq!(options.common.scheduler_names, ["fluxion", "fluence"]);
        assert_eq!(options.common.listen.to_string(), "127.0.0.1:8181");
    }
}
