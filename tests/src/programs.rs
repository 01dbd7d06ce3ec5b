//! The project's own programs, built before they are tested.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

/// A program of this workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The server.
    Inspector,
    /// The kubectl plugin.
    Plugin,
}

impl Program {
    /// The file name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inspector => "fluxion-inspector",
            Self::Plugin => "kubectl-fluxion",
        }
    }
}

/// Where the program is: in the folder that `FLUXION_TESTS_PROGRAMS` names, or beside the tests. There the first
/// call of a process runs `cargo build`, so that no test runs an old one; it blocks for that long.
pub fn path(program: Program) -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("FLUXION_TESTS_PROGRAMS").filter(|value| !value.is_empty()) {
        return Ok(PathBuf::from(folder).join(program.name()));
    }
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let folder = BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    match folder {
        Ok(folder) => Ok(folder.join(program.name())),
        Err(error) => bail!("{error}"),
    }
}

fn build() -> Result<PathBuf> {
    let folder = profile_folder(&std::env::current_exe().context("finding the test's own program")?)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    // All of the workspace, so that its dependencies get the features with which all its tests were built: a part
    // of it would have them built a second time.
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(["build", "--quiet", "--workspace", "--bins"]);
    if folder.ends_with("release") {
        command.arg("--release");
    }
    if let Some(target) = folder.parent() {
        command.arg("--target-dir").arg(target);
    }
    let output = command.output().context("starting `cargo build` for the programs under test")?;
    if !output.status.success() {
        bail!(
            "`cargo build` of the programs under test failed:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(folder)
}

/// `target/debug` or `target/release`, from the path of a test (in `deps`) or of a program beside it.
fn profile_folder(exe: &Path) -> Result<PathBuf> {
    let folder = exe.parent().context("a program lies in a folder")?;
    let folder =
        if folder.ends_with("deps") { folder.parent().context("`deps` lies in a folder")? } else { folder };
    Ok(folder.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_lie_beside_the_folder_of_tests() {
        assert_eq!(profile_folder(Path::new("/t/debug/deps/e2e-1f")).unwrap(), Path::new("/t/debug"));
        assert_eq!(profile_folder(Path::new("/t/release/cluster")).unwrap(), Path::new("/t/release"));
    }
}
