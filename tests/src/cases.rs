//! Small clusters with trouble in them, played on a real control plane.
//!
//! A case is a YAML file: objects that are applied first, steps, and what must be true after each. This module
//! reads the form ([`model`]), plays it ([`play`]) and reports; it knows nothing of any single case.

mod bind;
mod check;
mod cleanup;
pub mod model;
mod play;
mod quantity;
mod report;
mod settle;
mod target;
mod text;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub use model::Case;
pub use play::play;
pub use report::{Report, Row, Verdict};

/// Where the cases lie: beside the project, when they are there at all.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/cases")
}

/// All cases of a folder, in the order of their names.
pub fn load(folder: &Path) -> Result<Vec<Case>> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .with_context(|| format!("reading {}", folder.display()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    paths.sort();
    paths.iter().map(|path| read(path).with_context(|| format!("in {}", path.display()))).collect()
}

fn read(path: &Path) -> Result<Case> {
    let text = std::fs::read_to_string(path)?;
    Ok(serde_saphyr::from_str(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every word of them must be understood; where they are not there, nothing is to be checked.
    #[test]
    fn the_cases_beside_the_project_are_in_the_form() {
        let folder = folder();
        if folder.is_dir() {
            let cases = load(&folder).unwrap();
            assert!(!cases.is_empty());
            for case in &cases {
                assert!(
                    case.expect.iter().all(|check| check.after.unwrap_or(0) <= case.steps.len()),
                    "{}",
                    case.name
                );
            }
        }
    }
}
