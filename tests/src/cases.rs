//! Small clusters with trouble in them, played on a real control plane.
//!
//! A case is a YAML file: objects that are applied first, steps, and what must be true after each. This module
//! reads the form ([`model`]), plays it ([`play`]) and reports; it knows nothing of any single case. A [`Folder`]
//! holds the same for standalone mode too.

mod bind;
mod check;
mod cleanup;
mod daemons;
mod folder;
mod invariants;
pub mod model;
mod play;
mod quantity;
mod report;
mod settle;
mod standalone;
mod target;
mod text;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub use folder::{Folder, load as load_folders};
pub use model::Case;
pub use play::play;
pub use report::{Report, Row, Verdict};
pub use standalone::play as play_standalone;

/// Where the cases lie: beside the project, when they are there at all.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/cases")
}

/// Where the cases that are folders lie.
pub fn folders() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/cases2")
}

/// What is said of a test that finds nothing to play, in the words of other tests.
pub fn ignored(test: &str, folder: &Path) -> String {
    format!(
        "test {test} ... ignored, there is no {}\n\ntest result: ok. 0 passed; 0 failed; 1 ignored",
        folder.display()
    )
}

/// Whether the program's arguments name the case: a part of its name, or nothing.
pub fn chosen(name: &str) -> bool {
    let mut wanted = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).peekable();
    wanted.peek().is_none() || wanted.any(|part| name.contains(&part))
}

/// All cases of a folder, in the order of their names.
pub fn load(folder: &Path) -> Result<Vec<Case>> {
    entries(folder, |path| path.extension().is_some_and(|extension| extension == "yaml"))?
        .iter()
        .map(|path| read(path).with_context(|| format!("in {}", path.display())))
        .collect()
}

/// What of a folder is wanted, in the order of the names.
fn entries(folder: &Path, wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .with_context(|| format!("reading {}", folder.display()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| wanted(path))
        .collect();
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<Case> {
    let text = std::fs::read_to_string(path)?;
    Ok(serde_saphyr::from_str(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every word of them must be understood.
    #[test]
    #[cfg_attr(not(cases), ignore = "there are no cases beside the project")]
    fn the_cases_beside_the_project_are_in_the_form() {
        let (files, folders) = (folder(), folders());
        let mut all = if files.is_dir() { load(&files).unwrap() } else { Vec::new() };
        if folders.is_dir() {
            all.extend(load_folders(&folders).unwrap().into_iter().map(|folder| folder.case));
        }
        assert!(!all.is_empty(), "neither {} nor {} has a case", files.display(), folders.display());
        for case in &all {
            let last = case.steps.len();
            assert!(case.expect.iter().all(|check| check.after.unwrap_or(0) <= last), "{}", case.name);
        }
    }
}
