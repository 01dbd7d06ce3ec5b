//! Says to the tests whether there are cases beside the project: a test that has none is ignored, not passed.

use std::path::Path;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(cases)");
    for folder in ["../../shared/cases", "../../shared/cases2"] {
        println!("cargo::rerun-if-changed={folder}");
        if Path::new(folder).is_dir() {
            println!("cargo::rustc-cfg=cases");
        }
    }
}
