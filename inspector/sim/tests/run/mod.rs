//! How the tests run the program.

use std::process::{Command, Output};

/// Runs it in the root of the workspace, where the examples are.
pub(crate) fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fluxion-sim"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .args(arguments)
        .output()
        .unwrap()
}
