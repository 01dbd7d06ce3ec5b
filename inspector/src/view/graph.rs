//! `FluxionGraph`: the resource graph in JGF (JSON Graph Format, as read by the Flux tools) and summarized by
//! level.

use std::collections::BTreeMap;
use std::sync::Arc;

use fluxion::graph::GraphError;
use fluxion_api::graph::{FluxionGraph, GraphStatus, LevelSummary};
use fluxion_api::{API_VERSION, ObjectMeta};
use fluxion_scheduler::inventory::{Inventory, NodeView};
use fluxion_scheduler::resources::ResourceList;

use super::text::quantities;

/// The graph object as of `now`, without the JGF document if only the summary was requested.
pub fn graph(inventory: &Inventory, now: i64, with_jgf: bool) -> FluxionGraph {
    let written = with_jgf.then(|| jgf(inventory, now));
    if let Some(Err(error)) = &written {
        tracing::error!(%error, "failed to serialize the graph");
    }
    let jgf = written.and_then(Result::ok).and_then(|text| serde_json::from_str(&text).ok());
    FluxionGraph {
        api_version: API_VERSION.to_owned(),
        kind: "FluxionGraph".to_owned(),
        metadata: ObjectMeta { name: super::LIVE.to_owned(), ..ObjectMeta::default() },
        status: GraphStatus { graph: jgf, summary: summary(inventory) },
    }
}

/// The graph in JGF as of `now`, as input for `resource-query`.
pub fn jgf(inventory: &Inventory, now: i64) -> Result<String, GraphError> {
    inventory.jgf(now)
}

/// Sums of one level.
#[derive(Default)]
struct Sums {
    allocatable: ResourceList,
    allocated: ResourceList,
    free: ResourceList,
}

impl Sums {
    fn add(&mut self, node: &NodeView) {
        // Sums over more than a u64 holds of anything stand still: no cluster gets there.
        let plus = |sum: &mut ResourceList, more: &ResourceList| {
            if let Ok(total) = sum.checked_add(more) {
                *sum = total;
            }
        };
        plus(&mut self.allocatable, &node.spec.allocatable);
        plus(&mut self.allocated, &node.allocated);
        plus(&mut self.free, &node.free);
    }
}

fn summary(inventory: &Inventory) -> Vec<LevelSummary> {
    let mut all = Sums::default();
    let mut by_level: BTreeMap<&Arc<str>, Sums> =
        inventory.levels().iter().map(|level| (level, Sums::default())).collect();
    let mut nodes = 0;
    for node in inventory.nodes() {
        all.add(&node);
        nodes += 1;
        for (level, sums) in &mut by_level {
            if node.levels.contains_key(*level) {
                sums.add(&node);
            }
        }
    }
    let line = |level: &str, vertices: usize, sums: &Sums| LevelSummary {
        level: level.to_owned(),
        vertices: u32::try_from(vertices).unwrap_or(u32::MAX),
        allocatable: quantities(&sums.allocatable),
        allocated: quantities(&sums.allocated),
        free: quantities(&sums.free),
    };
    let mut lines = vec![line("cluster", 1, &all)];
    lines.extend(by_level.iter().map(|(level, sums)| line(level, inventory.domains_of(level).len(), sums)));
    lines.push(line("node", nodes, &all));
    lines
}
