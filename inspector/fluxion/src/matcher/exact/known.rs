//! What is known of vertices without visiting them, and what one walk has skipped because of that.

use std::collections::BTreeMap;

use super::collector::{Collector, Taken};
use crate::graph::VertexId;
use crate::matcher::memo::{Memo, Plan};

/// A vertex that can be used.
pub(super) struct Visited {
    pub available: u64,
    pub score: i64,
    pub exclusive: bool,
}

/// A list with which nodes are visited.
pub(super) struct Visit {
    pub plan: Plan,
    /// Number of the context in the memo.
    pub context: u32,
}

/// What one walk has skipped so far.
#[derive(Default)]
pub(super) struct Skipped {
    pub visits: Vec<Visit>,
    /// Nodes that were skipped, with the position of the visit.
    pub nodes: BTreeMap<VertexId, usize>,
    /// What was chosen at vertices above nodes, to be marked when they are chosen themselves.
    pub choices: BTreeMap<VertexId, (Vec<Taken>, bool)>,
    /// What was found below nodes that were visited again.
    pub again: BTreeMap<VertexId, Collector>,
}

/// What is known of a vertex without visiting it.
pub(super) enum Known {
    /// Nothing: it has to be visited.
    Nothing,
    /// It can't be used.
    Unusable,
    /// It can be used, and what is below it was offered to its parent.
    Usable(Visited),
}

/// The memo, and what was skipped because of it.
pub(super) struct Shortcut<'m> {
    pub memo: &'m mut Memo,
    pub skipped: Skipped,
    /// Whether skipping is suspended, because a node is being visited for real.
    pub suspended: bool,
}

impl<'m> Shortcut<'m> {
    pub(super) fn new(memo: &'m mut Memo) -> Self {
        Self { memo, skipped: Skipped::default(), suspended: false }
    }

    pub(super) fn is_active(&self) -> bool {
        !self.suspended
    }
}
