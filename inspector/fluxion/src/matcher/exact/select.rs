//! The walk itself: what happens at one vertex, and what is made of it at the root.

use smallvec::smallvec;

use super::collector::{By, Candidates, Collector, Group, Ranking, Taken, runs};
use super::known::{Known, Shortcut, Visited};
use super::walk::{VisitKind, Walk};
use crate::errno::Errno;
use crate::graph::{EdgeId, Graph, TypeId, VertexId};
use crate::matcher::filter::MAX_DEPTH;
use crate::matcher::policy::{Order, Scoring};
use crate::matcher::request::EntryId;
use crate::matcher::scratch::Mark;

impl<'a> Walk<'a, '_, '_> {
    /// Looks for what one variant of the request needs and marks it. Answers whether it was found;
    /// otherwise the error number is in the scratch space.
    pub(crate) fn run(&mut self, top: &'a [EntryId]) -> bool {
        let Some(root) = self.ask.graph.root(self.ask.dominant) else {
            self.scratch.errno = Errno::Einval;
            return false;
        };
        self.scratch.start(self.ask.graph);
        let exclusive = self.is_exclusive(root, top);
        if let Some(answer) = self.run_by_index(root, top, exclusive) {
            return answer;
        }
        let mut found = Collector::default();
        let Some(visited) = self.visit(root, top, true, exclusive, &mut found, 0) else { return false };
        let root_type = self.ask.graph.vertex(root).type_id;
        let group = Group { score: visited.score, count: visited.available, taken: smallvec![] };
        found.add(root_type, group);
        let needs = self.finish(root_type, top, visited.available, &mut found);
        self.scratch.root_mark =
            Mark { round: self.scratch.round, needs: needs.unwrap_or(1), exclusive: visited.exclusive };
        if needs.is_none() {
            self.scratch.errno = Errno::Enodev;
            return false;
        }
        if self.shortcut.is_some() {
            self.mark_kept(root, &found);
        } else {
            self.mark_chosen(root, &found, false, true);
        }
        true
    }

    /// The choice at the top; answers how much of the root is needed.
    fn finish(
        &mut self,
        root_type: TypeId,
        top: &[EntryId],
        available: u64,
        found: &mut Collector,
    ) -> Option<u64> {
        let chosen = self.choose_at_top(top, found);
        self.boost = 0;
        if !chosen {
            self.note_missing(top, found);
            return None;
        }
        let request = self.ask.request;
        let mut needs = 1;
        for entry in request.list(top).filter(|entry| entry.type_id == root_type) {
            needs = entry.count.take(available);
            if needs == 0 {
                return None;
            }
        }
        if self.ask.auxiliary && self.ask.quirks.auxiliary_refuses {
            return None;
        }
        found.lists().all(|(_, list)| list.qualified > 0).then_some(needs)
    }

    fn choose_at_top(&mut self, top: &[EntryId], found: &mut Collector) -> bool {
        let mut points = Vec::new();
        for entry in self.ask.request.list(top) {
            let count = entry.count.take(found.qualified(entry.type_id));
            let by = match self.ask.policy.scoring {
                Scoring::Id(order) => By::Score(order),
                Scoring::Variation => By::Score(Order::Ascending),
                Scoring::Locality => {
                    let list = found.get(entry.type_id);
                    points.extend(list.into_iter().flat_map(|list| &list.groups).map(|group| group.score));
                    By::Runs(runs(points.clone()))
                }
            };
            let once = self.is_asked_once(top, entry.type_id);
            if count == 0 || !found.choose(entry.type_id, count, &self.ranking(by), once) {
                return false;
            }
        }
        true
    }

    pub(super) fn ranking(&self, by: By) -> Ranking {
        Ranking { by, introsort: self.ask.quirks.introsort_ties }
    }

    /// Marks what was chosen among the candidates below `top`, and at the root (or without the quirk
    /// everywhere) the way from `top` to it.
    fn mark_chosen(&mut self, top: VertexId, found: &Collector, exclusive: bool, at_root: bool) {
        for &Taken { edge, needs, exclusive, .. } in found.chosen() {
            self.scratch.mark(self.ask.graph, edge, needs, exclusive);
        }
        let chosen: Vec<Taken> = found.chosen().copied().collect();
        self.mark_ways(top, &chosen, found, exclusive, at_root);
    }

    /// Marks the ways from `top` to what was chosen.
    pub(super) fn mark_ways(
        &mut self,
        top: VertexId,
        chosen: &[Taken],
        found: &Collector,
        exclusive: bool,
        at_root: bool,
    ) {
        let quirk = self.ask.quirks.unreachable_slots;
        if quirk && !at_root {
            return;
        }
        let graph = self.ask.graph;
        for taken in chosen {
            let mut at = graph.edge(taken.edge).source;
            while at != top {
                let Some(up) = self.scratch.way_to(at) else { break };
                if self.scratch.is_marked(up) {
                    break;
                }
                let vertex = graph.vertex(at);
                let open = found.get(vertex.type_id).is_some_and(Candidates::is_open);
                if open || !quirk {
                    self.scratch.mark(graph, up, vertex.size, exclusive);
                }
                at = graph.edge(up).source;
            }
        }
    }

    pub(super) fn is_exclusive(&self, id: VertexId, list: &[EntryId]) -> bool {
        let of = self.ask.graph.vertex(id).type_id;
        self.ask.request.list(list).any(|entry| entry.type_id == of && entry.exclusive == Some(true))
    }

    /// Visits a vertex for the entries of `list`. `pristine` as long as nothing above was asked for.
    /// On success its own candidates may have been added to `parent`; otherwise the error number says
    /// why not.
    pub(super) fn visit(
        &mut self,
        id: VertexId,
        list: &[EntryId],
        pristine: bool,
        exclusive_above: bool,
        parent: &mut Collector,
        depth: usize,
    ) -> Option<Visited> {
        if self.shortcut.is_some() {
            match self.visit_known(id, list, pristine, exclusive_above, parent, depth) {
                Known::Nothing => {}
                Known::Unusable => return None,
                Known::Usable(visited) => return Some(visited),
            }
        }
        let graph = self.ask.graph;
        let vertex = graph.vertex(id);
        let request = self.ask.request;
        self.scratch.preorder += 1;
        if self.is_ruled_out(id, list) {
            self.scratch.errno = Errno::Ebusy;
            return None;
        }
        let exclusive = exclusive_above || self.is_exclusive(id, list);
        let kind = if self.ask.flexible {
            self.kind_flexible(id, list, pristine)
        } else {
            self.kind_simple(id, list, pristine)
        };
        if matches!(kind, VisitKind::None) || depth > MAX_DEPTH {
            self.scratch.errno = Errno::Ebusy;
            return None;
        }
        let free = self.prune(id, exclusive, list);
        if let Err(reason) = free {
            self.note_short(id, reason, list);
            if self.turn_back(id, reason, list) {
                return None;
            }
        }
        let centric = self.ask.policy.node_centric && vertex.type_id == self.ask.node_type;
        if centric {
            if vertex.id < -1 {
                return None;
            }
            self.last_factor = self.factor.unwrap_or_else(|| node_factor(vertex.id, vertex.uniq_id));
            self.boost = self.boost.saturating_add(self.last_factor);
        }
        self.scratch.see(id);
        let mut found = Collector::default();
        match kind {
            VisitKind::Slot(slot) => self.build_slots(id, slot, &mut found, depth),
            VisitKind::Slots(slots) => self.build_alternative_slots(id, slots, &mut found, depth),
            VisitKind::Resource(next) => {
                self.explore(id, next, false, exclusive, &mut found, 1, depth);
            }
            _ => {
                self.explore(id, list, true, exclusive, &mut found, 1, depth);
            }
        }
        let free = free.or_else(|_| self.ask.allocations.min_free(graph, id, self.ask.at, self.ask.duration));
        let available = match free {
            Ok(available) if available > 0 => available,
            Ok(_) => {
                self.scratch.errno = Errno::Ebusy;
                return None;
            }
            Err(errno) => {
                self.scratch.errno = errno;
                return None;
            }
        };
        if centric {
            self.boost = self.boost.saturating_sub(self.last_factor);
        }
        if !self.choose_below(id, list, &mut found) {
            self.note_shortage(id, list, &found);
            self.scratch.errno = Errno::Ebusy;
            return None;
        }
        let score = self.score(id);
        if score > 0 {
            if found.has_choice() {
                self.choices += 1;
                if self.shortcut.as_ref().is_some_and(Shortcut::is_active) {
                    self.keep_choice(id, &found, exclusive);
                } else {
                    self.mark_chosen(id, &found, exclusive, false);
                }
            } else {
                parent.merge(found);
            }
        }
        for entry in request.list(list).filter(|entry| entry.type_id == vertex.type_id) {
            if let Some(label) = entry.label.as_deref().filter(|label| !label.is_empty()) {
                self.scratch.set_label(id, label);
            }
        }
        self.scratch.postorder += 1;
        Some(Visited { available, score, exclusive })
    }

    /// Chooses below a vertex for every entry it stands for.
    fn choose_below(&mut self, id: VertexId, list: &[EntryId], found: &mut Collector) -> bool {
        let of = self.ask.graph.vertex(id).type_id;
        let order = match self.ask.policy.scoring {
            Scoring::Id(order) => order,
            Scoring::Locality => Order::Descending,
            Scoring::Variation => Order::Ascending,
        };
        let ranking = self.ranking(By::Score(order));
        let request = self.ask.request;
        let several = request.list(list).filter(|entry| entry.type_id == of).count() > 1;
        request.list(list).filter(|entry| entry.type_id == of).all(|entry| {
            request.list(&entry.with).all(|child| {
                let count = child.count.take(found.qualified(child.type_id));
                let once = !several && self.is_asked_once(&entry.with, child.type_id);
                count > 0 && found.choose(child.type_id, count, &ranking, once)
            })
        })
    }

    /// Whether only one entry of a list asks for a type.
    pub(super) fn is_asked_once(&self, list: &[EntryId], of: TypeId) -> bool {
        self.ask.request.list(list).filter(|entry| entry.type_id == of).count() == 1
    }

    pub(super) fn score(&self, id: VertexId) -> i64 {
        let vertex = self.ask.graph.vertex(id);
        match self.ask.policy.scoring {
            Scoring::Id(_) => vertex.id.saturating_add(2).saturating_add(self.boost),
            Scoring::Locality => vertex.id.saturating_add(2),
            Scoring::Variation => 1 + performance_class(self.ask.graph, id),
        }
    }

    pub(super) fn kind_simple(&mut self, id: VertexId, list: &[EntryId], pristine: bool) -> VisitKind<'a> {
        let request = self.ask.request;
        let of = self.ask.graph.vertex(id).type_id;
        let (mut matched, mut direct, mut slot) = (None, false, None);
        for &at in list {
            let entry = request.entry(at);
            if entry.type_id == of {
                if matched.is_some() || direct {
                    return VisitKind::None;
                }
                matched = Some(entry);
                slot = entry.with.iter().copied().rfind(|&child| request.entry(child).is_slot);
            } else if entry.is_slot {
                if matched.is_some() || direct {
                    return VisitKind::None;
                }
                direct = true;
                slot = Some(at);
            }
        }
        match (slot, matched) {
            (Some(slot), _) if self.has_children_for(id, &request.entry(slot).with) => VisitKind::Slot(slot),
            (_, Some(entry)) => VisitKind::Resource(&entry.with),
            _ if pristine => VisitKind::Pass,
            _ => VisitKind::None,
        }
    }

    /// Whether there is an edge, of any subsystem, to a vertex of each type in a list.
    pub(super) fn has_children_for(&mut self, id: VertexId, list: &[EntryId]) -> bool {
        let graph = self.ask.graph;
        if let Some(wide) = self.scratch.wide(graph, id) {
            return self.ask.request.list(list).all(|entry| wide.has(entry.type_id));
        }
        self.ask.request.list(list).all(|entry| {
            let edges = &graph.vertex(id).out_edges;
            edges.iter().any(|&edge| graph.vertex(graph.edge(edge).target).type_id == entry.type_id)
        })
    }

    /// Adds a child that can be used to the candidates of its parent.
    pub(super) fn add_child(&self, edge: EdgeId, visited: &Visited, found: &mut Collector) {
        let graph = self.ask.graph;
        let of = graph.vertex(graph.edge(edge).target).type_id;
        let taken = Taken { edge, needs: visited.available, exclusive: visited.exclusive, below: None };
        let group = Group { score: visited.score, count: visited.available, taken: smallvec![taken] };
        found.add(of, group);
    }
}

pub(super) fn node_factor(id: i64, uniq_id: i64) -> i64 {
    let spread = uniq_id.rem_euclid(10_000).saturating_sub(1).abs();
    id.saturating_add(2).saturating_mul(10_000).saturating_add(spread)
}

/// The performance class of a vertex: 0 (best) to 9999, which is also that of vertices without one.
fn performance_class(graph: &Graph, id: VertexId) -> i64 {
    const WORST: i64 = 9999;
    let key = graph.find_text("perf_class");
    let Some(text) = key.and_then(|key| graph.property(id, key)) else { return WORST };
    let text = text.trim_start();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    let prefix = text.len() - digits.len() + count;
    text[..prefix].parse().ok().filter(|class| (0..=WORST).contains(class)).unwrap_or(WORST)
}
