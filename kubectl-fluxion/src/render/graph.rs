//! The resource graph, level by level.

use std::collections::BTreeSet;

use fluxion_api::FluxionGraph;

use super::Options;
use super::bars::{Share, bar};
use super::quantity::{Amount, is_gpu};
use super::style::{BOLD, Painted};
use super::table::Table;

/// One line for each level and resource.
pub fn graph(graph: &FluxionGraph, options: &Options) -> String {
    let mut table =
        Table::new(vec!["LEVEL", "VERTICES", "RESOURCE", "USE", "ALLOCATED", "FREE", "ALLOCATABLE"]);
    for level in &graph.status.summary {
        let all: BTreeSet<&String> = level.allocatable.keys().collect();
        let shown = all.into_iter().filter(|name| {
            options.wide || matches!(name.as_str(), "cpu" | "memory" | "pods") || is_gpu(name)
        });
        let mut first = true;
        for name in shown {
            let whole = Amount::of(&level.allocatable, name);
            let used = Amount::of(&level.allocated, name);
            let free = Amount::of(&level.free, name);
            table.push(vec![
                if first { Painted::new(&level.level, BOLD) } else { "".into() },
                if first { level.vertices.to_string().into() } else { "".into() },
                name.as_str().into(),
                bar(Share { whole, used, reserved: Amount(0) }, 16).into(),
                used.show(name).into(),
                free.show(name).into(),
                whole.show(name).into(),
            ]);
            first = false;
        }
        if first {
            table.push(vec![Painted::new(&level.level, BOLD), level.vertices.to_string().into(), "-".into()]);
        }
    }
    table.take(options.headers, options.width)
}
