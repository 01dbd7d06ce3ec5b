//! A cluster to play with: a real control plane with fake nodes, until Ctrl-C.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;
use fluxion_tests::nodes::{self, NodeSpec};
use fluxion_tests::tools::Tool;
use fluxion_tests::{Cluster, Options};
use tokio::signal::unix::{SignalKind, signal};

/// Writes a line. Whoever reads it may be gone (`| tee`, at Ctrl-C): that is no reason to leave things behind.
macro_rules! say {
    ($($text:tt)*) => {
        let _ = writeln!(std::io::stdout(), $($text)*);
    };
}

/// Starts a real Kubernetes control plane with fake nodes on this machine, and ends it at Ctrl-C.
#[derive(Parser)]
struct Arguments {
    /// How many fake nodes it has.
    #[arg(long, default_value_t = 20)]
    nodes: usize,
    /// CPUs of each node.
    #[arg(long, default_value_t = 4)]
    cpus: u32,
    /// Writes the administrator's kubeconfig there, too.
    #[arg(long, value_name = "PATH")]
    kubeconfig: Option<PathBuf>,
    /// Leaves kube-scheduler out.
    #[arg(long)]
    no_scheduler: bool,
    /// Switches a feature gate, e.g. WorkloadWithJob=true.
    #[arg(long = "feature-gate", value_name = "NAME=BOOL", value_parser = gate)]
    feature_gates: Vec<(String, bool)>,
}

fn gate(text: &str) -> Result<(String, bool), String> {
    let wrong = || format!("'{text}' is not NAME=true or NAME=false");
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    Ok((name.to_owned(), value.parse().map_err(|_| wrong())?))
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let mut options = Options::default().with_deadlines().with_pod_group_crd();
    if !arguments.no_scheduler {
        options = options.with_scheduler();
    }
    for (name, on) in &arguments.feature_gates {
        options = options.with_gate(name, *on);
    }
    let started = std::time::Instant::now();
    let cluster = Cluster::start(options).await?;
    let client = cluster.client().await?;
    let cpus = arguments.cpus.to_string();
    let specs: Vec<NodeSpec> =
        (0..arguments.nodes).map(|index| NodeSpec::new(format!("node-{index}")).with("cpu", &cpus)).collect();
    nodes::create(&client, &specs).await?;
    let mut kubeconfig = cluster.kubeconfig().to_owned();
    if let Some(path) = &arguments.kubeconfig {
        std::fs::copy(&kubeconfig, path).with_context(|| format!("writing {}", path.display()))?;
        kubeconfig = std::fs::canonicalize(path).with_context(|| format!("finding {}", path.display()))?;
    }
    let seconds = started.elapsed().as_secs_f64();
    say!("A control plane with {} nodes is up ({seconds:.0} s). In another terminal:\n", arguments.nodes);
    say!("  export KUBECONFIG={}", kubeconfig.display());
    say!("  export PATH={}:$PATH   # kubectl of the same version", folder(&cluster, Tool::Kubectl));
    say!("  fluxion-inspector cluster --kubeconfig $KUBECONFIG &");
    say!("  kubectl get nodes");
    say!("  kubectl fluxion tui\n");
    say!("Pods with schedulerName: fluxion are taken by the inspector. A Pod ends after its annotation");
    say!("fluxion.flux-framework.org/run-time (e.g. 30s), or when its activeDeadlineSeconds are over.");
    say!("Ctrl-C ends the cluster and removes all of it.");
    asked_to_end().await?;
    say!("ending …");
    drop(cluster);
    if let Some(path) = &arguments.kubeconfig {
        // What it points at is gone.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Waits for Ctrl-C, or whatever else asks a program to end.
async fn asked_to_end() -> Result<()> {
    let caught = |kind| signal(kind).context("waiting for Ctrl-C");
    let (mut interrupt, mut terminate) = (caught(SignalKind::interrupt())?, caught(SignalKind::terminate())?);
    let mut hang_up = caught(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    Ok(())
}

fn folder(cluster: &Cluster, tool: Tool) -> String {
    let path = cluster.tools().path(tool);
    path.parent().unwrap_or(path).display().to_string()
}
