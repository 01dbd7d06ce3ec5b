//! The numbers of all nodes for each resource, stored contiguously for scanning.

use std::sync::Arc;

use super::cow::CowVec;
use super::id::{KindId, NodeId};

/// A node's numbers for one resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// Free now.
    pub(crate) free: u64,
    /// Free when every holder with a planned end has left.
    pub(crate) late: u64,
    /// The maximum: the larger of capacity and allocatable, minus permanent holders.
    pub(crate) most: u64,
}

#[derive(Clone, Debug, Default)]
struct Column {
    free: CowVec<u64>,
    late: CowVec<u64>,
    most: CowVec<u64>,
    /// The total of `most` over all nodes.
    total: u128,
    /// The total of `free` over all nodes.
    total_free: u128,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    kinds: imbl::OrdMap<Arc<str>, KindId>,
    names: Arc<Vec<Arc<str>>>,
    numbers: Arc<Vec<Column>>,
}

impl Columns {
    /// The resource's ID, assigned on first use.
    pub(super) fn intern(&mut self, resource: &Arc<str>) -> KindId {
        if let Some(kind) = self.kinds.get(resource) {
            return *kind;
        }
        let kind = KindId::try_from(self.names.len()).expect("fewer than 2^32 resources fit into memory");
        self.kinds.insert(resource.clone(), kind);
        Arc::make_mut(&mut self.names).push(resource.clone());
        Arc::make_mut(&mut self.numbers).push(Column::default());
        kind
    }

    /// The resource's ID, if any node or holder uses it.
    pub(crate) fn kind(&self, resource: &str) -> Option<KindId> {
        self.kinds.get(resource).copied()
    }

    /// The resource's name.
    pub(crate) fn name(&self, kind: KindId) -> &Arc<str> {
        &self.names[kind as usize]
    }

    pub(super) fn set(&mut self, node: NodeId, kind: KindId, numbers: Numbers) {
        let column = &mut Arc::make_mut(&mut self.numbers)[kind as usize];
        column.total = column.total - u128::from(column.most.value(node)) + u128::from(numbers.most);
        column.total_free =
            column.total_free - u128::from(column.free.value(node)) + u128::from(numbers.free);
        for (vector, value) in [
            (&mut column.free, numbers.free),
            (&mut column.late, numbers.late),
            (&mut column.most, numbers.most),
        ] {
            if vector.value(node) != value {
                *vector.slot(node) = value;
            }
        }
    }

    pub(crate) fn free(&self, node: NodeId, kind: KindId) -> u64 {
        self.numbers[kind as usize].free.value(node)
    }

    pub(crate) fn late(&self, node: NodeId, kind: KindId) -> u64 {
        self.numbers[kind as usize].late.value(node)
    }

    pub(crate) fn most(&self, node: NodeId, kind: KindId) -> u64 {
        self.numbers[kind as usize].most.value(node)
    }

    /// What is free now of all nodes in total.
    pub(crate) fn total_free(&self, kind: KindId) -> u128 {
        self.numbers[kind as usize].total_free
    }

    /// The maximum of all nodes in total.
    pub(crate) fn total(&self, kind: KindId) -> u128 {
        self.numbers[kind as usize].total
    }
}
