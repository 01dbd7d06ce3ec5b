//! Says to the tests whether recorded sessions are at hand: a test that has none is ignored, not passed.

use std::path::PathBuf;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(recordings)");
    println!("cargo::rerun-if-env-changed=FLUXION_CONFORMANCE");
    let beside = PathBuf::from("../../../shared/conformance");
    let cases = std::env::var_os("FLUXION_CONFORMANCE").map_or(beside, PathBuf::from).join("cases.jsonl");
    println!("cargo::rerun-if-changed={}", cases.display());
    if cases.exists() {
        println!("cargo::rustc-cfg=recordings");
    }
}
