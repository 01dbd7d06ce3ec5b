//! For each constraint that somebody waits with, the set of nodes it admits, kept up to date node by node.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cow::CowVec;
use super::{Inventory, NodeId};
use crate::constraint::{NodeConstraint, NodeFacts, eligible};

/// Bits by node id.
type Bits = CowVec<u64>;

#[derive(Clone, Debug, Default)]
struct Set {
    /// Admitted as the nodes are now.
    now: Bits,
    /// Admitted when what passes by itself has passed.
    lasting: Bits,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Sets(Arc<BTreeMap<Arc<NodeConstraint>, Set>>);

fn get(bits: &Bits, id: NodeId) -> bool {
    bits.value(id / 64) >> (id % 64) & 1 == 1
}

fn put(bits: &mut Bits, id: NodeId, on: bool) {
    if get(bits, id) != on {
        *bits.slot(id / 64) ^= 1 << (id % 64);
    }
}

impl Set {
    fn update(&mut self, constraint: &NodeConstraint, id: NodeId, facts: Option<&NodeFacts>) {
        let (now, lasting) = judge(constraint, facts);
        put(&mut self.now, id, now);
        put(&mut self.lasting, id, lasting);
    }
}

/// Whether a node is admitted now, and whether it is once passing reasons have passed.
fn judge(constraint: &NodeConstraint, facts: Option<&NodeFacts>) -> (bool, bool) {
    match facts.map(|facts| eligible(constraint, facts)) {
        Some(Ok(())) => (true, true),
        Some(Err(exclusion)) => (false, exclusion.is_temporary()),
        None => (false, false),
    }
}

impl Sets {
    pub(super) fn update(&mut self, id: NodeId, facts: Option<&NodeFacts>) {
        for (constraint, set) in Arc::make_mut(&mut self.0) {
            set.update(constraint, id, facts);
        }
    }
}

/// Answers for one constraint: from its set where there is one, else by asking anew.
#[derive(Debug)]
pub(crate) struct Eligibility<'a> {
    inventory: &'a Inventory,
    constraint: &'a NodeConstraint,
    set: Option<&'a Set>,
}

impl Eligibility<'_> {
    /// Whether the node may take the shape now.
    pub(crate) fn now(&self, id: NodeId) -> bool {
        match self.set {
            Some(set) => get(&set.now, id),
            None => judge(self.constraint, self.inventory.facts(id)).0,
        }
    }

    /// Whether the node may take the shape once passing reasons have passed.
    pub(crate) fn lasting(&self, id: NodeId) -> bool {
        match self.set {
            Some(set) => get(&set.lasting, id),
            None => judge(self.constraint, self.inventory.facts(id)).1,
        }
    }
}

impl Inventory {
    /// Keeps the set of nodes for this constraint from now on, so that asking for it is fast.
    pub(crate) fn prepare(&mut self, constraint: &Arc<NodeConstraint>) {
        if self.eligibility.0.contains_key(constraint) {
            return;
        }
        let mut set = Set::default();
        for id in self.order.iter() {
            set.update(constraint, *id, self.facts(*id));
        }
        Arc::make_mut(&mut self.eligibility.0).insert(constraint.clone(), set);
    }

    /// Forgets the sets of all other constraints.
    pub(crate) fn keep_prepared(&mut self, wanted: impl Fn(&NodeConstraint) -> bool) {
        let unwanted: Vec<_> = self.eligibility.0.keys().filter(|key| !wanted(key)).cloned().collect();
        for constraint in unwanted {
            Arc::make_mut(&mut self.eligibility.0).remove(&constraint);
        }
    }

    pub(crate) fn eligibility<'a>(&'a self, constraint: &'a NodeConstraint) -> Eligibility<'a> {
        Eligibility { inventory: self, constraint, set: self.eligibility.0.get(constraint) }
    }

    fn facts(&self, id: NodeId) -> Option<&NodeFacts> {
        self.book(id).filter(|book| book.spec.is_some()).map(|book| book.facts.as_ref())
    }
}
