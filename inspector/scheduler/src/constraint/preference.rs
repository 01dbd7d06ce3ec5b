//! What a Pod prefers, as plain types: preferred node affinity, preferred inter-Pod affinity and anti-affinity, and
//! topology spread constraints with `ScheduleAnyway`.
//!
//! A preference never keeps a Pod from a node; which of several nodes is taken is decided by `placement`. Taints with
//! `PreferNoSchedule` are preferences too, but they are properties of nodes ([`super::discouraging_taints`]).

use serde::{Deserialize, Serialize};

use super::{PodSelector, PodTerm, Term, TopologySpread};

/// A preferred term of node affinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PreferredNodes {
    /// 1 to 100.
    pub weight: u32,
    /// The nodes.
    pub term: Term,
}

/// A preferred term of inter-Pod affinity or anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PreferredPods {
    /// 1 to 100.
    pub weight: u32,
    /// Anti-affinity.
    pub apart: bool,
    /// The Pods, and the domains.
    pub term: PodTerm,
}

/// What a Pod prefers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Preferences {
    /// Preferred node affinity.
    pub nodes: Vec<PreferredNodes>,
    /// Preferred inter-Pod affinity and anti-affinity.
    pub pods: Vec<PreferredPods>,
    /// Spread constraints with `ScheduleAnyway`. `min_domains` has no meaning for these.
    pub spread: Vec<TopologySpread>,
}

impl Preferences {
    /// Whether nothing is preferred.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.pods.is_empty() && self.spread.is_empty()
    }

    /// Number of terms and constraints.
    pub fn len(&self) -> usize {
        self.nodes.len() + self.pods.len() + self.spread.len()
    }

    /// Every selector of Pods.
    pub(crate) fn selectors(&self) -> impl Iterator<Item = &PodSelector> {
        let pods = self.pods.iter().map(|preferred| &preferred.term.selector);
        pods.chain(self.spread.iter().map(|spread| &spread.selector))
    }

    /// Every topology key.
    pub(crate) fn topologies(&self) -> impl Iterator<Item = &std::sync::Arc<str>> {
        let pods = self.pods.iter().map(|preferred| &preferred.term.topology);
        pods.chain(self.spread.iter().map(|spread| &spread.topology))
    }
}
