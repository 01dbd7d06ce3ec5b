//! The display form of a node: all amounts are non-negative integers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Inventory;
use super::book::{NodeAllocations, Sums};
use super::hold::Allocation;
use super::id::KindId;
use super::spec::NodeSpec;
use crate::constraint::{Exclusion, exclusions};
use crate::resources::ResourceList;

/// The data of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// Its latest spec.
    pub spec: Arc<NodeSpec>,
    /// Held by all Pods bound to it or being bound.
    pub allocated: ResourceList,
    /// The part of `allocated` bound by other schedulers.
    pub foreign: ResourceList,
    /// Reserved for Pods that others nominated for it; not part of `allocated`.
    pub nominated: ResourceList,
    /// Reserved for replacements of lost members; not part of `allocated`.
    pub kept: ResourceList,
    /// The maximum reserved at any one time.
    pub reserved: ResourceList,
    /// Allocatable minus allocated, nominated and kept, at least 0.
    pub free: ResourceList,
    /// Held in excess of allocatable; only resources with a positive excess.
    pub deficit: ResourceList,
    /// Its values of the levels' labels.
    pub levels: BTreeMap<Arc<str>, Arc<str>>,
    /// Whether a Pod without tolerations may run there.
    pub eligible: bool,
    /// Why not.
    pub reasons: Vec<Exclusion>,
    /// The allocations, by holder.
    pub holders: Vec<(Arc<str>, Allocation)>,
}

fn shown(sum: u128) -> u64 {
    u64::try_from(sum).unwrap_or(u64::MAX)
}

impl Inventory {
    /// One node; `None` when it does not exist.
    pub fn node(&self, name: &str) -> Option<NodeView> {
        let id = self.id(name)?;
        let book = self.book(id)?;
        let spec = book.spec.clone()?;
        let list = |of: &dyn Fn(KindId) -> Option<u64>| -> ResourceList {
            book.kinds()
                .into_iter()
                .filter_map(|kind| Some((self.columns.name(kind).clone(), of(kind)?)))
                .collect()
        };
        let held = |of: fn(Sums) -> u128| {
            list(&|kind| Some(shown(of(book.sums(kind)))).filter(|quantity| *quantity > 0))
        };
        let reasons = exclusions(&[], &book.facts);
        let levels =
            self.levels.iter().filter_map(|key| Some((key.clone(), spec.labels.get(key)?.clone()))).collect();
        Some(NodeView {
            allocated: held(|sums| sums.held - sums.nominated - sums.kept),
            foreign: held(|sums| sums.foreign),
            nominated: held(|sums| sums.nominated),
            kept: held(|sums| sums.kept),
            reserved: self.most_reserved(id, book),
            free: list(&|kind| {
                spec.allocatable
                    .contains(self.columns.name(kind))
                    .then(|| u64::try_from(book.balance(kind)).unwrap_or(0))
            }),
            deficit: list(&|kind| {
                Some(shown(book.balance(kind).min(0).unsigned_abs())).filter(|quantity| *quantity > 0)
            }),
            levels,
            eligible: reasons.is_empty(),
            reasons,
            holders: book.holds.iter().map(|(holder, held)| (holder.clone(), held.hold.clone())).collect(),
            spec,
        })
    }

    /// Whether there is a node of that name; one that was deleted may still have holders.
    pub fn has_node(&self, name: &str) -> bool {
        self.id(name).and_then(|id| self.book(id)).is_some_and(|book| book.spec.is_some())
    }

    /// The jobs that hold resources on the node, whether or not it exists.
    pub fn jobs_on(&self, name: &str) -> impl Iterator<Item = u32> {
        let book = self.id(name).and_then(|id| self.book(id));
        book.into_iter().flat_map(|book| book.holds.iter().filter_map(|(_, held)| held.hold.job))
    }

    /// All nodes in natural order of their names.
    pub fn nodes(&self) -> impl Iterator<Item = NodeView> {
        self.node_names().filter_map(|name| self.node(&name))
    }

    /// The names of all nodes in natural order.
    pub fn node_names(&self) -> impl Iterator<Item = Arc<str>> {
        self.order.iter().map(|id| self.name(*id))
    }

    /// Incremented with every change of what [`Self::node`] returns, and when a holder's name changes.
    pub fn node_revision(&self, name: &str) -> Option<u64> {
        Some(self.revisions.value(self.id(name)?).max(self.all_changed))
    }

    fn most_reserved(&self, id: u32, book: &NodeAllocations) -> ResourceList {
        let entries = self.reserved_on(id);
        let mut most: BTreeMap<KindId, u128> = BTreeMap::new();
        for point in entries {
            let mut at: BTreeMap<KindId, u128> = BTreeMap::new();
            for entry in entries.iter().filter(|e| e.start <= point.start && point.start < e.end) {
                for (kind, quantity) in entry.needs.iter() {
                    *at.entry(*kind).or_default() += u128::from(*quantity);
                }
            }
            for (kind, sum) in at {
                let most = most.entry(kind).or_default();
                *most = (*most).max(sum);
            }
        }
        debug_assert!(book.spec.is_some(), "only existing nodes are shown");
        most.into_iter().map(|(kind, sum)| (self.columns.name(kind).clone(), shown(sum))).collect()
    }
}

impl Inventory {
    /// Compares the numbers used by searches with the node's entry.
    pub(crate) fn check_columns(&self, name: &str) -> Vec<String> {
        let Some((id, book)) = self.id(name).and_then(|id| Some((id, self.book(id)?))) else {
            return vec![format!("node {name} has no entry")];
        };
        let mut wrong = Vec::new();
        for kind in book.kinds() {
            let read =
                (self.columns.free(id, kind), self.columns.late(id, kind), self.columns.most(id, kind));
            let numbers = book.numbers(kind);
            if read != (numbers.free, numbers.late, numbers.most) {
                wrong
                    .push(format!("node {name}: the numbers of {} are out of date", self.columns.name(kind)));
            }
        }
        for (holder, held) in &book.holds {
            let end = held.hold.until.map(|until| (until, id, holder.clone()));
            if end.is_some_and(|end| self.assumed.contains(&end) != held.hold.end_assumed) {
                wrong.push(format!("node {name}: the index of assumed ends is wrong for {holder}"));
            }
        }
        wrong
    }
}
