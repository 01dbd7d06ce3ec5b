//! Goes through the times at which nodes take more or fewer slots until enough is available for a request.
//!
//! What a node takes is read off its timeline once, as a list of changes; a running sum for each list of nodes tells
//! when a start is worth an exact search.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use super::availability::Availability;
use super::filling::Work;
use super::plan::{Plan, PlannedShape};
use super::search::place_in;
use crate::inventory::{NodeId, Timeline};
use crate::request::{Planned, Request};

/// Shapes that are counted while time goes on: enough to tell when an exact search is worth it.
const COUNTED: usize = 64;
/// Exact searches that may fail before some times are passed over: sums can be enough for several shapes long before
/// their slots really fit.
const SEARCHES: u32 = 64;

/// From this time on a node takes so many slots of a shape. In the order in which they are looked at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    time: i64,
    /// Place in the sweep's nodes.
    place: u32,
    shape: u32,
    slots: u32,
}

pub(super) struct Sweep<'a> {
    plan: &'a Plan<'a>,
    request: &'a Request,
    now: i64,
    /// Shapes that are counted.
    counted: usize,
    /// The list of each node; a node may be in several.
    groups: Vec<usize>,
    /// What each takes of each counted shape, node by node.
    slots: Vec<u32>,
    /// Slots of each counted shape that the nodes of a list take, by list.
    sums: Vec<Vec<u64>>,
    changes: BinaryHeap<Reverse<Change>>,
    /// Lists that changed since they were searched.
    changed: BTreeSet<usize>,
    /// Exact searches that failed, and how many times are passed over before the next.
    failed: u32,
    pass_over: u64,
}

impl<'a> Sweep<'a> {
    /// Begins at `from`, which is later than now.
    pub(super) fn new(plan: &'a Plan<'a>, request: &'a Request, now: i64, from: i64) -> Self {
        let lists = plan.group_count();
        let counted = plan.shapes.len().min(COUNTED);
        let mut sweep = Self {
            plan,
            request,
            now,
            counted,
            groups: Vec::new(),
            slots: Vec::new(),
            sums: vec![vec![0; counted]; lists],
            changes: BinaryHeap::new(),
            changed: BTreeSet::new(),
            failed: 0,
            pass_over: 0,
        };
        let mut changes = Vec::new();
        for group in 0..lists {
            for id in plan.group(group).map_or(&[][..], |(_, nodes)| nodes) {
                sweep.enter(group, *id, from, &mut changes);
            }
        }
        sweep.slots = vec![0; sweep.groups.len() * counted];
        sweep.changes = changes.into();
        sweep
    }

    fn enter(&mut self, group: usize, id: NodeId, from: i64, changes: &mut Vec<Reverse<Change>>) {
        let lens = Availability::unreserved(self.plan.inventory, self.now);
        let (Some(book), Ok(place)) = (self.plan.inventory.book(id), u32::try_from(self.groups.len())) else {
            return;
        };
        let timeline = self.plan.inventory.timeline(id, book);
        let before = changes.len();
        // Several shapes may fit together later than each by itself: then every change is worth a look.
        let mut every = self.plan.shapes.len() > 1;
        for (shape, at) in self.plan.shapes[..self.counted].iter().zip(0..) {
            if shape.impossible || !lens.admits(shape, id) {
                continue;
            }
            let all = std::mem::take(&mut every);
            let mut told = 0;
            let tell = |time, slots| {
                if all || slots != told {
                    told = slots;
                    changes.push(Reverse(Change { time, place, shape: at, slots }));
                }
            };
            if shape.ports.is_empty() {
                self.changes_of((shape, all), timeline, from, tell);
            } else {
                self.changes_with_ports(shape, id, timeline, from, tell);
            }
        }
        if before < changes.len() {
            self.groups.push(group);
        }
    }

    /// How many slots fit from when on: the least over the time that a start would run. With `all`, times at which
    /// only what is left beside them changes are told too.
    fn changes_of(
        &self,
        (shape, all): (&PlannedShape<'_>, bool),
        timeline: &Timeline,
        from: i64,
        mut tell: impl FnMut(i64, u32),
    ) {
        let mut rows: Vec<(i64, u32)> = Vec::new();
        timeline.steps(&self.plan.kinds, from, |time, free| {
            let slots = shape.fits(free, shape.count);
            if all || rows.last().is_none_or(|(_, before)| *before != slots) {
                rows.push((time, slots));
            }
        });
        // Rows that a start at this time runs through and that are less than all behind them.
        let mut least: VecDeque<usize> = VecDeque::new();
        let (mut time, mut first, mut next) = (from, 0, 0);
        loop {
            let end = self.request.end(time).unwrap_or(i64::MAX);
            while let Some((_, slots)) = rows.get(next).filter(|(begin, _)| *begin < end) {
                while least.pop_back_if(|at| *slots <= rows[*at].1).is_some() {}
                least.push_back(next);
                next += 1;
            }
            while least.pop_front_if(|at| *at < first).is_some() {}
            tell(time, least.front().map_or(0, |at| rows[*at].1));
            let leaves = rows.get(first + 1).map(|(begin, _)| *begin);
            // The first start that still runs when the next row begins.
            let meets = rows.get(next).map(|(begin, _)| time + (*begin - end) + 1);
            let Some(then) = [leaves, meets].into_iter().flatten().min() else { return };
            first += usize::from(leaves == Some(then));
            time = then;
        }
    }

    /// The same for a shape with host ports, asked change by change.
    fn changes_with_ports(
        &self,
        shape: &PlannedShape<'_>,
        id: NodeId,
        timeline: &Timeline,
        from: i64,
        mut tell: impl FnMut(i64, u32),
    ) {
        let (mut time, mut available) = (from, Vec::new());
        loop {
            let lens = self.lens(time);
            lens.available(id, &self.plan.kinds, &mut available);
            tell(time, lens.capacity(shape, id, &available));
            let length = self.request.end(time).map(|end| end.saturating_sub(time));
            let Some(next) = timeline.next_change(time, length) else { return };
            time = next;
        }
    }

    fn lens(&self, start: i64) -> Availability<'a> {
        let end = self.request.end(start).unwrap_or(i64::MAX);
        Availability::window(self.plan.inventory, self.now, start, end)
    }

    pub(super) fn run(mut self, work: &mut Work) -> Option<Planned> {
        work.visited += self.groups.len() as u64;
        while let Some(Reverse(Change { time, .. })) = self.changes.peek().copied() {
            while let Some(Reverse(change)) = self.changes.peek().copied()
                && change.time == time
            {
                self.changes.pop();
                work.visited += 1;
                self.apply(change);
            }
            if self.pass_over > 0 && !self.changes.is_empty() {
                self.pass_over -= 1;
            } else if let Some(planned) = self.attempt(time, work) {
                return Some(planned);
            }
        }
        None
    }

    fn apply(&mut self, change: Change) {
        let (place, shape) = (change.place as usize, change.shape as usize);
        let group = self.groups[place];
        let before = std::mem::replace(&mut self.slots[place * self.counted + shape], change.slots);
        let sum = &mut self.sums[group][shape];
        *sum = *sum - u64::from(before) + u64::from(change.slots);
        self.changed.insert(group);
    }

    /// Whether the slots that the nodes of a list take, looked at shape by shape, could be enough.
    fn enough(&self, group: usize) -> bool {
        let shapes = &self.plan.shapes;
        let mut sums = shapes.iter().zip(&self.sums[group]);
        let Some(minimum) = self.plan.minimum else {
            return sums.all(|(shape, sum)| u64::from(shape.count) <= *sum);
        };
        let counted: u64 = sums.map(|(shape, sum)| u64::from(shape.count).min(*sum)).sum();
        let others: u64 = shapes[self.counted..].iter().map(|shape| u64::from(shape.count)).sum();
        u64::from(minimum) <= counted + others
    }

    /// An exact search in the lists that changed and could be enough.
    fn attempt(&mut self, time: i64, work: &mut Work) -> Option<Planned> {
        let lens = self.lens(time);
        let mut groups: Vec<usize> =
            std::mem::take(&mut self.changed).into_iter().filter(|group| self.enough(*group)).collect();
        if groups.is_empty() {
            return None;
        }
        if self.plan.policy == super::NodePolicy::High {
            groups.reverse();
        }
        let found = place_in(self.plan, &lens, groups.into_iter(), work);
        if found.is_none() {
            self.failed += 1;
            self.pass_over = (1 << self.failed.saturating_sub(SEARCHES).min(20)) - 1;
        }
        Some(Planned { start: time, end: self.request.end(time), placement: found?, assumed: false })
    }
}
