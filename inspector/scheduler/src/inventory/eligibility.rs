//! For each constraint of waiting jobs, the set of eligible nodes, updated node by node.

use std::sync::Arc;

use super::Inventory;
use super::id::NodeId;
use super::sets::{Set, get, judge};
use crate::constraint::{NodeConstraint, NodeFacts};

/// Number of passes after which an unused set is dropped.
const KEPT: u64 = 64;

/// Eligibility for one constraint: from its set if there is one, else evaluated.
#[derive(Debug)]
pub(crate) struct Eligibility<'a> {
    inventory: &'a Inventory,
    constraint: &'a NodeConstraint,
    set: Option<&'a Set>,
}

impl Eligibility<'_> {
    /// Whether the node is eligible for the shape now.
    pub(crate) fn now(&self, id: NodeId) -> bool {
        match self.set {
            Some(set) => get(&set.now, id),
            None => judge(self.constraint, self.inventory.facts(id)).0,
        }
    }

    /// Whether the node is eligible for the shape once temporary reasons no longer apply.
    pub(crate) fn lasting(&self, id: NodeId) -> bool {
        match self.set {
            Some(set) => get(&set.lasting, id),
            None => judge(self.constraint, self.inventory.facts(id)).1,
        }
    }
}

impl Inventory {
    /// Maintains the sets of nodes for these constraints from now on, so that lookups are fast. Sets not listed for a
    /// while are dropped.
    pub(crate) fn prepare<'a>(&mut self, constraints: impl IntoIterator<Item = &'a Arc<NodeConstraint>>) {
        self.eligibility.pass += 1;
        let pass = self.eligibility.pass;
        let mut sets = std::mem::take(&mut self.eligibility.by_constraint);
        let known = Arc::make_mut(&mut sets);
        for constraint in constraints {
            if let Some(set) = known.get_mut(constraint) {
                set.used = pass;
                continue;
            }
            let mut set = Set { used: pass, ..Set::default() };
            for id in self.order.iter() {
                set.update(constraint, *id, self.facts(*id));
            }
            known.insert(constraint.clone(), set);
        }
        known.retain(|_, set| set.used + KEPT >= pass);
        self.eligibility.by_constraint = sets;
    }

    pub(crate) fn eligibility<'a>(&'a self, constraint: &'a NodeConstraint) -> Eligibility<'a> {
        Eligibility { inventory: self, constraint, set: self.eligibility.by_constraint.get(constraint) }
    }

    fn facts(&self, id: NodeId) -> Option<&NodeFacts> {
        self.book(id).filter(|book| book.spec.is_some()).map(|book| book.facts.as_ref())
    }
}
