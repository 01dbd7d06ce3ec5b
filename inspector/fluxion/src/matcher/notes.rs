//! What a walk noted when somebody asked why.

use std::collections::{BTreeMap, BTreeSet};

use super::why::{Reason, Shortage};
use crate::graph::{Graph, Subsystem, TypeId, VertexId};

/// Why a walk turned back at a vertex.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    pub reason: Reason,
    /// When the reason is gone as far as the allocations say; none when it does not go by itself.
    pub until: Option<i64>,
    /// The sums say so, not what was found below.
    pub summed: bool,
}

/// What is missing where a choice failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missing {
    pub type_id: TypeId,
    pub wanted: u64,
    pub found: u64,
}

/// What was noted on one walk.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    /// The first reason at each vertex counts.
    pub turned_back: BTreeMap<VertexId, Note>,
    /// Of the topmost choice that failed.
    pub missing: Vec<Missing>,
}

impl Notes {
    /// What is missing, with the names of types.
    pub(super) fn missing_by_name(&self, graph: &Graph) -> Vec<Shortage> {
        let known = |missing: &&Missing| missing.type_id.index() < graph.type_count();
        let named = self.missing.iter().filter(known).map(|missing| Shortage {
            type_name: graph.type_name(missing.type_id).to_owned(),
            wanted: missing.wanted,
            found: missing.found,
        });
        named.collect()
    }

    /// All notes in order of the graph. A vertex with too little below is only too small when nothing
    /// below it is out for another reason.
    pub(super) fn judged(&self, graph: &Graph, subsystem: Subsystem) -> Vec<(VertexId, Note)> {
        let mut above_others: BTreeSet<VertexId> = BTreeSet::new();
        for (&id, note) in &self.turned_back {
            if note.reason == Reason::TooSmall {
                continue;
            }
            let mut open = vec![id];
            while let Some(id) = open.pop() {
                let parents = graph.parents(id, subsystem).map(|(_, parent)| parent);
                open.extend(parents.filter(|&parent| above_others.insert(parent)));
            }
        }
        let judge = |(&id, &note): (&VertexId, &Note)| {
            let small = note.reason == Reason::TooSmall && !note.summed;
            let reason = if small && above_others.contains(&id) { Reason::Below } else { note.reason };
            (id, Note { reason, ..note })
        };
        self.turned_back.iter().map(judge).collect()
    }
}
