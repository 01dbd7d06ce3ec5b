//! Sums of types that came to be summed up while jobs hold some of them: a graph that grows or shrinks may
//! get a leaf of a type that was none before.

use std::collections::{BTreeMap, BTreeSet};

use super::engine::Engine;
use super::job::JobId;
use crate::graph::{TypeId, VertexId};

/// Amounts per job and type.
type Held = BTreeMap<(JobId, TypeId), u64>;

impl Engine {
    /// Enters what jobs hold of some types into the sums above, which have nothing of these types yet.
    pub(super) fn enter_held(&mut self, types: &[TypeId]) {
        let mut below: BTreeMap<VertexId, Held> = BTreeMap::new();
        for &of in types {
            for &id in self.graph.of_type(of) {
                let Some(account) = self.allocations.get(id) else { continue };
                let above = self.above(id);
                for entry in account.entries() {
                    let span = entry.plan.and_then(|(_, span)| account.plan.span(span));
                    for &above in span.iter().flat_map(|_| &above) {
                        let held = below.entry(above).or_default().entry((entry.job, of)).or_default();
                        *held = held.saturating_add(span.map_or(0, |span| span.amount));
                    }
                }
            }
        }
        for id in (0..self.graph.vertex_count()).map(VertexId::from_index) {
            if self.allocations.aggregates(id).is_some() {
                self.enter_held_at(id, types, below.get(&id));
            }
        }
    }

    fn enter_held_at(&mut self, id: VertexId, types: &[TypeId], held: Option<&Held>) {
        let Some(account) = self.allocations.get_mut(id) else { return };
        let jobs: Vec<JobId> = account.entries().iter().map(|entry| entry.job).collect();
        for job in jobs {
            let Some(entry) = account.entry(job).copied() else { continue };
            let Some((start, end)) = entry.presence() else { continue };
            let amount = |of| held.and_then(|held| held.get(&(job, of))).copied().unwrap_or(0);
            let duration = end.saturating_sub(start);
            let Some(sums) = account.aggregates.as_deref_mut() else { return };
            let mut span = entry.aggregate;
            // Whatever a job holds fits: it was free when it was booked.
            if let Some(span) = span {
                let fits = types.iter().all(|&of| sums.extend(span, of, start, duration, amount(of)).is_ok());
                debug_assert!(fits, "a job holds more of a type than there is");
            } else if types.iter().any(|&of| amount(of) > 0) {
                span = sums.add(start, duration, amount).ok();
            }
            account.entry_mut(job).aggregate = span;
        }
    }

    /// Everything above a vertex in the dominant subsystem.
    fn above(&self, id: VertexId) -> BTreeSet<VertexId> {
        let mut all = BTreeSet::new();
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            let parents = self.graph.parents(id, self.dominant).map(|(_, parent)| parent);
            open.extend(parents.filter(|&parent| all.insert(parent)));
        }
        all
    }
}
