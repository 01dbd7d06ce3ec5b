//! helm, the chart, and what is rendered from it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use tokio::process::Command;

use crate::plugin::{Ran, ran};
use crate::tools::{self, Tool};

/// The namespace that the documentation and the plain manifests install into.
pub const NAMESPACE: &str = "fluxion-system";
/// The name of the release there.
pub const RELEASE: &str = "fluxion";

/// Lines that only make sense in what helm itself installs.
const ONLY_HELM: [&str; 3] = ["# Source: ", "    app.kubernetes.io/managed-by: ", "    helm.sh/chart: "];

const HEADER: &str = "\
# The chart with its default values, for clusters that are administered without helm:
# kubectl apply --server-side -f charts/manifests/fluxion.yaml
# Rendered from charts/fluxion by UPDATE_MANIFESTS=1 cargo test -p fluxion-tests --test chart manifests
";

/// The folder of the chart.
pub fn chart() -> PathBuf {
    charts().join("fluxion")
}

/// The file with the chart's objects for those who don't use helm.
pub fn plain_manifests_file() -> PathBuf {
    charts().join("manifests").join("fluxion.yaml")
}

fn charts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts")
}

/// helm with folders of its own, and the cluster of a kubeconfig where it has one.
pub struct Helm {
    program: PathBuf,
    home: TempDir,
    kubeconfig: PathBuf,
}

impl Helm {
    /// Without a cluster.
    pub async fn new() -> Result<Self> {
        Self::of(Path::new("/dev/null")).await
    }

    /// Acts on a cluster with the rights of a kubeconfig.
    pub async fn of(kubeconfig: &Path) -> Result<Self> {
        let program = tokio::task::spawn_blocking(|| tools::ensure(Tool::Helm)).await??;
        let home = TempDir::with_prefix("fluxion-helm-").context("making a temporary folder")?;
        Ok(Self { program, home, kubeconfig: kubeconfig.to_owned() })
    }

    /// Runs it in the release's namespace and waits for its end.
    pub async fn run(&self, arguments: &[&str]) -> Result<Ran> {
        let mut command = Command::new(&self.program);
        command.args(arguments).args(["--namespace", NAMESPACE]);
        self.environment(&mut command);
        ran(&mut command).await.with_context(|| format!("running helm {}", arguments.join(" ")))
    }

    /// Runs a line of the documentation in the project's folder, where helm and `kubectl` are found.
    pub async fn shell(&self, line: &str, kubectl: &Path) -> Result<Ran> {
        let folders = [&self.program, kubectl].map(|program| program.parent().unwrap_or(program));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = folders.into_iter().map(Path::to_owned).chain(std::env::split_paths(&path));
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(charts().join(".."));
        command.env("PATH", std::env::join_paths(folders)?);
        self.environment(&mut command);
        ran(&mut command).await.with_context(|| format!("running {line}"))
    }

    fn environment(&self, command: &mut Command) {
        for name in ["CACHE", "CONFIG", "DATA"] {
            command.env(format!("HELM_{name}_HOME"), self.home.path().join(name));
        }
        command.env("KUBECONFIG", &self.kubeconfig).stdin(std::process::Stdio::null()).kill_on_drop(true);
    }

    /// Runs it and fails unless it exits with 0; gives its standard output.
    pub async fn ask(&self, arguments: &[&str]) -> Result<String> {
        let ran = self.run(arguments).await?;
        if ran.code != Some(0) {
            bail!(
                "helm {} exited with {:?}: {}{}",
                arguments.join(" "),
                ran.code,
                ran.stdout,
                ran.stderr.trim()
            );
        }
        Ok(ran.stdout)
    }

    /// The chart with these further arguments (`--set …`), rendered.
    pub async fn template(&self, arguments: &[&str]) -> Result<String> {
        let chart = chart();
        let mut all = vec!["template", RELEASE, path(&chart)?];
        all.extend(arguments);
        self.ask(&all).await
    }

    /// What the file of plain manifests has to hold.
    pub async fn plain_manifests(&self) -> Result<String> {
        let rendered = self.template(&["--skip-tests"]).await?;
        let namespace = format!("---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: {NAMESPACE}\n");
        let kept = rendered.lines().filter(|line| !ONLY_HELM.iter().any(|start| line.starts_with(start)));
        let kept: Vec<&str> = kept.filter(|line| !line.is_empty()).collect();
        Ok([HEADER.to_owned(), namespace, kept.join("\n") + "\n"].concat())
    }
}

/// A path as an argument.
pub fn path(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}
