//! The resource graph, level by level.

use std::collections::BTreeSet;

use fluxion_api::FluxionGraph;

use super::Options;
use super::bars::{Share, bar};
use fluxion_text::quantity::Amount;

use super::quantity::{amount_of, is_gpu};
use super::style::{BOLD, Painted};
use super::table::Table;

/// One line for each level and resource.
pub fn graph(graph: &FluxionGraph, options: &Options) -> String {
    let mut table =
        Table::new(vec!["LEVEL", "VERTICES", "RESOURCE", "USAGE", "ALLOCATED", "FREE", "ALLOCATABLE"]);
    for level in &graph.status.summary {
        let all: BTreeSet<&String> = level.allocatable.keys().collect();
        let shown = all.into_iter().filter(|name| {
            options.wide || matches!(name.as_str(), "cpu" | "memory" | "pods") || is_gpu(name)
        });
        let mut first = true;
        for name in shown {
            let whole = amount_of(&level.allocatable, name);
            let used = amount_of(&level.allocated, name);
            let free = amount_of(&level.free, name);
            table.push(vec![
                if first { Painted::new(&level.level, BOLD) } else { "".into() },
                if first { level.vertices.to_string().into() } else { "".into() },
                name.as_str().into(),
                bar(Share { whole, used, reserved: Amount::ZERO }, 16).into(),
                used.shown(name).into(),
                free.shown(name).into(),
                whole.shown(name).into(),
            ]);
            first = false;
        }
        if first {
            table.push(vec![Painted::new(&level.level, BOLD), level.vertices.to_string().into(), "-".into()]);
        }
    }
    table.take(options.headers, options.width)
}
