//! Skipping what is known already: visits to nodes that came to something before.
//!
//! It changes nothing of what a walk finds, nor of its counters and error numbers; it is left out where
//! a visit does more than find (labels), or where its result depends on what was visited before.

use smallvec::smallvec;

use super::collector::{Collector, Group, Taken};
use super::known::{Known, Visit, Visited};
use super::walk::{Purpose, Walk};
use crate::errno::Errno;
use crate::graph::{EdgeId, VertexId};
use crate::matcher::memo::{Offered, Outcome, Plan};
use crate::matcher::request::EntryId;

impl Walk<'_, '_, '_> {
    /// Visits a node by what is known of it, or finds that out.
    pub(super) fn visit_known(
        &mut self,
        id: VertexId,
        list: &[EntryId],
        pristine: bool,
        exclusive_above: bool,
        parent: &mut Collector,
        depth: usize,
    ) -> Known {
        let ask = self.ask;
        let active = self.shortcut.as_mut().filter(|shortcut| !shortcut.suspended);
        let Some(shortcut) = active else { return Known::Nothing };
        let Some(node) = shortcut.memo.node(id) else { return Known::Nothing };
        let visit = shortcut.skipped.visits.iter().rposition(|visit| {
            let plan = &visit.plan;
            plan.pristine == pristine && plan.exclusive_above == exclusive_above && plan.list == list
        });
        let visit = visit.unwrap_or_else(|| {
            let ever = ask.purpose == Purpose::Satisfiability;
            let overrun = ask.at == ask.now && matches!(ask.purpose, Purpose::Allocate | Purpose::Without);
            let flags = [pristine, exclusive_above, ever, overrun, false];
            let context = shortcut.memo.context(ask.request, list, flags);
            let plan = Plan { list: list.to_vec(), pristine, exclusive_above, depth };
            shortcut.skipped.visits.push(Visit { plan, context });
            shortcut.skipped.visits.len() - 1
        });
        let context = shortcut.skipped.visits[visit].context;
        if shortcut.memo.recall(ask.allocations, context, node, (ask.at, ask.duration)).is_none() {
            shortcut.suspended = true;
            let outcome = self.find_out(id, visit);
            let Some(shortcut) = &mut self.shortcut else { return Known::Nothing };
            shortcut.suspended = false;
            shortcut.memo.note(ask.allocations, context, node, (ask.at, ask.duration), outcome);
        }
        let Some(shortcut) = &mut self.shortcut else { return Known::Nothing };
        let outcome = shortcut.memo.recall(ask.allocations, context, node, (ask.at, ask.duration));
        let Some(outcome) = outcome else { return Known::Nothing };
        self.scratch.preorder += u64::from(outcome.preorder);
        self.scratch.postorder += u64::from(outcome.postorder);
        if let Some(errno) = outcome.errno {
            self.scratch.errno = errno;
        }
        let Some((available, score, exclusive)) = outcome.usable else { return Known::Unusable };
        self.scratch.see(id);
        let way = self.scratch.way_to(id).unwrap_or(EdgeId(0));
        for offered in &outcome.offered {
            for (at, &(score, count)) in (0_u32..).zip(&offered.groups) {
                let below = Some((offered.type_id, at));
                let taken = Taken { edge: way, exclusive: false, needs: count, below };
                parent.add(offered.type_id, Group { score, count, taken: smallvec![taken] });
            }
        }
        shortcut.skipped.nodes.insert(id, visit);
        Known::Usable(Visited { available, score, exclusive })
    }

    /// Visits a node for real, leaving counters and error number as they were.
    fn visit_really(&mut self, id: VertexId, visit: usize, found: &mut Collector) -> Option<Visited> {
        let plan = self.shortcut.as_ref()?.skipped.visits[visit].plan.clone();
        self.visit(id, &plan.list, plan.pristine, plan.exclusive_above, found, plan.depth)
    }

    /// What a visit comes to, leaving counters and error number as they were.
    pub(super) fn find_out(&mut self, id: VertexId, visit: usize) -> (Outcome, Option<Collector>) {
        let before = (self.scratch.preorder, self.scratch.postorder, self.scratch.errno);
        let choices = self.choices;
        self.scratch.errno = Errno::Unset;
        let mut found = Collector::default();
        let visited = self.visit_really(id, visit, &mut found);
        let errno = Some(self.scratch.errno).filter(|errno| *errno != Errno::Unset);
        let grown = |now: u64, then: u64| u32::try_from(now - then).unwrap_or(u32::MAX);
        let (preorder, postorder) =
            (grown(self.scratch.preorder, before.0), grown(self.scratch.postorder, before.1));
        (self.scratch.preorder, self.scratch.postorder, self.scratch.errno) = before;
        let offered = found.lists().map(|(type_id, list)| Offered {
            type_id,
            groups: list.groups.iter().map(|group| (group.score, group.count)).collect(),
        });
        let usable = visited.map(|visited| (visited.available, visited.score, visited.exclusive));
        let outcome = Outcome { usable, errno, preorder, postorder, offered: offered.collect() };
        let only_found = usable.is_some() && self.choices == choices && !outcome.offered.is_empty();
        (outcome, only_found.then_some(found))
    }

    /// Keeps what was chosen at a vertex until it is known whether the vertex is.
    pub(super) fn keep_choice(&mut self, id: VertexId, found: &Collector, exclusive: bool) {
        if let Some(shortcut) = &mut self.shortcut {
            let chosen = found.chosen().copied().collect();
            shortcut.skipped.choices.insert(id, (chosen, exclusive));
        }
    }

    /// Marks what was chosen at the root, and all that was chosen below because of that.
    pub(super) fn mark_kept(&mut self, root: VertexId, found: &Collector) {
        self.mark_below(root);
        let chosen: Vec<Taken> = found.chosen().copied().collect();
        let chosen = self.mark_taken(chosen);
        self.mark_ways(root, &chosen, found, false, true);
    }

    /// Marks what is taken and what was chosen below it; answers it with everything known only in
    /// summary resolved.
    fn mark_taken(&mut self, taken: Vec<Taken>) -> Vec<Taken> {
        let mut real = Vec::with_capacity(taken.len());
        for taken in taken {
            let target = self.ask.graph.edge(taken.edge).target;
            if let Some((of, at)) = taken.below {
                self.visit_again(target);
                let again = self.shortcut.as_ref().and_then(|shortcut| shortcut.skipped.again.get(&target));
                let group = again.and_then(|found| found.get(of)?.groups.get(at as usize));
                let inner = group.into_iter().flat_map(|group| &group.taken);
                // As part of a slot it is taken as the slot says.
                let needs = |inner: &Taken| if taken.exclusive { taken.needs } else { inner.needs };
                real.extend(inner.map(|inner| Taken {
                    exclusive: inner.exclusive || taken.exclusive,
                    needs: needs(inner),
                    ..*inner
                }));
            } else {
                real.push(taken);
            }
        }
        for taken in &real {
            self.scratch.mark(self.ask.graph, taken.edge, taken.needs, taken.exclusive);
            let target = self.ask.graph.edge(taken.edge).target;
            self.mark_below(target);
        }
        real
    }

    fn mark_below(&mut self, id: VertexId) {
        let Some(shortcut) = &mut self.shortcut else { return };
        if shortcut.skipped.nodes.contains_key(&id) {
            self.visit_again(id);
        } else if let Some((chosen, exclusive)) = shortcut.skipped.choices.remove(&id) {
            let chosen = self.mark_taken(chosen);
            self.mark_ways(id, &chosen, &Collector::default(), exclusive, false);
        }
    }

    /// Visits a node that was skipped, so that what was chosen below it is marked.
    fn visit_again(&mut self, id: VertexId) {
        let Some(shortcut) = &mut self.shortcut else { return };
        let skipped = &shortcut.skipped;
        let Some(&visit) = skipped.nodes.get(&id).filter(|_| !skipped.again.contains_key(&id)) else {
            return;
        };
        let context = skipped.visits[visit].context;
        let window = (self.ask.at, self.ask.duration);
        let known = shortcut.memo.node(id);
        let known =
            known.and_then(|node| shortcut.memo.take_found(self.ask.allocations, context, node, window));
        if let Some(found) = known {
            shortcut.skipped.again.insert(id, found);
            return;
        }
        shortcut.suspended = true;
        let before = (self.scratch.preorder, self.scratch.postorder, self.scratch.errno);
        let mut found = Collector::default();
        // It may have been looked at once already, to find out what comes of it.
        self.scratch.start_walk(self.ask.graph);
        self.visit_really(id, visit, &mut found);
        (self.scratch.preorder, self.scratch.postorder, self.scratch.errno) = before;
        if let Some(shortcut) = &mut self.shortcut {
            shortcut.suspended = false;
            shortcut.skipped.again.insert(id, found);
        }
    }
}
