//! A walk that looks only at what changed since the last one: the sums of an [`Index`] are brought up to
//! date where the allocations are others than before, and say what a walk over everything would find.
//!
//! What it says is what the walk says, counters and error numbers included. It is left to the walk where
//! slots are made above nodes, and where candidates are not compared by their own scores alone.

use std::collections::BTreeSet;

use super::collector::{Collector, Taken, by_score};
use super::known::Visit;
use super::select::node_factor;
use super::walk::{Purpose, VisitKind, Walk};
use crate::errno::Errno;
use crate::graph::{Status, TypeId, VertexId};
use crate::matcher::filter::MAX_DEPTH;
use crate::matcher::memo::{Alike, Index, Memo, Outcome, Plan};
use crate::matcher::policy::{Order, Scoring};
use crate::matcher::request::EntryId;
use crate::matcher::scratch::Mark;
use crate::matcher::sums::{Own, Sum};
use crate::matcher::units::{NONE, UnitKind};

/// A stand-in for the factor of a node, to find out how often it is part of a score.
const PROBE: i64 = 1 << 20;

/// The index of one kind of request, taken out of the memo while a walk uses it.
pub(super) struct Sums {
    pub index: Box<Index>,
    /// Number of the context in the memo.
    pub context: u32,
    /// Visits of the walk, one per plan, start here.
    visits: usize,
    pub window: (i64, i64),
}

impl<'a> Walk<'a, '_, '_> {
    /// Looks for what is asked for by the sums; none when that has to be left to a walk.
    pub(super) fn run_by_index(
        &mut self,
        root: VertexId,
        top: &'a [EntryId],
        exclusive: bool,
    ) -> Option<bool> {
        self.order()?;
        let ask = self.ask;
        let shortcut = self.shortcut.as_mut()?;
        let ever = ask.purpose == Purpose::Satisfiability;
        let overrun = ask.at == ask.now && matches!(ask.purpose, Purpose::Allocate | Purpose::Without);
        let flags = [true, exclusive, ever, overrun, true];
        let context = shortcut.memo.context(ask.request, top, flags);
        let index = match shortcut.memo.take_index(context) {
            Some(index) => index,
            None => Box::new(self.plan(root, top, exclusive)),
        };
        let shortcut = self.shortcut.as_mut()?;
        let window = (ask.at, ask.duration);
        let mut sums = Sums { index, context, visits: shortcut.skipped.visits.len(), window };
        for plan in &sums.index.plans {
            shortcut.skipped.visits.push(Visit { plan: plan.clone(), context });
        }
        let answer = (!sums.index.plans.is_empty()).then(|| self.find_by_sums(root, top, &mut sums));
        self.shortcut.as_mut()?.memo.put_index(context, sums.index);
        answer
    }

    /// The order in which candidates are chosen by their scores, if that is what they are chosen by.
    pub(super) fn order(&self) -> Option<Order> {
        match self.ask.policy.scoring {
            Scoring::Id(order) => Some(order),
            Scoring::Variation => Some(Order::Ascending),
            Scoring::Locality => None,
        }
    }

    pub(super) fn key(&self, score: i64) -> i64 {
        by_score(self.order().unwrap_or(Order::Ascending), score)
    }

    /// An index without sums; without plans when it can't be used.
    fn plan(&mut self, root: VertexId, top: &'a [EntryId], exclusive: bool) -> Index {
        let units = self.shortcut.as_ref().map_or(0, |shortcut| shortcut.memo.units.len());
        let classes = self.shortcut.as_ref().map_or(0, |shortcut| shortcut.memo.units.classes);
        let mut index = Index {
            window: None,
            dirty: Vec::new(),
            plans: Vec::new(),
            plan_of: vec![NONE; units],
            sums: Vec::new(),
            alike: Vec::new(),
            tied: 0,
        };
        let plan = Plan { list: top.to_vec(), pristine: true, exclusive_above: exclusive, depth: 0 };
        if self.plan_below(0, root, plan, &mut index).is_none() {
            index.plans.clear();
        }
        index.alike = vec![None; classes * index.plans.len()];
        index
    }

    /// Plans the visit to a unit, and those to all below it; none when slots are made of them.
    fn plan_below(&mut self, unit: u32, vertex: VertexId, plan: Plan, index: &mut Index) -> Option<()> {
        let at = index.plans.iter().position(|known| *known == plan).unwrap_or(index.plans.len());
        if at == index.plans.len() {
            index.plans.push(plan);
        }
        index.plan_of[unit as usize] = u32::try_from(at).ok()?;
        let of = *self.shortcut.as_ref()?.memo.units.get(unit);
        if of.kind == UnitKind::Home {
            return Some(());
        }
        let plan = index.plans[at].clone();
        let below = match self.kind_of(vertex, &plan) {
            VisitKind::None => return Some(()),
            VisitKind::Slot(_) | VisitKind::Slots(_) => return None,
            VisitKind::Pass => Plan {
                exclusive_above: plan.exclusive_above || self.is_exclusive(vertex, &plan.list),
                depth: plan.depth + 1,
                ..plan
            },
            VisitKind::Resource(next) => Plan {
                list: next.to_vec(),
                pristine: false,
                exclusive_above: plan.exclusive_above || self.is_exclusive(vertex, &plan.list),
                depth: plan.depth + 1,
            },
        };
        let mut open: Vec<u32> = self.shortcut.as_ref()?.memo.units.children(unit).collect();
        while let Some(child) = open.pop() {
            let units = &self.shortcut.as_ref()?.memo.units;
            let of = *units.get(child);
            if of.kind == UnitKind::Bundle {
                open.extend(units.children(child));
            } else {
                self.plan_below(child, of.vertex, below.clone(), index)?;
            }
        }
        Some(())
    }

    fn kind_of(&mut self, vertex: VertexId, plan: &Plan) -> VisitKind<'a> {
        if plan.depth > MAX_DEPTH {
            VisitKind::None
        } else {
            self.kind_simple(vertex, &plan.list, plan.pristine)
        }
    }

    /// Brings the sums up to date and reads the answer from them.
    fn find_by_sums(&mut self, root: VertexId, top: &'a [EntryId], sums: &mut Sums) -> bool {
        let exclusive = sums.index.plans[0].exclusive_above;
        if let Err(reason) = self.prune(root, exclusive, top)
            && !matches!(self.kind_simple(root, top, true), VisitKind::None)
        {
            self.scratch.preorder += 1;
            self.scratch.errno = reason.errno();
            return false;
        }
        self.bring_up_to_date(sums);
        let sum = &sums.index.sums[0];
        self.scratch.preorder += sum.preorder;
        self.scratch.postorder += sum.postorder;
        if let Some(errno) = sum.errno {
            self.scratch.errno = errno;
        }
        let Some(own) = sum.own else { return false };
        let needs = self.finish_by_sums(own, top, sum);
        self.scratch.root_mark =
            Mark { round: self.scratch.round, needs: needs.unwrap_or(1), exclusive: own.exclusive };
        if needs.is_none() {
            self.scratch.errno = Errno::Enodev;
            return false;
        }
        let types: Vec<TypeId> = sum.offers.iter().map(|offer| offer.type_id).collect();
        let mut found = Collector::default();
        for of in types {
            let counts = self.counts(top, of, &sums.index.sums[0]);
            let taken = (!counts.is_empty()).then(|| self.pick(sums, None, of, &counts));
            for taken in taken.iter().flatten() {
                self.settle(sums, taken);
            }
            found.put(of, taken);
        }
        self.settle_choice(sums, 0);
        self.mark_kept(root, &found);
        true
    }

    /// How many of a type the entries of a list choose, one after the other.
    fn counts(&self, list: &[EntryId], of: TypeId, sum: &Sum) -> Vec<u64> {
        let entries = self.ask.request.list(list).filter(|entry| entry.type_id == of);
        entries.map(|entry| entry.count.take(sum.qualified(of))).collect()
    }

    fn finish_by_sums(&self, own: Own, top: &[EntryId], sum: &Sum) -> Option<u64> {
        let request = self.ask.request;
        if request.list(top).any(|entry| entry.count.take(sum.qualified(entry.type_id)) == 0) {
            return None;
        }
        let mut needs = 1;
        for entry in request.list(top).filter(|entry| entry.type_id == own.type_id) {
            needs = entry.count.take(own.available);
            if needs == 0 {
                return None;
            }
        }
        if self.ask.auxiliary && self.ask.quirks.auxiliary_refuses {
            return None;
        }
        sum.offers.iter().all(|offer| offer.qualified > 0).then_some(needs)
    }

    /// Prepares for marking what is taken and what was chosen below it.
    fn settle(&mut self, sums: &mut Sums, taken: &Taken) {
        let target = self.ask.graph.edge(taken.edge).target;
        let Some(shortcut) = self.shortcut.as_mut() else { return };
        let units = &shortcut.memo.units;
        let Some(unit) = units.topped_by(target) else { return };
        let mut at = unit;
        while at != NONE {
            let of = units.get(at);
            if of.kind != UnitKind::Bundle && of.parent != NONE {
                self.scratch.set_way(of.vertex, of.edge);
            }
            at = of.parent;
        }
        if units.get(unit).kind == UnitKind::Home {
            let visit = sums.visits + sums.index.plan_of[unit as usize] as usize;
            shortcut.skipped.nodes.insert(target, visit);
        } else {
            self.settle_choice(sums, unit);
        }
    }

    /// Makes the choice at an upper vertex, if there is one, and those below it.
    fn settle_choice(&mut self, sums: &mut Sums, unit: u32) {
        let Some(plan) = sums.index.plans.get(sums.index.plan_of[unit as usize] as usize) else { return };
        let Some(own) = sums.index.sums[unit as usize].own else { return };
        let Some(shortcut) = &self.shortcut else { return };
        let vertex = shortcut.memo.units.get(unit).vertex;
        let children = below(shortcut.memo, &sums.index, unit);
        let request = self.ask.request;
        let with: Vec<EntryId> = request
            .list(&plan.list)
            .filter(|entry| entry.type_id == own.type_id)
            .flat_map(|entry| entry.with.iter().copied())
            .collect();
        if own.score <= 0 || with.is_empty() {
            return;
        }
        let mut types: Vec<TypeId> = children.offers.iter().map(|offer| offer.type_id).collect();
        types.sort_unstable();
        let mut all = Vec::new();
        for of in types {
            let counts = self.counts(&with, of, &children);
            if !counts.is_empty() {
                all.extend(self.pick(sums, Some(unit), of, &counts));
            }
        }
        for taken in &all {
            self.settle(sums, taken);
        }
        if let Some(shortcut) = &mut self.shortcut {
            shortcut.skipped.choices.insert(vertex, (all, own.exclusive));
        }
    }

    /// Visits every unit whose sum may be another than before.
    fn bring_up_to_date(&mut self, sums: &mut Sums) {
        let Some(shortcut) = &self.shortcut else { return };
        let memo = &shortcut.memo;
        let mut dirty = std::mem::take(&mut sums.index.dirty);
        if sums.index.window.is_none() {
            sums.index.sums = vec![Sum::default(); memo.units.len()];
            for unit in (0..memo.units.len()).rev().filter_map(|unit| u32::try_from(unit).ok()) {
                sums.index.sums[unit as usize] = self.sum_up(sums, unit);
            }
        } else {
            if sums.index.window != Some(sums.window) {
                dirty.extend(memo.busy().filter(|&unit| !self.stays_ruled_out(sums, unit)));
            }
            let mut open: BTreeSet<u32> = dirty.drain(..).collect();
            open.insert(0);
            // What is above has a lower number.
            while let Some(unit) = open.pop_last() {
                let sum = self.sum_up(sums, unit);
                let Some(shortcut) = &self.shortcut else { return };
                let parent = shortcut.memo.units.get(unit).parent;
                if sums.index.sums[unit as usize] != sum && parent != NONE {
                    open.insert(parent);
                }
                sums.index.sums[unit as usize] = sum;
            }
            sums.index.dirty = dirty;
        }
        sums.index.window = Some(sums.window);
    }

    /// Whether a unit was refused because there is too little, and is now for the same reason.
    fn stays_ruled_out(&self, sums: &Sums, unit: u32) -> bool {
        let Some(shortcut) = &self.shortcut else { return false };
        let of = shortcut.memo.units.get(unit);
        let Some(plan) = sums.index.plans.get(sums.index.plan_of[unit as usize] as usize) else {
            return false;
        };
        of.kind == UnitKind::Home
            && sums.index.sums[unit as usize].is_refusal(Errno::Ebusy)
            && self.is_ruled_out(of.vertex, &plan.list)
    }

    /// What a visit to a unit comes to, by what is known of those below it.
    fn sum_up(&mut self, sums: &mut Sums, unit: u32) -> Sum {
        let Some(shortcut) = &self.shortcut else { return Sum::default() };
        let of = *shortcut.memo.units.get(unit);
        if of.kind == UnitKind::Bundle {
            return below(shortcut.memo, &sums.index, unit);
        }
        let plan = sums.index.plan_of[unit as usize];
        if plan == NONE {
            return Sum::default();
        }
        match of.kind {
            UnitKind::Home => self.sum_up_home(sums, unit, of.vertex),
            _ => self.sum_up_upper(sums, unit, of.vertex),
        }
    }

    /// With which error number a visit to a vertex ends before it looks below it, if it does.
    fn refuses(&mut self, vertex: VertexId, plan: &Plan) -> Option<Errno> {
        if matches!(self.kind_of(vertex, plan), VisitKind::None) {
            return Some(Errno::Ebusy);
        }
        let exclusive = plan.exclusive_above || self.is_exclusive(vertex, &plan.list);
        let reason = self.prune(vertex, exclusive, &plan.list).err()?;
        self.note_short(vertex, reason, &plan.list);
        Some(reason.errno())
    }

    /// What [`Walk::visit`] does at a vertex above nodes.
    fn sum_up_upper(&mut self, sums: &Sums, unit: u32, vertex: VertexId) -> Sum {
        let plan = &sums.index.plans[sums.index.plan_of[unit as usize] as usize];
        let type_id = self.ask.graph.vertex(vertex).type_id;
        if let Some(errno) = self.refuses(vertex, plan) {
            return Sum::refused(errno);
        }
        let exclusive = plan.exclusive_above || self.is_exclusive(vertex, &plan.list);
        let Some(shortcut) = &self.shortcut else { return Sum::default() };
        let mut sum = below(shortcut.memo, &sums.index, unit);
        sum.preorder += 1;
        let free = self.ask.allocations.min_free(self.ask.graph, vertex, self.ask.at, self.ask.duration);
        let available = match free {
            Ok(available) if available > 0 => available,
            failed => {
                sum.errno = Some(failed.err().unwrap_or(Errno::Ebusy));
                sum.offers.clear();
                return sum;
            }
        };
        let request = self.ask.request;
        let mut asking = request.list(&plan.list).filter(|entry| entry.type_id == type_id);
        let enough = asking.all(|entry| {
            request.list(&entry.with).all(|child| child.count.take(sum.qualified(child.type_id)) > 0)
        });
        if !enough {
            sum.errno = Some(Errno::Ebusy);
            sum.offers.clear();
            return sum;
        }
        let score = self.score(vertex);
        let mut chosen = request.list(&plan.list).filter(|entry| entry.type_id == type_id);
        sum.merged = score > 0 && !chosen.any(|entry| !entry.with.is_empty());
        if !sum.merged {
            sum.offers.clear();
        }
        sum.postorder += 1;
        sum.own = Some(Own { type_id, available, score, exclusive });
        sum.offer_one(type_id, self.key(score), score, available);
        sum
    }

    fn sum_up_home(&mut self, sums: &mut Sums, unit: u32, vertex: VertexId) -> Sum {
        let graph = self.ask.graph;
        let allocations = self.ask.allocations;
        let (context, window) = (sums.context, sums.window);
        let plan = sums.index.plan_of[unit as usize] as usize;
        let visit = sums.visits + plan;
        if self.is_ruled_out(vertex, &sums.index.plans[plan].list) {
            return Sum::refused(Errno::Ebusy);
        }
        let Some(shortcut) = &mut self.shortcut else { return Sum::default() };
        let class = shortcut.memo.units.get(unit).class;
        if class != NONE && shortcut.memo.is_idle(allocations, context, unit, window) {
            let of = graph.vertex(vertex).type_id;
            let named = of == self.ask.node_type || of == self.ask.storage_node_type;
            let down =
                graph.vertex(vertex).status == Status::Down && self.ask.purpose != Purpose::Satisfiability;
            let constraint = self.ask.request.constraint.as_ref().filter(|_| named);
            if down || constraint.is_some_and(|constraint| !constraint.matches(graph, vertex)) {
                return Sum::refused(Errno::Ebusy);
            }
            let at = sums.index.alike_at(unit, class);
            if sums.index.alike[at].is_none() {
                sums.index.alike[at] = Some(self.find_alike(vertex, visit));
            }
            if let Some(Some(alike)) = &sums.index.alike[at] {
                return self.sum_of_alike(vertex, alike);
            }
        }
        if let Some(errno) = self.refuses(vertex, &sums.index.plans[plan]) {
            return Sum::refused(errno);
        }
        let Some(shortcut) = &mut self.shortcut else { return Sum::default() };
        if shortcut.memo.recall(allocations, context, unit, window).is_none() {
            let outcome = self.visit_apart(vertex, visit);
            let Some(shortcut) = &mut self.shortcut else { return Sum::default() };
            shortcut.memo.note(allocations, context, unit, window, outcome);
        }
        let Some(shortcut) = &mut self.shortcut else { return Sum::default() };
        let Some(outcome) = shortcut.memo.recall(allocations, context, unit, window).cloned() else {
            return Sum::default();
        };
        self.sum_of(vertex, &outcome)
    }

    /// What the factor of a vertex adds to the scores below it.
    pub(super) fn factor_of(&self, vertex: VertexId) -> i64 {
        let vertex = self.ask.graph.vertex(vertex);
        let centric = self.ask.policy.node_centric && vertex.type_id == self.ask.node_type;
        if centric { node_factor(vertex.id, vertex.uniq_id) } else { 0 }
    }

    /// What a home comes to that is like others.
    fn sum_of_alike(&self, vertex: VertexId, alike: &Alike) -> Sum {
        let mut sum = alike.sum.clone();
        let factor = self.factor_of(vertex);
        for (offer, times) in sum.offers.iter_mut().zip(&alike.factors) {
            let more = times.saturating_mul(factor);
            offer.best = offer.best.saturating_add(self.key(more));
        }
        if let Some((available, _, exclusive)) = alike.outcome.usable {
            self.offer_itself(vertex, available, exclusive, &mut sum);
        }
        sum
    }

    fn sum_of(&self, vertex: VertexId, outcome: &Outcome) -> Sum {
        let mut sum = self.sum_of_offered(outcome);
        if let Some((available, _, exclusive)) = outcome.usable {
            self.offer_itself(vertex, available, exclusive, &mut sum);
        }
        sum
    }

    fn sum_of_offered(&self, outcome: &Outcome) -> Sum {
        let mut sum = Sum {
            preorder: u64::from(outcome.preorder),
            postorder: u64::from(outcome.postorder),
            errno: outcome.errno,
            ..Sum::default()
        };
        for offered in &outcome.offered {
            for &(score, count) in &offered.groups {
                sum.offer_one(offered.type_id, self.key(score), score, count);
            }
        }
        sum
    }

    fn offer_itself(&self, vertex: VertexId, available: u64, exclusive: bool, sum: &mut Sum) {
        let type_id = self.ask.graph.vertex(vertex).type_id;
        let score = self.score(vertex);
        sum.own = Some(Own { type_id, available, score, exclusive });
        sum.offer_one(type_id, self.key(score), score, available);
    }

    /// Visits a home without looking at what is known.
    fn visit_apart(&mut self, vertex: VertexId, visit: usize) -> (Outcome, Option<Collector>) {
        self.suspend(true);
        // It may have been looked at already.
        self.scratch.start_walk(self.ask.graph);
        let outcome = self.find_out(vertex, visit);
        self.suspend(false);
        outcome
    }

    fn suspend(&mut self, suspended: bool) {
        if let Some(shortcut) = &mut self.shortcut {
            shortcut.suspended = suspended;
        }
    }

    /// What idle homes like this one have in common; none when the factor of the node matters for more
    /// than their scores.
    fn find_alike(&mut self, vertex: VertexId, visit: usize) -> Option<Alike> {
        self.factor = Some(0);
        let (outcome, _) = self.visit_apart(vertex, visit);
        self.factor = Some(PROBE);
        let probe =
            if self.ask.policy.node_centric { self.visit_apart(vertex, visit).0 } else { outcome.clone() };
        self.factor = None;
        if outcome.offered.len() != probe.offered.len() {
            return None;
        }
        let mut factors = Vec::with_capacity(outcome.offered.len());
        for (plain, probed) in outcome.offered.iter().zip(&probe.offered) {
            let first = plain.groups.first().zip(probed.groups.first());
            let factor = first.map_or(0, |(plain, probed)| probed.0.saturating_sub(plain.0) / PROBE);
            let same = plain.groups.len() == probed.groups.len()
                && plain.groups.iter().zip(&probed.groups).all(|(plain, probed)| {
                    let shifted = plain.0.saturating_add(factor.saturating_mul(PROBE));
                    plain.0 > 0 && shifted == probed.0 && plain.1 == probed.1
                });
            if !same {
                return None;
            }
            factors.push(factor);
        }
        let sum = self.sum_of_offered(&outcome);
        Some(Alike { outcome, factors, sum })
    }
}

/// The sum of all units below one.
pub(super) fn below(memo: &Memo, index: &Index, unit: u32) -> Sum {
    let mut sum = Sum::default();
    for child in memo.units.children(unit) {
        sum.add(&index.sums[child as usize]);
    }
    sum
}
