//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use fluxion_api::server_file::DEFAULT_LISTEN;

use crate::config::{self, Config, ConfigError};
use crate::history::JournalUrl;

mod secure;

pub use secure::SecureOptions;

/// The server behind `kubectl fluxion`: schedules groups of Pods and explains every decision.
#[derive(Debug, Parser)]
#[command(name = "fluxion-inspector", version, max_term_width = 110)]
pub struct Cli {
    /// Format of the log written to stderr.
    #[arg(long, value_enum, default_value_t = LogFormat::Text, global = true, env = "FLUXION_LOG_FORMAT")]
    pub log_format: LogFormat,
    /// Command to run [default: `cluster` in a Pod, otherwise `try`].
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Schedule the Pods of a Kubernetes cluster.
    Cluster(Box<ClusterOptions>),
    /// Schedule virtual Pods on nodes read from a file; no cluster is needed.
    Standalone(StandaloneOptions),
    /// Run the bundled examples; show an interactive view on a terminal, otherwise tables.
    Try(TryOptions),
}

/// Options of both modes.
#[derive(Clone, Debug, Args)]
pub struct CommonOptions {
    /// Address of the HTTP API.
    #[arg(
        long,
        value_name = "ADDR",
        value_parser = address,
        help = format!("Address of the HTTP API [default: {DEFAULT_LISTEN}; in standalone mode, a free port]")
    )]
    pub listen: Option<SocketAddr>,
    /// Directory for server.json (address and token, readable only by its owner) and the journal,
    /// by default in the user's state directory.
    // Clippy wants the variable in backticks, which would be printed.
    #[arg(
        long,
        value_name = "DIR",
        help = "Directory for server.json (address and token, readable only by its owner) and the \
                journal [default: $XDG_STATE_HOME/fluxion, else ~/.local/state/fluxion]"
    )]
    pub state_dir: Option<PathBuf>,
    /// Configuration file (YAML): queues, topology keys, limits. Flags take precedence.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// `spec.schedulerName` of the Pods to schedule.
    #[arg(
        long = "scheduler-name",
        value_name = "NAME",
        help = "spec.schedulerName of the Pods to schedule; may be repeated \
                [default: those of --config, else fluxion]"
    )]
    pub scheduler_names: Vec<String>,
    /// Maximum duration of an engine step in seconds: after it, /livez fails; after twice as long, the process exits.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = step_limit)]
    pub step_limit: u16,
    /// `OpenTelemetry` collector to send traces to.
    #[arg(
        long,
        value_name = "URL",
        help = "OpenTelemetry collector to send traces to (OTLP over HTTP, JSON), such as http://collector:4318 \
                [default: $OTEL_EXPORTER_OTLP_ENDPOINT, else none]"
    )]
    pub otlp_endpoint: Option<String>,
    /// Allow default-scheduler as a scheduler name. Only use this in clusters without kube-scheduler.
    #[arg(long)]
    pub replace_default_scheduler: bool,
}

impl CommonOptions {
    /// The configuration file, with the flags.
    pub fn configuration(&self) -> Result<Config, ConfigError> {
        config::load(self.config.as_deref(), &self.scheduler_names, self.replace_default_scheduler)
    }
}

#[derive(Clone, Debug, Args)]
pub struct StandaloneOptions {
    #[command(flatten)]
    pub common: CommonOptions,
    /// File with the nodes, as printed by `kubectl get nodes -o yaml` [default: the nodes in the state directory,
    /// else an example].
    #[arg(long, value_name = "FILE")]
    pub cluster: Option<PathBuf>,
    /// File or directory with manifests of Pods, Jobs or PodGroups; may be repeated.
    #[arg(long, value_name = "FILE|DIR")]
    pub jobs: Vec<PathBuf>,
    /// Speed of virtual time relative to real time.
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = speed)]
    pub speed: f64,
}

#[derive(Clone, Debug, Args)]
pub struct TryOptions {
    #[command(flatten)]
    pub standalone: StandaloneOptions,
    /// Keep the server running until Ctrl-C.
    #[arg(long)]
    pub keep: bool,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("must be ADDRESS:PORT, e.g. {DEFAULT_LISTEN}"))
}

fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "must be a number such as 10".to_owned())?;
    if (1.0..=1000.0).contains(&speed) { Ok(speed) } else { Err("must be between 1 and 1000".to_owned()) }
}

fn lease_seconds(text: &str) -> Result<u16, String> {
    text.parse()
        .ok()
        .filter(|seconds| (3..=600).contains(seconds))
        .ok_or_else(|| "must be between 3 and 600".to_owned())
}

fn step_limit(text: &str) -> Result<u16, String> {
    text.parse()
        .ok()
        .filter(|seconds| (2..=3600).contains(seconds))
        .ok_or_else(|| "must be between 2 and 3600".to_owned())
}

#[derive(Clone, Debug, Args)]
pub struct ClusterOptions {
    #[command(flatten)]
    pub common: CommonOptions,
    /// Path to the kubeconfig file [default: the service account in a Pod, else $KUBECONFIG, else ~/.kube/config].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Name of the kubeconfig context to use.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Namespace of the leader-election Lease [default: the namespace of the Pod or context].
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Name of the leader-election Lease.
    #[arg(long, value_name = "NAME", default_value = "fluxion-inspector")]
    pub lease: String,
    /// Lease duration in seconds: another inspector takes over once the Lease has not been renewed for this long.
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = lease_seconds)]
    pub lease_seconds: u16,
    /// Where the history of jobs is stored.
    #[arg(
        long,
        value_name = "URL",
        env = "FLUXION_JOURNAL",
        hide_env_values = true,
        help = "Where the history of jobs is stored: sqlite:PATH, or postgres://USER@HOST/DATABASE, which all \
                inspectors share. If the URL contains a password, set the variable instead [default: that of --config, \
                else cluster/state.db in the state directory]"
    )]
    pub journal: Option<JournalUrl>,
    /// Cancel jobs for users of the secure port who may delete the owners of the Pods [default: users delete them
    /// themselves].
    #[arg(long, requires = "secure_listen", help_heading = "Secure port")]
    pub allow_cancel: bool,
    #[command(flatten)]
    pub secure: SecureOptions,
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
    fn help_tells_the_defaults_that_there_are_and_prints_no_marks() {
        let mut cli = Cli::command();
        cli.build();
        for name in ["cluster", "standalone", "try"] {
            let help = cli.find_subcommand_mut(name).unwrap().render_long_help().to_string();
            // As one line: where it is broken plays no part.
            let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(!help.contains('`') || help.contains("`kubectl get nodes -o yaml`"), "{help}");
            assert!(!help.contains("$`"), "{help}");
            let names = fluxion_scheduler::state::Settings::default().scheduler_names.join(",");
            for wanted in [
                format!("[default: {DEFAULT_LISTEN}; in standalone mode, a free port]"),
                "[default: $XDG_STATE_HOME/fluxion, else ~/.local/state/fluxion]".to_owned(),
                format!("[default: those of --config, else {names}]"),
            ] {
                assert!(help.contains(&wanted), "{name}: no {wanted} in {help}");
            }
        }
        let help = cli.find_subcommand_mut("cluster").unwrap().render_long_help().to_string();
        let Some(Command::Cluster(options)) = Cli::parse_from(["fluxion-inspector", "cluster"]).command
        else {
            panic!()
        };
        for default in [options.lease.clone(), options.lease_seconds.to_string()] {
            assert!(help.contains(&format!("[default: {default}]")), "{help}");
        }
    }

    #[test]
    fn scheduler_names_repeat() {
        let line = "fluxion-inspector cluster --scheduler-name fluxion --scheduler-name fluence --context c";
        let Some(Command::Cluster(options)) = Cli::parse_from(line.split(' ')).command else {
            panic!("{line}")
        };
        assert_eq!(options.common.scheduler_names, ["fluxion", "fluence"]);
        assert_eq!(options.common.listen, None);
    }
}
