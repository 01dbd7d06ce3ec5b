//! The command line: commands, flags and their help.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use fluxion_api::server_file::DEFAULT_LISTEN;
use fluxion_api::{JobRef, JobState};

/// Inspect and cancel jobs scheduled by Fluxion.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-fluxion",
    bin_name = "kubectl fluxion",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "JOB is a name as printed by `queue` and `jobs` (job/lammps, podgroup/train, pod/web-0), \
                  NAMESPACE/KIND/NAME, or just NAME if it is unique.\n\n\
                  Exit codes: 0 success, 1 other error, 2 usage error, 3 not found or ambiguous, 4 forbidden, \
                  5 inspector unreachable or not ready, 6 partial success, 7 refused, 8 timed out."
)]
pub struct Cli {
    #[command(flatten)]
    pub connection: Connection,
    #[command(flatten)]
    pub scope: Scope,
    #[command(subcommand)]
    pub command: Command,
}

/// Connection options.
#[derive(Args, Clone, Debug, Default)]
pub struct Connection {
    /// URL of the inspector.
    // The variable is read where flags are weighed against it, so it is only named here.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        help_heading = "Connection",
        help = format!("URL of the inspector, e.g. http://{DEFAULT_LISTEN} [env: FLUXION_SERVER]")
    )]
    pub server: Option<String>,
    /// File containing the bearer token for --server
    #[arg(
        long,
        global = true,
        env = "FLUXION_TOKEN_FILE",
        hide_env_values = true,
        value_name = "FILE",
        help_heading = "Connection"
    )]
    pub token_file: Option<PathBuf>,
    /// Bearer token for the API server, or for --server
    #[arg(
        long,
        global = true,
        value_name = "TOKEN",
        conflicts_with = "token_file",
        help_heading = "Connection"
    )]
    pub token: Option<String>,
    /// PEM file with the CA certificates used to verify --server
    #[arg(long, global = true, value_name = "FILE", help_heading = "Connection")]
    pub certificate_authority: Option<PathBuf>,
    /// Path to the kubeconfig file to use; with --server, used only to delete objects
    #[arg(long, global = true, value_name = "FILE", help_heading = "Connection")]
    pub kubeconfig: Option<PathBuf>,
    /// Name of the kubeconfig context to use; with --server, used only to delete objects
    #[arg(long, global = true, value_name = "NAME", help_heading = "Connection")]
    pub context: Option<String>,
    /// Username to impersonate for the request, as with kubectl --as
    #[arg(long = "as", global = true, value_name = "USER", help_heading = "Connection")]
    pub impersonate: Option<String>,
    /// Group to impersonate for the request; can be repeated to specify multiple groups
    #[arg(long = "as-group", global = true, value_name = "GROUP", help_heading = "Connection")]
    pub impersonate_groups: Vec<String>,
    /// Time to wait before giving up on a single server request
    #[arg(
        long,
        visible_alias = "request-timeout",
        global = true,
        default_value = TIMEOUT,
        value_parser = time_limit,
        value_name = "DURATION",
        help_heading = "Connection"
    )]
    pub timeout: Option<Duration>,
    /// Whether to disable colored output.
    #[arg(
        long,
        global = true,
        help_heading = "Output",
        help = "Disable colored output (same as NO_COLOR=1)"
    )]
    pub no_color: bool,
}

/// Namespace options.
#[derive(Args, Clone, Debug, Default)]
pub struct Scope {
    /// Namespace scope for this request
    #[arg(short, long, global = true, value_name = "NAMESPACE", conflicts_with = "all_namespaces")]
    pub namespace: Option<String>,
    /// Select jobs in all namespaces
    #[arg(short = 'A', long, global = true)]
    pub all_namespaces: bool,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show a summary of the server, nodes, resource usage, jobs, queues and problems
    #[command(after_help = STATUS_EXAMPLES)]
    Status(Output),
    /// List waiting jobs, why they are waiting and when they are expected to start
    #[command(visible_alias = "q", after_help = QUEUE_EXAMPLES)]
    Queue(Listing),
    /// List all jobs, including running and finished jobs
    #[command(visible_alias = "job", after_help = JOBS_EXAMPLES)]
    Jobs(Listing),
    /// List nodes with their allocatable and allocated resources
    #[command(visible_alias = "node", after_help = NODES_EXAMPLES)]
    Nodes(NodeListing),
    /// Show a summary of the resource graph by level, or the graph in JGF with -o json
    #[command(after_help = GRAPH_EXAMPLES)]
    Graph(Output),
    /// List jobs with a planned start, soonest first
    #[command(after_help = RESERVATIONS_EXAMPLES)]
    Reservations(Output),
    /// Explain why a job is in its current state and what would help it start
    #[command(visible_alias = "why", after_help = EXPLAIN_EXAMPLES)]
    Explain {
        /// Job to explain, as KIND/NAME, NAMESPACE/KIND/NAME or NAME
        #[arg(value_name = "JOB", value_parser = job_ref)]
        job: JobRef,
        #[command(flatten)]
        output: Output,
    },
    /// Cancel one or more jobs, after showing a preview and asking for confirmation
    #[command(after_help = CANCEL_EXAMPLES)]
    Cancel(Cancel),
    /// Open an interactive terminal view of nodes, jobs and reservations
    #[command(after_help = TUI_EXAMPLES)]
    Tui,
    /// Print the client and server versions
    Version(Output),
    /// Print a shell completion script for `kubectl-fluxion`
    ///
    /// To complete `kubectl fluxion` and job names, kubectl runs an executable named kubectl_complete-fluxion.
    /// Create it as a symlink to kubectl-fluxion, in the same directory.
    #[command(after_help = COMPLETION_EXAMPLES)]
    Completion {
        /// Target shell
        shell: clap_complete::Shell,
    },
}

/// Output format.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Output {
    /// Output format
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output: Format,
}

/// Output formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Table
    #[default]
    Table,
    /// Table with additional columns
    Wide,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
    /// KIND/NAME, one per line; NAMESPACE/KIND/NAME with -A
    Name,
}

/// Options for listing jobs.
#[derive(Args, Clone, Debug, Default)]
pub struct Listing {
    #[command(flatten)]
    pub output: Output,
    /// After listing the objects, watch for changes
    #[arg(short, long)]
    pub watch: bool,
    /// Selector (label query) to filter on, as in kubectl
    #[arg(short = 'l', long, default_value = "", hide_default_value = true, value_name = "SELECTOR")]
    pub selector: String,
    /// Show only jobs in these states, e.g. --state Pending,Reserved
    #[arg(long, value_delimiter = ',', ignore_case = true, value_parser = states())]
    pub state: Vec<JobState>,
    /// Show only jobs in this queue
    #[arg(long, value_name = "QUEUE")]
    pub queue: Option<String>,
    /// Show only jobs of this kind, e.g. Job
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// Show only jobs on this node
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,
    /// Omit column headers
    #[arg(long)]
    pub no_headers: bool,
}

/// Options for listing nodes.
#[derive(Args, Clone, Debug, Default)]
pub struct NodeListing {
    #[command(flatten)]
    pub output: Output,
    /// After listing the objects, watch for changes
    #[arg(short, long)]
    pub watch: bool,
    /// Selector (label query) to filter on, as in kubectl
    #[arg(short = 'l', long, default_value = "", hide_default_value = true, value_name = "SELECTOR")]
    pub selector: String,
    /// Omit column headers
    #[arg(long)]
    pub no_headers: bool,
}

/// Options for cancelling jobs.
#[derive(Args, Clone, Debug)]
pub struct Cancel {
    /// Jobs to cancel, as KIND/NAME, NAMESPACE/KIND/NAME or NAME
    #[arg(required = true, value_name = "JOB", value_parser = job_ref)]
    pub jobs: Vec<JobRef>,
    /// Skip the confirmation prompt
    #[arg(short, long)]
    pub yes: bool,
    /// Only print what would be deleted, without deleting it
    #[arg(long)]
    pub dry_run: bool,
    /// Cancel the jobs even if this also deletes Pods of other jobs
    #[arg(long)]
    pub with_others: bool,
}

/// Default timeout for a single server request.
const TIMEOUT: &str = "10s";

const STATUS_EXAMPLES: &str = "\
Examples:
  # Show a summary of the scheduler
  kubectl fluxion status

  # Print the summary and all findings as JSON
  kubectl fluxion status -o json";

const QUEUE_EXAMPLES: &str = "\
Examples:
  # List waiting jobs in the current namespace
  kubectl fluxion queue

  # List waiting jobs in all namespaces and watch for changes
  kubectl fluxion queue -A --watch

  # List only jobs with a reservation, with additional columns
  kubectl fluxion queue --state Reserved -o wide";

const JOBS_EXAMPLES: &str = "\
Examples:
  # List all jobs in the current namespace
  kubectl fluxion jobs

  # List running jobs on node-1 in all namespaces
  kubectl fluxion jobs -A --state Running --node node-1

  # List jobs with the label app=lammps
  kubectl fluxion jobs -l app=lammps";

const NODES_EXAMPLES: &str = "\
Examples:
  # List nodes with their allocatable and allocated resources
  kubectl fluxion nodes

  # List nodes in zone a, with additional columns
  kubectl fluxion nodes -l topology.kubernetes.io/zone=a -o wide";

const GRAPH_EXAMPLES: &str = "\
Examples:
  # Show a summary of the resource graph by level
  kubectl fluxion graph

  # Save the resource graph in JGF, as read by resource-query
  kubectl fluxion graph -o json > graph.json";

const RESERVATIONS_EXAMPLES: &str = "\
Examples:
  # List planned starts in all namespaces
  kubectl fluxion reservations -A";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  # Explain why the Job lammps is waiting
  kubectl fluxion explain job/lammps

  # Explain a job in another namespace
  kubectl fluxion explain team-b/podgroup/train

  # Print the explanation and the jobspec as YAML
  kubectl fluxion explain job/lammps -o yaml";

const CANCEL_EXAMPLES: &str = "\
Examples:
  # Cancel a job
  kubectl fluxion cancel job/lammps

  # Show what would be deleted, without deleting it
  kubectl fluxion cancel job/lammps --dry-run

  # Cancel two jobs without confirmation
  kubectl fluxion cancel job/lammps podgroup/train -y";

const TUI_EXAMPLES: &str = "\
Examples:
  # Open the interactive view for all namespaces
  kubectl fluxion tui

  # Open the interactive view for one namespace
  kubectl fluxion tui -n team-b";

const COMPLETION_EXAMPLES: &str = "\
Examples:
  # Load completion for bash into the current shell
  source <(kubectl fluxion completion bash)";

/// Parses job states, case-insensitively.
fn states() -> impl TypedValueParser<Value = JobState> {
    let known = || JobState::ALL.iter();
    PossibleValuesParser::new(known().map(JobState::as_str)).map(move |word| {
        let same = |state: &&JobState| state.as_str().eq_ignore_ascii_case(&word);
        known().find(same).cloned().unwrap_or_else(|| word.as_str().into())
    })
}

fn job_ref(text: &str) -> Result<JobRef, String> {
    text.parse::<JobRef>().map_err(|error| error.to_string())
}

fn time_limit(text: &str) -> Result<Duration, String> {
    let parsed = match text.parse::<u32>() {
        Ok(seconds) => Some(Duration::from_secs(u64::from(seconds))),
        Err(_) => text.parse::<jiff::SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok()),
    };
    parsed
        .filter(|limit| !limit.is_zero() && *limit <= Duration::from_hours(24))
        .ok_or_else(|| "must be a duration such as 500ms, 10s or 2m, at most 24h".to_owned())
}

impl Connection {
    /// Timeout for a single server request.
    pub fn limit(&self) -> Duration {
        self.timeout.or_else(|| time_limit(TIMEOUT).ok()).unwrap_or(Duration::MAX)
    }
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
    fn help_tells_the_defaults_that_there_are() {
        let help = Cli::command().render_long_help().to_string();
        assert!(help.contains(&format!("http://{DEFAULT_LISTEN}")), "{help}");
        assert!(help.contains(&format!("[default: {TIMEOUT}]")), "{help}");
        let (parsed, none) =
            (Cli::parse_from(["kubectl-fluxion", "queue"]).connection, Connection::default());
        assert_eq!(parsed.limit(), none.limit());
        let Command::Queue(listing) = Cli::parse_from(["kubectl-fluxion", "queue"]).command else { panic!() };
        assert_eq!((listing.output.output, listing.selector.as_str()), (Format::default(), ""));
    }

    #[test]
    fn time_limits() {
        for (text, millis) in
            [("500ms", 500), ("10s", 10_000), ("2m", 120_000), ("3", 3_000), ("1.5s", 1_500)]
        {
            assert_eq!(time_limit(text).map(|limit| limit.as_millis()), Ok(millis), "{text}");
        }
        for text in ["", "0", "-1s", "soon", "25h", "99999999999999999999s"] {
            assert!(time_limit(text).is_err(), "{text}");
        }
    }

    #[test]
    fn states_are_taken_in_any_case() {
        let parse = |states| Cli::try_parse_from(["kubectl-fluxion", "jobs", "--state", states]);
        let Command::Jobs(listing) = parse("running,PENDING").unwrap().command else { panic!() };
        assert_eq!(listing.state, [JobState::Running, JobState::Pending]);
        assert!(parse("Asleep").is_err());
    }
}
