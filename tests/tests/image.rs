//! The container image, as far as it can be tried without a container engine.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use fluxion_tests::programs::{self, Program};
use tokio::process::Command;

#[tokio::test]
async fn two_builds_are_the_same_and_it_runs_as_the_chart_wants_it_to() {
    let program = tokio::task::spawn_blocking(|| programs::path(Program::Inspector)).await.unwrap().unwrap();
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/image/check");
    let ran = Command::new(check).arg(program.parent().unwrap()).kill_on_drop(true).output().await.unwrap();
    let (told, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{told}{errors}");
    assert!(told.contains("/readyz: ok"), "{told}{errors}");
}
