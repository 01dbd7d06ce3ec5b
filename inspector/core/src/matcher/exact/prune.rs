//! Reasons to turn back at a vertex before looking below it.

use super::select::{Purpose, Walk};
use crate::errno::Errno;
use crate::graph::{Status, VertexId};
use crate::matcher::request::{Entry, EntryId, amount_of};

impl Walk<'_, '_, '_> {
    /// Whether it makes sense to look at and below a vertex; the error says why not.
    pub(super) fn prune(&self, id: VertexId, exclusive: bool, list: &[EntryId]) -> Result<(), Errno> {
        let ask = &self.ask;
        let vertex = ask.graph.vertex(id);
        if vertex.status == Status::Down && ask.purpose != Purpose::Satisfiability {
            return Err(Errno::Ebusy);
        }
        if (vertex.type_id == ask.node_type || vertex.type_id == ask.storage_node_type)
            && let Some(constraint) = &ask.request.constraint
            && !constraint.matches(ask.graph, id)
        {
            return Err(Errno::Ebusy);
        }
        match ask.books.min_free(ask.graph, id, ask.at, ask.duration) {
            Ok(0) | Err(Errno::Erange) => return Err(Errno::Ebusy),
            Ok(_) => {}
            Err(errno) => return Err(errno),
        }
        let mut verdict = Ok(());
        for entry in ask.request.list(list) {
            if entry.type_id == vertex.type_id {
                self.prune_exclusive(id, exclusive, entry)?;
            } else if !entry.is_slot {
                continue;
            }
            verdict = self.prune_aggregates(id, entry);
            // With alternatives the last slot decides for all.
            if !(ask.flexible && entry.is_slot) {
                verdict?;
            }
        }
        verdict
    }

    fn prune_exclusive(&self, id: VertexId, exclusive: bool, entry: &Entry) -> Result<(), Errno> {
        if exclusive && entry.exclusive == Some(false) {
            return Err(Errno::Einval);
        }
        if !exclusive && entry.exclusive != Some(true) {
            return Ok(());
        }
        let ask = &self.ask;
        let Some(account) = ask.books.get(id) else { return Ok(()) };
        // A job that should have ended by now may still be there.
        let overrun = ask.at == ask.now && matches!(ask.purpose, Purpose::Allocate | Purpose::Without);
        if overrun && account.is_allocated() {
            return Err(Errno::Ebusy);
        }
        if account.is_visited(ask.at, ask.at.saturating_add(ask.duration)) {
            Err(Errno::Ebusy)
        } else {
            Ok(())
        }
    }

    fn prune_aggregates(&self, id: VertexId, entry: &Entry) -> Result<(), Errno> {
        if entry.needs.is_empty() {
            return Ok(());
        }
        let Some(aggregates) = self.ask.books.aggregates(id) else { return Ok(()) };
        let needs = |of| amount_of(&entry.needs, of);
        aggregates.available_during(self.ask.at, self.ask.duration, needs).map_err(|_| Errno::Ebusy)
    }
}
