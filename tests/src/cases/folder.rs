//! Cases that are folders: the same cluster for standalone mode and for a real control plane.
//!
//! `nodes.yaml` and `jobs.yaml` are for the former, `case.yaml` for the latter; the checks of both stand in
//! `expect.md`, with the second at which they are due; each `bad-*.yaml` must be refused.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::model::{Case, Check, Step};
use crate::apply::documents;

/// When a manifest is handed in, in standalone mode.
const SUBMIT_AT: &str = "fluxion.flux-framework.org/submit-at";

/// One folder.
#[derive(Clone, Debug)]
pub struct Folder {
    /// Where it lies.
    pub path: PathBuf,
    /// For a real control plane, with the checks of `expect.md`, and a step for what must be refused.
    pub case: Case,
    /// As they stand in `expect.md`.
    pub checks: Vec<Check>,
    /// Manifests that must be refused.
    pub bad: Vec<PathBuf>,
}

impl Folder {
    /// Reads it.
    pub fn read(path: &Path) -> Result<Self> {
        let mut case = super::read(&path.join("case.yaml"))?;
        case.in_order = true;
        let checks = checks(&text(&path.join("expect.md"))?).context("in expect.md")?;
        let submitted = submissions(&documents(&text(&path.join("jobs.yaml"))?)?);
        let steps = case.steps.len();
        case.expect = checks.iter().map(|check| with_step(check, &submitted, steps)).collect();
        let bad = bad(path)?;
        for manifest in &bad {
            let objects = documents(&text(manifest)?)?;
            case.steps.push(Step::Apply { objects, repeat: None, rejected: true });
        }
        Ok(Self { path: path.to_owned(), case, checks, bad })
    }
}

/// All folders of a folder, in the order of their names.
pub fn load(folder: &Path) -> Result<Vec<Folder>> {
    super::entries(folder, |path| path.join("case.yaml").is_file())?
        .iter()
        .map(|path| Folder::read(path).with_context(|| format!("in {}", path.display())))
        .collect()
}

fn text(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

fn bad(folder: &Path) -> Result<Vec<PathBuf>> {
    super::entries(folder, |path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("bad-"))
    })
}

/// The list below the heading `**Checks**`.
fn checks(markdown: &str) -> Result<Vec<Check>> {
    let (_, rest) = markdown.split_once("**Checks**").context("there is no heading **Checks**")?;
    let list: Vec<&str> = rest
        .lines()
        .skip(1)
        .skip_while(|line| line.is_empty())
        .take_while(|line| line.starts_with('-'))
        .collect();
    serde_saphyr::from_str(&list.join("\n")).context("reading the list of checks")
}

/// The seconds at which something is handed in later, each once.
fn submissions(jobs: &[Value]) -> Vec<u64> {
    let mut seconds: Vec<u64> = jobs
        .iter()
        .filter_map(|job| job["metadata"]["annotations"][SUBMIT_AT].as_str()?.strip_suffix('s')?.parse().ok())
        .collect();
    seconds.sort_unstable();
    seconds.dedup();
    seconds
}

/// A check that is due at a second is due after the steps that come before it.
fn with_step(check: &Check, submitted: &[u64], steps: usize) -> Check {
    let after = check.at.map(|at| submitted.iter().filter(|second| **second <= at).count());
    Check { after: after.filter(|after| *after < steps).or(check.after), ..check.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKDOWN: &str = "# name\n\n**Checks**\n- {job: pod/a, state: Running, at: 3}\n- {pod: a, bound: n1}\n\n**Tried** yes\n- {no: check}\n";

    #[test]
    fn checks_stand_below_their_heading() {
        let checks = checks(MARKDOWN).unwrap();
        assert_eq!(checks.len(), 2);
        assert_eq!((checks[0].at, checks[1].bound.as_ref().unwrap()), (Some(3), &Value::from("n1")));
        assert!(super::checks("# name\n").is_err());
    }

    #[test]
    fn a_second_is_a_number_of_steps() {
        let jobs = documents(&format!(
            "metadata: {{name: a}}\n---\nmetadata: {{annotations: {{{SUBMIT_AT}: 5s}}}}\n"
        ));
        let submitted = submissions(&jobs.unwrap());
        assert_eq!(submitted, [5]);
        let after = |at| with_step(&Check { at, ..Check::default() }, &submitted, 1).after;
        assert_eq!(after(Some(3)), Some(0));
        assert_eq!(after(Some(9)), None);
        assert_eq!(after(None), None);
    }
}
