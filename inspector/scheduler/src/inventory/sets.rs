//! For each constraint of waiting jobs, the set of eligible nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cow::CowVec;
use super::id::NodeId;
use crate::constraint::{NodeConstraint, NodeFacts, eligible};

/// Bits by node id.
type Bits = CowVec<u64>;

#[derive(Clone, Debug, Default)]
pub(super) struct Set {
    /// The last pass that used it.
    pub used: u64,
    /// Eligible as the nodes are now.
    pub now: Bits,
    /// Eligible once temporary reasons no longer apply.
    pub lasting: Bits,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Sets {
    pub by_constraint: Arc<BTreeMap<Arc<NodeConstraint>, Set>>,
    pub pass: u64,
}

pub(super) fn get(bits: &Bits, id: NodeId) -> bool {
    bits.value(id / 64) >> (id % 64) & 1 == 1
}

fn put(bits: &mut Bits, id: NodeId, on: bool) {
    if get(bits, id) != on {
        *bits.slot(id / 64) ^= 1 << (id % 64);
    }
}

impl Set {
    pub(super) fn update(&mut self, constraint: &NodeConstraint, id: NodeId, facts: Option<&NodeFacts>) {
        let (now, lasting) = judge(constraint, facts);
        put(&mut self.now, id, now);
        put(&mut self.lasting, id, lasting);
    }
}

/// Whether a node is eligible now, and whether it is once temporary reasons no longer apply.
pub(super) fn judge(constraint: &NodeConstraint, facts: Option<&NodeFacts>) -> (bool, bool) {
    match facts.map(|facts| eligible(constraint, facts)) {
        Some(Ok(())) => (true, true),
        Some(Err(exclusion)) => (false, exclusion.is_temporary()),
        None => (false, false),
    }
}

impl Sets {
    pub(super) fn update(&mut self, id: NodeId, facts: Option<&NodeFacts>) {
        for (constraint, set) in Arc::make_mut(&mut self.by_constraint) {
            set.update(constraint, id, facts);
        }
    }
}
