//! The flexible traverser: several slots in one list are alternatives, of which as many as possible are
//! made in any mixture.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::collector::Collector;
use super::slots::form;
use super::walk::{VisitKind, Walk};
use crate::graph::{TypeId, VertexId};
use crate::matcher::request::EntryId;

/// How many different remainders are looked at when mixing alternatives; beyond, the first alternative
/// that fits is taken.
const MAX_STATES: usize = 50_000;

impl<'a> Walk<'a, '_, '_> {
    pub(super) fn kind_flexible<'r>(
        &mut self,
        id: VertexId,
        list: &'r [EntryId],
        pristine: bool,
    ) -> VisitKind<'r>
    where
        'a: 'r,
    {
        let request = self.ask.request;
        let of = self.ask.graph.vertex(id).type_id;
        let (mut matched, mut slots) = (None, None);
        let mut direct = false;
        for &at in list {
            let entry = request.entry(at);
            if entry.type_id == of {
                if matched.is_some() || direct {
                    return VisitKind::None;
                }
                matched = Some(entry);
                if request.list(&entry.with).any(|child| child.is_slot) {
                    slots = Some(entry.with.as_slice());
                }
            } else if entry.is_slot {
                if matched.is_some() {
                    return VisitKind::None;
                }
                direct = true;
                slots = Some(list);
            }
        }
        match (slots, matched) {
            (Some(slots), _) => {
                if request.list(slots).any(|slot| self.has_children_for(id, &slot.with)) {
                    VisitKind::Slots(slots)
                } else if pristine {
                    VisitKind::Pass
                } else {
                    VisitKind::None
                }
            }
            (None, Some(entry)) => VisitKind::Resource(&entry.with),
            _ if pristine => VisitKind::Pass,
            _ => VisitKind::None,
        }
    }

    /// Makes slots of whichever alternatives give the most.
    pub(super) fn build_alternative_slots(
        &mut self,
        id: VertexId,
        list: &[EntryId],
        found: &mut Collector,
        depth: usize,
    ) {
        let request = self.ask.request;
        let slots: Vec<EntryId> = list.iter().copied().filter(|&at| request.entry(at).is_slot).collect();
        let Some(&deciding) = slots.last() else { return };
        let limit = request.entry(deciding).count.largest();
        let union = self.union_of_shapes(&slots);
        let mut parts = Collector::default();
        if !self.explore(id, &union, false, true, &mut parts, limit, depth) {
            self.note_small(id);
            return;
        }
        self.order_parts(&mut parts);
        let shapes: Vec<Vec<EntryId>> = slots.iter().map(|&slot| request.entry(slot).with.clone()).collect();
        let wanted: Vec<Vec<(TypeId, u64)>> = shapes
            .iter()
            .map(|shape| {
                let take = |part: &EntryId| {
                    let part = request.entry(*part);
                    (part.type_id, part.count.take(parts.qualified(part.type_id)))
                };
                shape.iter().map(take).collect()
            })
            .collect();
        let plan = if let [only] = wanted.as_slice() {
            let fits = |&(of, count): &(TypeId, u64)| parts.qualified(of).checked_div(count).unwrap_or(0);
            let count = usize::try_from(only.iter().map(fits).min().unwrap_or(0).min(limit));
            // Each slot takes at least one candidate of every type: with fewer, they run out.
            let last = |&count: &usize| {
                only.iter().all(|&(of, _)| parts.get(of).is_some_and(|list| count <= list.groups.len()))
            };
            vec![0; count.ok().filter(last).unwrap_or(0)]
        } else {
            let types = union.iter().map(|&part| request.entry(part).type_id);
            self.mix(&shapes, types.map(|of| (of, parts.qualified(of))).collect())
        };
        if plan.is_empty() {
            self.note_small(id);
        }
        let mut cursors = SmallVec::new();
        let mut made = Vec::with_capacity(plan.len());
        for alternative in plan {
            let Some(group) = form(&parts, &wanted[alternative], &mut cursors) else { return };
            made.push(group);
        }
        let slot_type = request.entry(deciding).type_id;
        for group in made {
            found.add(slot_type, group);
        }
    }

    /// One entry per type that any of the slots is made of: the one that needs most.
    fn union_of_shapes(&self, slots: &[EntryId]) -> Vec<EntryId> {
        let request = self.ask.request;
        let mut union: BTreeMap<TypeId, EntryId> = BTreeMap::new();
        for &slot in slots {
            for &part in &request.entry(slot).with {
                let entry = request.entry(part);
                let best = union.entry(entry.type_id).or_insert(part);
                if entry.count.min > request.entry(*best).count.min {
                    *best = part;
                }
            }
        }
        union.into_values().collect()
    }

    /// Which alternative to make next, and so on, so that there are as many slots as possible.
    fn mix(&self, shapes: &[Vec<EntryId>], counts: Vec<(TypeId, u64)>) -> Vec<usize> {
        type Counts = Vec<(TypeId, u64)>;
        let request = self.ask.request;
        // What is left after making one alternative; none when it does not fit.
        let after = |counts: &Counts, shape: &[EntryId]| -> Option<Counts> {
            let mut left = counts.clone();
            for part in request.list(shape) {
                let (_, amount) = left.iter_mut().find(|(of, _)| *of == part.type_id)?;
                let take = part.count.take(*amount);
                if take == 0 {
                    return None;
                }
                *amount -= take;
            }
            (!shape.is_empty()).then_some(left)
        };
        let mut best: BTreeMap<Counts, (u64, Option<usize>)> = BTreeMap::new();
        let mut open = vec![counts.clone()];
        while let Some(state) = open.last().cloned() {
            if best.contains_key(&state) {
                open.pop();
                continue;
            }
            let ways: Vec<Option<Counts>> = shapes.iter().map(|shape| after(&state, shape)).collect();
            let full = best.len() + open.len() > MAX_STATES;
            let missing: Vec<&Counts> =
                ways.iter().flatten().filter(|way| !full && !best.contains_key(*way)).collect();
            if !missing.is_empty() {
                open.extend(missing.into_iter().cloned());
                continue;
            }
            let mut choice = (0, None);
            for (alternative, way) in ways.iter().enumerate() {
                let Some(way) = way else { continue };
                let made = 1 + best.get(way).map_or(0, |(made, _)| *made);
                if made > choice.0 {
                    choice = (made, Some(alternative));
                }
            }
            best.insert(state, choice);
            open.pop();
        }
        let mut plan = Vec::new();
        let mut state = counts;
        while let Some(&(_, Some(alternative))) = best.get(&state) {
            plan.push(alternative);
            match after(&state, &shapes[alternative]) {
                Some(left) => state = left,
                None => break,
            }
        }
        plan
    }
}
