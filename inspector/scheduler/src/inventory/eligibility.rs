//! For each constraint that somebody waits with, the set of nodes it admits, kept up to date node by node.

use std::sync::Arc;

use super::Inventory;
use super::id::NodeId;
use super::sets::{Set, get, judge};
use crate::constraint::{NodeConstraint, NodeFacts};

/// Passes after which a set that nobody asked for is forgotten.
const KEPT: u64 = 64;

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
    /// Keeps the sets of nodes for these constraints up to date from now on, so that asking for them is fast. Sets
    /// that were not named for a while are forgotten.
    pub(crate) fn prepare<'a>(&mut self, constraints: impl IntoIterator<Item = &'a Arc<NodeConstraint>>) {
        self.eligibility.pass += 1;
        let pass = self.eligibility.pass;
        let mut sets = self.eligibility.by_constraint.clone();
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
