//! Reasons to turn back at a vertex before looking below it.

use super::walk::{Purpose, Walk};
use crate::errno::Errno;
use crate::graph::{Status, VertexId};
use crate::matcher::request::{Entry, EntryId, amount_of};
use crate::matcher::why::Reason;

impl Walk<'_, '_, '_> {
    /// Whether it makes sense to look at and below a vertex; answers how much of it is free, or why not.
    pub(super) fn prune(&self, id: VertexId, exclusive: bool, list: &[EntryId]) -> Result<u64, Reason> {
        let ask = &self.ask;
        let vertex = ask.graph.vertex(id);
        if vertex.status == Status::Down && ask.purpose != Purpose::Satisfiability {
            return Err(Reason::Down);
        }
        if (vertex.type_id == ask.node_type || vertex.type_id == ask.storage_node_type)
            && let Some(constraint) = &ask.request.constraint
            && !constraint.matches(ask.graph, id)
        {
            return Err(Reason::Constraint);
        }
        let free = match ask.allocations.min_free(ask.graph, id, ask.at, ask.duration) {
            Ok(0) | Err(Errno::Erange) => return Err(Reason::Held),
            Ok(free) => free,
            Err(_) => return Err(Reason::Contradiction),
        };
        let mut verdict = Ok(());
        for entry in ask.request.list(list) {
            if entry.type_id == vertex.type_id {
                self.prune_exclusive(id, exclusive, entry)?;
            } else if !entry.is_slot {
                continue;
            }
            verdict = self.prune_aggregates(id, self.ask.at, entry);
            // With alternatives the last slot decides for all.
            if !(ask.flexible && entry.is_slot) {
                verdict?;
            }
        }
        verdict.map(|()| free)
    }

    /// Whether the allocations are known to leave too little at a vertex, so that a visit turns back there.
    #[inline]
    pub(super) fn is_ruled_out(&self, id: VertexId, list: &[EntryId]) -> bool {
        let ask = &self.ask;
        let window = (ask.at, ask.at.saturating_add(ask.duration));
        self.by_shorts && self.scratch.shorts.rule_out(ask.allocations, id, window, ask.request.list(list))
    }

    /// Notes when a visit to a vertex comes to nothing for the same reason, if that is clear.
    pub(super) fn note_short(&mut self, id: VertexId, reason: Reason, list: &[EntryId]) {
        let ask = &self.ask;
        let Some(account) = ask.allocations.get(id).filter(|_| self.by_shorts) else { return };
        let (of, wanted, planner) = match (reason, &account.aggregates) {
            (Reason::Held, _) => (None, 1, &account.plan),
            (Reason::Aggregate, Some(aggregates)) => {
                let at = ask.graph.vertex(id).type_id;
                let mut asking = ask.request.list(list).filter(|entry| entry.is_slot || entry.type_id == at);
                let lacking = asking.find_map(|entry| {
                    let mut planners = aggregates.planners();
                    planners.find_map(|(of, planner)| {
                        let wanted = amount_of(&entry.needs, of);
                        let free = planner.available_during(ask.at, ask.duration, wanted);
                        free.is_err().then_some((Some(of), wanted, planner))
                    })
                });
                let Some(lacking) = lacking else { return };
                lacking
            }
            _ => return,
        };
        self.scratch.shorts.note((ask.graph, ask.allocations), id, of, wanted, (planner, ask.at));
    }

    fn prune_exclusive(&self, id: VertexId, exclusive: bool, entry: &Entry) -> Result<(), Reason> {
        if exclusive && entry.exclusive == Some(false) {
            return Err(Reason::Contradiction);
        }
        if !exclusive && entry.exclusive != Some(true) {
            return Ok(());
        }
        let ask = &self.ask;
        let Some(account) = ask.allocations.get(id) else { return Ok(()) };
        // A job that should have ended by now may still be there.
        let overrun = ask.at == ask.now && matches!(ask.purpose, Purpose::Allocate | Purpose::Without);
        if overrun && account.is_allocated() {
            return Err(Reason::Exclusive);
        }
        if account.is_visited(ask.at, ask.at.saturating_add(ask.duration)) {
            Err(Reason::Exclusive)
        } else {
            Ok(())
        }
    }

    pub(super) fn prune_aggregates(&self, id: VertexId, at: i64, entry: &Entry) -> Result<(), Reason> {
        if entry.needs.is_empty() {
            return Ok(());
        }
        let Some(aggregates) = self.ask.allocations.aggregates(id) else { return Ok(()) };
        let needs = |of| amount_of(&entry.needs, of);
        aggregates.available_during(at, self.ask.duration, needs).map_err(|errno| match errno {
            Errno::Erange => Reason::TooSmall,
            _ => Reason::Aggregate,
        })
    }
}
