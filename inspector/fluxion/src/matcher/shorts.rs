//! When there is known to be too little at a vertex, so that a visit can end before it looks.
//!
//! Most times that are tried for a job, and most nodes that are tried at one of them, are busy. A walk that
//! turns back because of the allocations notes the stretch of time over which they leave too little; as long as
//! they do not change, it turns back at once for every time that meets the stretch. What it does then is
//! what it did before, counters and error numbers included.
//!
//! One stretch is kept for the topmost vertex of each unit, together with all others in little room: what
//! a walk over a full graph needs to read stays in the caches of the processor.

use std::sync::Arc;

use smallvec::SmallVec;

use super::allocations::Allocations;
use super::request::{Entry, amount_of};
use super::units::NONE;
use crate::graph::{Graph, TypeId, VertexId};
use crate::planner::Planner;

/// How many stretches are kept of one vertex.
const KEPT: usize = 32;

/// What is known of one unit.
#[derive(Clone, Debug)]
struct Known {
    /// Its topmost vertex, and the type of that.
    vertex: VertexId,
    type_id: TypeId,
    /// State of the allocations that this was read from.
    stamp: u32,
    /// Of which type below the vertex there is too little; none for the vertex itself.
    of: Option<TypeId>,
    /// Less than so much is free.
    wanted: u64,
    /// When, from start to end, in order.
    stretches: SmallVec<[(i64, i64); 2]>,
}

/// What is known of all units.
#[derive(Clone, Debug, Default)]
pub(super) struct Shorts {
    /// Per vertex: its unit; empty when nothing may be remembered.
    units: Arc<[u32]>,
    /// Per unit; of most of them nothing is known.
    all: Vec<Known>,
}

impl Shorts {
    /// Nothing is known yet of so many units.
    pub(super) fn new(units: Arc<[u32]>, count: usize) -> Self {
        let unknown = Known {
            vertex: VertexId(u32::MAX),
            type_id: TypeId(u32::MAX),
            stamp: NONE,
            of: None,
            wanted: 0,
            stretches: SmallVec::new(),
        };
        Self { units, all: vec![unknown; count] }
    }

    /// Whether a visit to a vertex for entries of a request is known to come to nothing: not enough is free
    /// throughout `start` up to `end`.
    #[inline]
    pub(super) fn rule_out<'a>(
        &self,
        allocations: &Allocations,
        id: VertexId,
        (start, end): (i64, i64),
        entries: impl Iterator<Item = &'a Entry>,
    ) -> bool {
        let Some(&unit) = self.units.get(id.index()) else { return false };
        let Some(known) = self.all.get(unit as usize) else { return false };
        if known.vertex != id || known.stamp != allocations.stamp(unit) {
            return false;
        }
        let at = known.stretches.partition_point(|&(_, until)| until <= start);
        if known.stretches.get(at).is_none_or(|&(from, _)| from >= end) {
            return false;
        }
        let Some(of) = known.of else { return true };
        let mut lacking = false;
        for entry in entries.filter(|entry| entry.is_slot || entry.type_id == known.type_id) {
            // A request that contradicts itself ends with another error number.
            if entry.exclusive == Some(false) {
                return false;
            }
            lacking |= amount_of(&entry.needs, of) >= known.wanted;
        }
        lacking
    }

    /// Notes that less than so much of a vertex (or of a type below it) is free at some time of a stretch,
    /// and at which other times from then on.
    pub(super) fn note(
        &mut self,
        (graph, allocations): (&Graph, &Allocations),
        id: VertexId,
        of: Option<TypeId>,
        wanted: u64,
        (planner, from): (&Planner, i64),
    ) {
        let Some(&unit) = self.units.get(id.index()) else { return };
        if let Some(known) = self.all.get_mut(unit as usize) {
            known.vertex = id;
            known.type_id = graph.vertex(id).type_id;
            known.stamp = allocations.stamp(unit);
            (known.of, known.wanted) = (of, wanted);
            known.stretches.clear();
            known.stretches.extend(planner.shorts(from, wanted).take(KEPT));
        }
    }
}
