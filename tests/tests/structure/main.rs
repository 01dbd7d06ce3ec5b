//! The structure of the source: no circles of modules, and no two public types of one name, in any crate.
//!
//! Files are read as the compiler reads them. A module uses another when a path in it, or a name that it imports, leads
//! to something that the other defines; names that a module only hands on are followed to where they are defined.

mod modules;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use modules::Crate;

/// The crates of the workspace that have modules, by the folders of their sources.
const CRATES: [&str; 8] = [
    "shared/src",
    "shared/text/src",
    "inspector/fluxion/src",
    "inspector/scheduler/src",
    "inspector/src",
    "inspector/resource-query/src",
    "inspector/sim/src",
    "kubectl-fluxion/src",
];

fn read(folder: &str) -> Crate {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let top = ["lib.rs", "main.rs"].map(|name| root.join(name)).into_iter().find(|path| path.exists());
    Crate::read(&top.expect("a crate has lib.rs or main.rs"))
}

#[test]
fn no_modules_use_each_other_in_a_circle() {
    let mut found = Vec::new();
    for folder in CRATES {
        for circle in circles(&read(folder).uses()) {
            let lines: Vec<String> =
                circle.iter().map(|(from, to, names)| format!("  {from} -> {to}: {names}")).collect();
            found.push(format!("{folder}:\n{}", lines.join("\n")));
        }
    }
    assert!(found.is_empty(), "{} circles of modules:\n{}", found.len(), found.join("\n"));
}

#[test]
fn no_two_public_types_of_a_crate_share_a_name() {
    let mut found = Vec::new();
    for folder in CRATES {
        for (name, places) in read(folder).public_types() {
            if places.len() > 1 {
                found.push(format!("{folder}: {name} in {}", places.join(" and ")));
            }
        }
    }
    assert!(found.is_empty(), "types of one name:\n{}", found.join("\n"));
}

type Uses = BTreeMap<(String, String), BTreeSet<String>>;

/// The arrows of each circle: within every set of modules of which each reaches each.
fn circles(uses: &Uses) -> Vec<Vec<(String, String, String)>> {
    let mut reach: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in uses.keys() {
        reach.entry(from).or_default().insert(to);
    }
    let reachable = |from: &str| {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            for next in reach.get(at).into_iter().flatten() {
                if seen.insert(*next) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let all: BTreeMap<&str, BTreeSet<&str>> = reach.keys().map(|from| (*from, reachable(from))).collect();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let mut found = Vec::new();
    for (from, seen) in &all {
        if !seen.contains(from) || known.contains(from) {
            continue;
        }
        let circle: BTreeSet<&str> =
            seen.iter().copied().filter(|to| all.get(to).is_some_and(|back| back.contains(from))).collect();
        known.extend(&circle);
        let arrows = uses.iter().filter(|((a, b), _)| circle.contains(&**a) && circle.contains(&**b));
        found.push(
            arrows
                .map(|((a, b), names)| {
                    (a.clone(), b.clone(), names.iter().cloned().collect::<Vec<_>>().join(", "))
                })
                .collect(),
        );
    }
    found
}

#[test]
fn a_circle_is_found() {
    let arrow = |from: &str, to: &str| ((from.to_owned(), to.to_owned()), BTreeSet::from(["X".to_owned()]));
    let uses: Uses = [arrow("a", "b"), arrow("b", "c"), arrow("c", "a"), arrow("c", "d")].into();
    let found = circles(&uses);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].len(), 3, "{found:?}");
}
