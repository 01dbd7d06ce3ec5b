//! Numbers of Pods by domain of a topology, for one rule.

use std::sync::Arc;

use crate::inventory::{NodeId, Topology};

/// See the module documentation.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    topology: Arc<Topology>,
    counts: Vec<u32>,
    /// All Pods in any domain.
    total: u64,
    /// By shape of the plan: how much a slot adds.
    pub(super) adds: Vec<u32>,
    /// The nodes whose Pods count; none: all.
    included: Option<Included>,
}

/// The part of a topology that counts for a spread constraint, and its minimum.
#[derive(Clone, Debug, Default)]
struct Included {
    /// By node ID.
    nodes: Vec<bool>,
    /// Number of domains.
    domains: u32,
    /// Number of domains by their number of Pods.
    histogram: Vec<u32>,
    /// The fewest Pods of a domain.
    least: u32,
}

impl Tally {
    /// No Pods; `adds` by shape of the plan.
    pub(super) fn new(topology: Arc<Topology>, adds: Vec<u32>) -> Self {
        let counts = vec![0; topology.domains];
        Self { topology, counts, total: 0, adds, included: None }
    }

    /// Only these nodes, and their domains, count. To be called before anything is added.
    pub(super) fn limit_to(&mut self, nodes: impl Iterator<Item = NodeId>) {
        let mut included = Included::default();
        let mut domains = vec![false; self.counts.len()];
        for id in nodes {
            let Some(domain) = self.topology.of(id) else { continue };
            let at = id as usize;
            if included.nodes.len() <= at {
                included.nodes.resize(at + 1, false);
            }
            included.nodes[at] = true;
            included.domains += u32::from(!domains[domain]);
            domains[domain] = true;
        }
        included.histogram = vec![included.domains];
        self.included = Some(included);
    }

    /// The node's domain.
    pub(super) fn domain(&self, id: NodeId) -> Option<usize> {
        self.topology.of(id)
    }

    pub(super) fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Number of Pods in the domain of a node.
    pub(super) fn count(&self, domain: usize) -> u32 {
        self.counts[domain]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Whether slots of the request are counted.
    pub(super) fn grows(&self) -> bool {
        self.adds.iter().any(|add| *add > 0)
    }

    /// The fewest Pods of a domain that counts, 0 with fewer domains than `min_domains`; none without domains.
    pub(super) fn least(&self, min_domains: u32) -> Option<u32> {
        let included = self.included.as_ref()?;
        match included.domains {
            0 => None,
            domains if domains < min_domains => Some(0),
            _ => Some(included.least),
        }
    }

    /// Adds Pods on a node.
    pub(super) fn add(&mut self, id: NodeId, count: u32) {
        if let Some(domain) = self.counted(id).filter(|_| count > 0) {
            let before = self.counts[domain];
            self.counts[domain] = before.saturating_add(count);
            self.total += u64::from(count);
            self.moved(before, self.counts[domain]);
        }
    }

    /// Removes Pods that were added.
    pub(super) fn remove(&mut self, id: NodeId, count: u32) {
        if let Some(domain) = self.counted(id).filter(|_| count > 0) {
            let before = self.counts[domain];
            self.counts[domain] = before.saturating_sub(count);
            self.total -= u64::from(count);
            self.moved(before, self.counts[domain]);
        }
    }

    fn counted(&self, id: NodeId) -> Option<usize> {
        let counts =
            self.included.as_ref().is_none_or(|included| included.nodes.get(id as usize) == Some(&true));
        self.topology.of(id).filter(|_| counts)
    }

    fn moved(&mut self, before: u32, after: u32) {
        let Some(included) = &mut self.included else { return };
        let (before, after) = (before as usize, after as usize);
        if included.histogram.len() <= after {
            included.histogram.resize(after + 1, 0);
        }
        included.histogram[before] -= 1;
        included.histogram[after] += 1;
        included.least = included.least.min(u32::try_from(after).unwrap_or(u32::MAX));
        while included.histogram.get(included.least as usize) == Some(&0) {
            included.least += 1;
        }
    }
}
