//! Topologies, computed from the labels of nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Inventory;
use super::topology::{NONE, Topology};

impl Inventory {
    /// Caches the topology until the graph changes.
    pub(crate) fn prepare_topology(&mut self, key: &Arc<str>) {
        let topology = self.topology(key);
        self.topologies.insert(key.clone(), (self.graph, topology));
    }

    /// The domain of every existing node.
    pub(crate) fn topology(&self, key: &str) -> Arc<Topology> {
        if let Some((graph, topology)) = self.topologies.get(key)
            && *graph == self.graph
        {
            return topology.clone();
        }
        let mut topology = Topology::default();
        let mut numbers: BTreeMap<&Arc<str>, u32> = BTreeMap::new();
        let mut nodes = 0;
        for id in self.order.iter() {
            let Some(value) = self.book(*id).and_then(|book| book.facts.labels.get(key)) else { continue };
            let next = u32::try_from(numbers.len()).unwrap_or(NONE);
            let at = *id as usize;
            if topology.of.len() <= at {
                topology.of.resize(at + 1, NONE);
            }
            topology.of[at] = *numbers.entry(value).or_insert(next);
            nodes += 1;
        }
        topology.domains = numbers.len();
        topology.singles = nodes == numbers.len();
        Arc::new(topology)
    }
}
