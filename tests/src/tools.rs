//! The programs of a real control plane: where they are, and how they are built when they are missing.
//!
//! A folder named by `KUBEBUILDER_ASSETS` is used first. What is not there is built once with `go build` from
//! the Go modules in `tests/tools`, into `$XDG_CACHE_HOME/fluxion-tests/control-plane`, keyed by what is built
//! (the module files and the flags), so that a checkout which changes neither never builds again.
//! Knows nothing of how the programs are started.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// The version that `kubectl version` and the API server's `/version` name; the module pins the source.
const KUBERNETES_VERSION: &str = "v1.37.2";
/// The same of the older kubectl.
const OLD_KUBECTL_VERSION: &str = "v1.32.3";

/// One program of the control plane, in the order in which they are built: the quickest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// The store of the API server.
    Etcd,
    /// Fake kubelets.
    Kwok,
    /// kube-apiserver.
    ApiServer,
    /// kubectl.
    Kubectl,
    /// kube-controller-manager.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
    /// helm; no part of a control plane.
    Helm,
    /// kubectl of the oldest version that is supported; no part of a control plane.
    OldKubectl,
    /// cert-manager's controllers and its injector, in one program; no part of a control plane.
    CertManager,
    /// kube-scheduler's filters, without a cluster; no part of a control plane.
    Verdicts,
    /// Controllers of kinds that make Pods, in one program; no part of a control plane.
    Owners,
}

impl Tool {
    /// Those of a control plane, in the order of their declaration.
    pub const ALL: [Self; 6] =
        [Self::Etcd, Self::Kwok, Self::ApiServer, Self::Kubectl, Self::ControllerManager, Self::Scheduler];

    /// The file name of the program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
            Self::Kubectl => "kubectl",
            Self::Helm => "helm",
            Self::OldKubectl => "kubectl-1.32",
            Self::CertManager => "cert-manager",
            Self::Verdicts => "verdicts",
            Self::Owners => "owners",
        }
    }

    /// The folder under `tests/tools` whose module pins it.
    fn module(self) -> &'static str {
        match self {
            Self::ApiServer | Self::ControllerManager | Self::Scheduler | Self::Kubectl => "kubernetes",
            other => other.program(),
        }
    }

    /// The Go package of its `main`.
    fn package(self) -> String {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3".to_owned(),
            Self::Kwok => "sigs.k8s.io/kwok/cmd/kwok".to_owned(),
            Self::Helm => "helm.sh/helm/v4/cmd/helm".to_owned(),
            // Their own main: that of kubectl would bring all of Kubernetes along, those of cert-manager are modules that
            // only build in its repository, those of several owners are one, and nobody else has such verdicts.
            Self::OldKubectl | Self::CertManager | Self::Verdicts | Self::Owners => ".".to_owned(),
            Self::ApiServer | Self::ControllerManager | Self::Scheduler | Self::Kubectl => {
                format!("k8s.io/kubernetes/cmd/{}", self.program())
            }
        }
    }

    /// The linker's flags: no debug information, and the version the programs report.
    fn ldflags(self) -> String {
        let stripped = "-s -w";
        let version = match self.module() {
            "kubernetes" | "verdicts" => KUBERNETES_VERSION,
            "kubectl-1.32" => OLD_KUBECTL_VERSION,
            _ => return stripped.to_owned(),
        };
        let package = "k8s.io/component-base/version";
        let mut parts = version.trim_start_matches('v').split('.');
        let (major, minor) = (parts.next().unwrap_or("0"), parts.next().unwrap_or("0"));
        format!(
            "{stripped} -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
        )
    }
}

/// The programs of one control plane, all of them present.
#[derive(Clone, Debug)]
pub struct Tools {
    /// In the order of `Tool::ALL`.
    paths: [PathBuf; Tool::ALL.len()],
}

impl Tools {
    /// Finds all programs and builds those that are missing; several processes may ask at once, one builds.
    ///
    /// Blocks: about 15 minutes on two cores when nothing was built before.
    pub fn ensure() -> Result<Self> {
        let mut paths = Tool::ALL.map(|_| PathBuf::new());
        for tool in Tool::ALL {
            paths[tool as usize] = ensure(tool)?;
        }
        Ok(Self { paths })
    }

    /// Where a program of the control plane is.
    pub fn path(&self, tool: Tool) -> &Path {
        &self.paths[tool as usize]
    }
}

/// Finds a program, and builds it when it is missing. Blocks: about 3 minutes for helm on two cores.
pub fn ensure(tool: Tool) -> Result<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty()).map(PathBuf::from);
    let given = assets.map(|dir| dir.join(tool.program())).filter(|path| path.is_file());
    match given {
        Some(path) => Ok(path),
        None => built(&cache_dir()?, tool),
    }
}

/// A file of a Go module that the tool is built from, such as a manifest.
pub fn module_file(tool: Tool, module: &str, file: &str) -> Result<String> {
    let go = |arguments: &[&str]| -> Result<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools").join(tool.module());
        let output = Command::new("go").current_dir(folder).args(arguments).stdin(Stdio::null()).output();
        let output = output.context("starting `go`")?;
        if !output.status.success() {
            bail!("go {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    };
    // Where the program was built long ago, the module may be gone.
    go(&["mod", "download", module])?;
    let path = Path::new(&go(&["list", "-m", "-f", "{{.Dir}}", module])?).join(file);
    fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

/// `$XDG_CACHE_HOME/fluxion-tests/control-plane`, or the same below `~/.cache`.
fn cache_dir() -> Result<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME is set: no place for the control plane's programs")?;
    Ok(base.join("fluxion-tests").join("control-plane"))
}

/// The program in the cache; builds it there first when it is missing.
fn built(cache: &Path, tool: Tool) -> Result<PathBuf> {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools").join(tool.module());
    let dir = cache.join(format!("{}-{:016x}", tool.module(), key(&module, tool)?));
    let program = dir.join(tool.program());
    if program.is_file() {
        return Ok(program);
    }
    fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
    let lock_path = dir.join(".lock");
    let lock = File::create(&lock_path).with_context(|| format!("creating {}", lock_path.display()))?;
    if lock.try_lock().is_err() {
        eprintln!("waiting for another process that builds {} into {}", tool.program(), dir.display());
        lock.lock().with_context(|| format!("locking {}", lock_path.display()))?;
    }
    // Whoever held the lock may have built it meanwhile.
    if !program.is_file() {
        build(&module, tool, &program)?;
    }
    Ok(program)
}

fn build(module: &Path, tool: Tool, program: &Path) -> Result<()> {
    eprintln!(
        "building {} from {} (once; all programs together take about 15 minutes on two cores) …",
        tool.program(),
        module.display()
    );
    let started = Instant::now();
    let unfinished = program.with_extension("building");
    let result = Command::new("go")
        .current_dir(module)
        .env("CGO_ENABLED", "0")
        .args(["build", "-trimpath", "-ldflags", &tool.ldflags(), "-o"])
        .arg(&unfinished)
        .arg(tool.package())
        .stdin(Stdio::null())
        .output();
    let output = match result {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
            "`go` is not on PATH: install Go 1.26 or later (https://go.dev/dl), or name a folder that holds {} with KUBEBUILDER_ASSETS",
            tool.program()
        ),
        Err(error) => return Err(error).context("starting `go build`"),
    };
    if !output.status.success() {
        bail!(
            "`go build` of {} in {} failed ({}):\n{}",
            tool.program(),
            module.display(),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    fs::rename(&unfinished, program).with_context(|| format!("moving {} into place", program.display()))?;
    eprintln!("built {} in {} s", tool.program(), started.elapsed().as_secs());
    Ok(())
}

/// What the built program depends on: the module's files and the flags.
fn key(module: &Path, tool: Tool) -> Result<u64> {
    let mut hash = Fnv::new();
    for name in ["go.mod", "go.sum"] {
        let path = module.join(name);
        hash.write(&fs::read(&path).with_context(|| format!("reading {}", path.display()))?);
    }
    let main = module.join("main.go");
    if main.is_file() {
        hash.write(&fs::read(&main).with_context(|| format!("reading {}", main.display()))?);
    }
    hash.write(tool.ldflags().as_bytes());
    Ok(hash.0)
}

/// FNV-1a: stable between versions of Rust, which the standard hasher does not promise.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_fnv_1a() {
        let mut hash = Fnv::new();
        hash.write(b"foobar");
        assert_eq!(hash.0, 0x8594_4171_f739_67e8);
    }

    #[test]
    fn tools_are_indexed_by_their_order() {
        for (index, tool) in Tool::ALL.into_iter().enumerate() {
            assert_eq!(tool as usize, index);
        }
    }

    #[test]
    fn programs_of_one_module_share_a_folder() {
        let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/kubernetes");
        assert_eq!(key(&module, Tool::ApiServer).unwrap(), key(&module, Tool::Kubectl).unwrap());
    }

    #[test]
    fn only_kubernetes_is_told_its_version() {
        assert!(Tool::Kubectl.ldflags().contains("version.gitMinor=37"));
        assert!(Tool::OldKubectl.ldflags().contains("version.gitMinor=32"));
        assert_eq!(Tool::Etcd.ldflags(), "-s -w");
    }

    #[test]
    fn a_built_program_is_not_built_again() {
        let cache = tempfile::tempdir().unwrap();
        let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/etcd");
        let dir = cache.path().join(format!("etcd-{:016x}", key(&module, Tool::Etcd).unwrap()));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("etcd"), "a program").unwrap();
        assert_eq!(built(cache.path(), Tool::Etcd).unwrap(), dir.join("etcd"));
    }
}
