//! The container image, as far as it can be tried without a container engine.
//!
//! Not a test of the usual form: where the machine does not allow it, that is said and counted as ignored.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use fluxion_tests::programs::{self, Program};

const TEST: &str = "two_builds_are_the_same_and_it_runs_as_the_chart_wants_it_to";
/// The check can't be made on this machine.
const IMPOSSIBLE: i32 = 77;

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if !arguments.is_empty() && !arguments.iter().any(|part| TEST.contains(part.as_str())) {
        return Ok(ExitCode::SUCCESS);
    }
    let program = programs::path(Program::Inspector)?;
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/image/check");
    let folder = program.parent().context("the program lies in no folder")?;
    let ran = Command::new(check).arg(folder).output()?;
    let (told, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    if ran.status.code() == Some(IMPOSSIBLE) {
        println!("test {TEST} ... ignored, {}\n", errors.trim());
        println!("test result: ok. 0 passed; 0 failed; 1 ignored");
        return Ok(ExitCode::SUCCESS);
    }
    ensure!(ran.status.success() && told.contains("/readyz: ok"), "{TEST}: {told}{errors}");
    println!("{told}\ntest {TEST} ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored");
    Ok(ExitCode::SUCCESS)
}
