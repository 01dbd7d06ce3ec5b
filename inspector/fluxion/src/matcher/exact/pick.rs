//! The first candidates in the order of the policy, by the sums of an index: units are opened only as far
//! as something in them may come next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::collector::{Taken, by_score};
use super::index::{Sums, below};
use super::walk::Walk;
use crate::graph::{EdgeId, TypeId};
use crate::matcher::policy::Order;
use crate::matcher::sort;
use crate::matcher::units::{NONE, UnitKind};

/// Lists up to this length keep equals in order of discovery, however they are sorted.
const SMALL: u32 = 16;

/// For how many choices the index is left alone after equals stood at the border of one.
const TIED: u32 = 64;

/// Something that may come next: a unit to be opened, the topmost vertex of a unit, or a candidate from
/// within a home, with its position in the list that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Unit(u32),
    Own(u32),
    Inner { list: u32, at: u32 },
}

/// What it is compared by, its place in order of discovery, and itself.
type Next = Reverse<(i64, u32, u32, Item)>;

/// Candidates from within one home, in order.
struct Inner {
    unit: u32,
    groups: Vec<(i64, u32, u64)>,
}

/// One candidate that was chosen.
struct Picked {
    key: i64,
    count: u64,
    taken: Option<Taken>,
}

impl Walk<'_, '_, '_> {
    /// The first candidates of a type until the last of `counts` is reached, which are what is chosen one
    /// after the other from the same list: that at the top, or that of an upper vertex.
    pub(super) fn pick(
        &mut self,
        sums: &mut Sums,
        of: Option<u32>,
        type_id: TypeId,
        counts: &[u64],
    ) -> Vec<Taken> {
        let Some(&wanted) = counts.last() else { return Vec::new() };
        let groups = self.groups_of(sums, of, type_id);
        let introsort = self.ask.quirks.introsort_ties && groups > SMALL;
        if introsort && sums.index.tied > 0 {
            sums.index.tied -= 1;
        } else {
            let (picked, next) = self.pick_first(sums, of, type_id, wanted);
            if !introsort || !is_ambiguous(&picked, next, wanted) {
                return picked.into_iter().filter_map(|picked| picked.taken).collect();
            }
            sums.index.tied = TIED;
        }
        self.pick_sorted(sums, of, type_id, counts)
    }

    fn groups_of(&self, sums: &Sums, of: Option<u32>, type_id: TypeId) -> u32 {
        let Some(shortcut) = &self.shortcut else { return 0 };
        let sum = match of {
            None => sums.index.sums[0].of(type_id).copied(),
            Some(unit) => below(shortcut.memo, &sums.index, unit).of(type_id).copied(),
        };
        sum.map_or(0, |offer| offer.groups)
    }

    /// The first candidates, equals in order of discovery, and what the next one is compared by.
    fn pick_first(
        &mut self,
        sums: &Sums,
        of: Option<u32>,
        type_id: TypeId,
        wanted: u64,
    ) -> (Vec<Picked>, Option<i64>) {
        let mut open: BinaryHeap<Next> = BinaryHeap::new();
        let mut lists: Vec<Inner> = Vec::new();
        let mut picked = Vec::new();
        let mut left = wanted;
        match of {
            None => self.open(sums, 0, type_id, &mut open),
            Some(unit) => self.open_children(sums, unit, type_id, &mut open),
        }
        while let Some(Reverse((key, _, _, item))) = open.pop() {
            if left == 0 {
                return (picked, Some(key));
            }
            let count = match item {
                Item::Unit(unit) => {
                    self.open_unit(sums, unit, type_id, &mut open, &mut lists);
                    continue;
                }
                Item::Own(unit) => {
                    let (count, taken) = self.take_own(sums, unit);
                    picked.push(Picked { key, count, taken });
                    count
                }
                Item::Inner { list, at } => {
                    let inner = &lists[list as usize];
                    let (_, position, count) = inner.groups[at as usize];
                    let taken = Some(self.take_inner(inner.unit, type_id, position, count));
                    picked.push(Picked { key, count, taken });
                    self.offer_inner(list, &lists, at + 1, &mut open);
                    count
                }
            };
            left = left.saturating_sub(count);
        }
        (picked, None)
    }

    /// Puts a unit among what may come next, if it has anything of the type.
    fn open(&self, sums: &Sums, unit: u32, type_id: TypeId, open: &mut BinaryHeap<Next>) {
        let Some(offer) = sums.index.sums[unit as usize].of(type_id) else { return };
        let Some(shortcut) = &self.shortcut else { return };
        open.push(Reverse((offer.best, shortcut.memo.units.get(unit).low, 0, Item::Unit(unit))));
    }

    fn open_children(&self, sums: &Sums, unit: u32, type_id: TypeId, open: &mut BinaryHeap<Next>) {
        let Some(shortcut) = &self.shortcut else { return };
        for child in shortcut.memo.units.children(unit) {
            self.open(sums, child, type_id, open);
        }
    }

    fn open_unit(
        &mut self,
        sums: &Sums,
        unit: u32,
        type_id: TypeId,
        open: &mut BinaryHeap<Next>,
        lists: &mut Vec<Inner>,
    ) {
        let Some(shortcut) = &self.shortcut else { return };
        let of = *shortcut.memo.units.get(unit);
        let sum = &sums.index.sums[unit as usize];
        if let Some(own) = sum.own.filter(|own| own.type_id == type_id) {
            open.push(Reverse((self.key(own.score), of.place, u32::MAX, Item::Own(unit))));
        }
        match of.kind {
            UnitKind::Bundle => self.open_children(sums, unit, type_id, open),
            UnitKind::Upper if sum.merged => self.open_children(sums, unit, type_id, open),
            UnitKind::Upper => {}
            UnitKind::Home => {
                let mut groups = Vec::new();
                self.each_inner(sums, unit, type_id, None, |key, at, count| groups.push((key, at, count)));
                groups.sort_unstable();
                let list = u32::try_from(lists.len()).expect("there are fewer homes than vertices");
                lists.push(Inner { unit, groups });
                self.offer_inner(list, lists, 0, open);
            }
        }
    }

    fn offer_inner(&self, list: u32, lists: &[Inner], at: u32, open: &mut BinaryHeap<Next>) {
        let inner = &lists[list as usize];
        if let (Some(&(key, position, _)), Some(shortcut)) = (inner.groups.get(at as usize), &self.shortcut) {
            let place = shortcut.memo.units.get(inner.unit).place;
            open.push(Reverse((key, place, position + 1, Item::Inner { list, at })));
        }
    }

    /// Goes over the candidates of a type within a home, or looks at one of them: what it is compared by,
    /// its position and count.
    fn each_inner(
        &mut self,
        sums: &Sums,
        unit: u32,
        type_id: TypeId,
        only: Option<u32>,
        mut each: impl FnMut(i64, u32, u64),
    ) {
        let allocations = self.ask.allocations;
        let order = self.order();
        let Some(shortcut) = &mut self.shortcut else { return };
        let of = *shortcut.memo.units.get(unit);
        let idle = of.class != NONE && shortcut.memo.is_idle(allocations, sums.context, unit, sums.window);
        let alike = idle.then(|| sums.index.alike[sums.index.alike_at(unit, of.class)].as_ref()).flatten();
        let factor = if idle { self.factor_of(of.vertex) } else { 0 };
        let (outcome, factors) = match (alike, &mut self.shortcut) {
            (Some(Some(alike)), _) => (&alike.outcome, alike.factors.as_slice()),
            (_, Some(shortcut)) => {
                let known = shortcut.memo.recall(allocations, sums.context, unit, sums.window);
                let Some(outcome) = known else { return };
                (outcome, [].as_slice())
            }
            _ => return,
        };
        let Some(at) = outcome.offered.iter().position(|offered| offered.type_id == type_id) else { return };
        let more = factors.get(at).map_or(0, |times| times.saturating_mul(factor));
        let order = order.unwrap_or(Order::Ascending);
        let groups = &outcome.offered[at].groups;
        let all = 0..u32::try_from(groups.len()).unwrap_or(u32::MAX);
        for position in only.map_or(all, |only| only..only + 1) {
            let Some(&(score, count)) = groups.get(position as usize) else { return };
            each(by_score(order, score.saturating_add(more)), position, count);
        }
    }

    fn take_own(&self, sums: &Sums, unit: u32) -> (u64, Option<Taken>) {
        let Some(own) = sums.index.sums[unit as usize].own else { return (0, None) };
        let edge = self.way_into(unit);
        let taken =
            edge.map(|edge| Taken { edge, exclusive: own.exclusive, needs: own.available, below: None });
        (own.available, taken)
    }

    fn take_inner(&self, unit: u32, type_id: TypeId, position: u32, count: u64) -> Taken {
        let edge = self.way_into(unit).unwrap_or(EdgeId(0));
        Taken { edge, exclusive: false, needs: count, below: Some((type_id, position)) }
    }

    /// The edge into the topmost vertex of a unit; none for the root.
    fn way_into(&self, unit: u32) -> Option<EdgeId> {
        let unit = self.shortcut.as_ref()?.memo.units.get(unit);
        (unit.parent != NONE).then_some(unit.edge)
    }

    /// The first candidates, equals as GNU's sort leaves them, of the list of all of them.
    fn pick_sorted(&mut self, sums: &Sums, of: Option<u32>, type_id: TypeId, counts: &[u64]) -> Vec<Taken> {
        // The list is long: its room is used again and again.
        let mut keys = std::mem::take(&mut self.scratch.keys);
        keys.clear();
        let starts = self.list_all(sums, of, type_id, &mut keys);
        let once = counts.len() == 1;
        for &count in counts {
            let wanted = if once { usize::try_from(count).unwrap_or(usize::MAX) } else { usize::MAX };
            sort::introsort(&mut keys, wanted, &|a, b| a.0 < b.0);
        }
        let mut left = counts.last().copied().unwrap_or(0);
        let mut taken = Vec::new();
        for &(_, at) in &keys {
            if left == 0 {
                break;
            }
            let (start, item) = starts[starts.partition_point(|(start, _)| *start <= at) - 1];
            let count = match item {
                Item::Own(unit) | Item::Unit(unit) => {
                    let (count, own) = self.take_own(sums, unit);
                    taken.extend(own);
                    count
                }
                Item::Inner { list: unit, .. } => {
                    let mut count = 0;
                    self.each_inner(sums, unit, type_id, Some(at - start), |_, _, found| count = found);
                    taken.push(self.take_inner(unit, type_id, at - start, count));
                    count
                }
            };
            left = left.saturating_sub(count);
        }
        self.scratch.keys = keys;
        taken
    }

    /// Lists what all candidates are compared by, in order of discovery. Answers where in it the candidates
    /// of each unit start.
    fn list_all(
        &mut self,
        sums: &Sums,
        of: Option<u32>,
        type_id: TypeId,
        keys: &mut Vec<(i64, u32)>,
    ) -> Vec<(u32, Item)> {
        let next = |keys: &Vec<_>| u32::try_from(keys.len()).expect("there are fewer candidates than 2^32");
        let mut starts = Vec::new();
        // Children are put on in reverse, and the vertex itself below them.
        let mut open: Vec<(u32, bool)> = vec![(of.unwrap_or(0), false)];
        let mut first = of.is_some();
        while let Some((unit, itself)) = open.pop() {
            let Some(shortcut) = &self.shortcut else { return starts };
            let kind = shortcut.memo.units.get(unit).kind;
            let sum = &sums.index.sums[unit as usize];
            let only_below = std::mem::take(&mut first);
            if itself {
                if let Some(own) = sum.own.filter(|own| own.type_id == type_id) {
                    starts.push((next(keys), Item::Own(unit)));
                    keys.push((self.key(own.score), next(keys)));
                }
                continue;
            }
            if !only_below {
                if sum.of(type_id).is_none() {
                    continue;
                }
                open.push((unit, true));
            }
            if kind == UnitKind::Home {
                let start = next(keys);
                self.each_inner(sums, unit, type_id, None, |key, at, _| keys.push((key, start + at)));
                if next(keys) > start {
                    starts.push((start, Item::Inner { list: unit, at: 0 }));
                }
            } else if only_below || kind == UnitKind::Bundle || sum.merged {
                open.extend(shortcut.memo.units.children(unit).rev().map(|child| (child, false)));
            }
        }
        starts
    }
}

/// Whether another order of equals might lead to another choice.
fn is_ambiguous(picked: &[Picked], next: Option<i64>, wanted: u64) -> bool {
    let Some(last) = picked.last() else { return false };
    if next == Some(last.key) {
        return true;
    }
    let equals = picked.iter().filter(|picked| picked.key == last.key);
    let (mut all, mut least, mut others) = (0_u64, u64::MAX, 0_u64);
    for picked in equals {
        all = all.saturating_add(picked.count);
        least = least.min(picked.count);
    }
    for picked in picked.iter().filter(|picked| picked.key != last.key) {
        others = others.saturating_add(picked.count);
    }
    // Without the smallest of the equals, are they enough?
    others.saturating_add(all - least) >= wanted
}
