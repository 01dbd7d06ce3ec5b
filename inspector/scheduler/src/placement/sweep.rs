//! Advances through the times at which nodes' room changes until enough is available for a request.
//!
//! A node's room is read from its timeline as time advances; a running total for each list of nodes determines when an
//! exact search is worthwhile.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::collections::binary_heap::{BinaryHeap, PeekMut};
use std::ops::Range;

use super::NodePolicy;
use super::availability::Availability;
use super::changes::{Changes, SweepQuery};
use super::filling::{Taken, Work};
use super::order::{in_time, rank};
use super::plan::Plan;
use super::search::{place_in, placement};
use crate::inventory::{NodeId, Timeline};
use crate::request::{Placement, Planned, Request};

/// Maximum number of shapes counted: enough to decide when an exact search is worthwhile.
const COUNTED: usize = 64;
/// Number of failed exact searches before some times are skipped: totals may suffice for several shapes long before
/// their slots fit.
const SEARCHES: u32 = 64;

/// A change of a node's room for a shape, ordered by processing order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    time: i64,
    /// Index into the sweep's nodes.
    place: u32,
    shape: u32,
    slots: u32,
}

pub(super) struct Sweep<'a> {
    asked: SweepQuery<'a>,
    /// Number of shapes counted.
    counted: usize,
    /// Each node with its timeline and its list; a node may be in several lists, and those of a list are contiguous.
    nodes: Vec<(NodeId, &'a Timeline, usize)>,
    /// Index ranges of the nodes of each list.
    lists: Vec<Range<usize>>,
    /// Changes not read yet, by node and shape.
    unread: Vec<Changes>,
    /// Current room for each counted shape, in the same order.
    slots: Vec<u32>,
    /// Total room for each counted shape, by list.
    sums: Vec<Vec<u64>>,
    /// The next change of each node and shape.
    changes: BinaryHeap<Reverse<Change>>,
    /// Lists changed since their last search.
    changed: BTreeSet<usize>,
    /// Number of failed exact searches, and of times to skip before the next.
    failed: u32,
    pass_over: u64,
}

impl<'a> Sweep<'a> {
    /// Starts at `from`, which is later than now.
    pub(super) fn new(plan: &'a Plan<'a>, request: &'a Request, now: i64, from: i64) -> Self {
        let lists = plan.group_count();
        let counted = plan.shapes.len().min(COUNTED);
        let mut sweep = Self {
            asked: SweepQuery::new(plan, request, now, from),
            counted,
            nodes: Vec::new(),
            lists: Vec::with_capacity(lists),
            unread: Vec::new(),
            slots: Vec::new(),
            sums: vec![vec![0; counted]; lists],
            changes: BinaryHeap::new(),
            changed: BTreeSet::new(),
            failed: 0,
            pass_over: 0,
        };
        let mut changes = Vec::new();
        let mut timelines = Vec::new();
        for group in 0..lists {
            let first = sweep.nodes.len();
            let nodes = plan.group(group).map_or(&[][..], |(_, nodes)| nodes);
            let found = |id: &NodeId| Some((*id, plan.inventory.timeline(*id, plan.inventory.book(*id)?)));
            // All of them first: data not in the CPU cache is then fetched for several at once.
            timelines.clear();
            timelines.extend(nodes.iter().filter_map(found));
            for (id, timeline) in &timelines {
                sweep.enter(group, *id, timeline, &mut changes);
            }
            sweep.lists.push(first..sweep.nodes.len());
        }
        sweep.slots = vec![0; sweep.unread.len()];
        sweep.changes = changes.into();
        sweep
    }

    fn enter(
        &mut self,
        group: usize,
        id: NodeId,
        timeline: &'a Timeline,
        changes: &mut Vec<Reverse<Change>>,
    ) {
        let Ok(place) = u32::try_from(self.nodes.len()) else { return };
        let plan = self.asked.plan;
        let availability = Availability::unreserved(plan.inventory, self.asked.now);
        let before = (changes.len(), self.unread.len());
        // Several shapes may fit together later than each by itself: then every change is checked.
        let mut every = plan.shapes.len() > 1;
        for (shape, at) in plan.shapes[..self.counted].iter().zip(0..) {
            let mut unread = Changes::none();
            if !shape.impossible && availability.admits(shape, id) {
                unread = Changes::new(&self.asked, shape, timeline, std::mem::take(&mut every));
                if let Some((time, slots)) = unread.next(&mut self.asked, shape, (id, timeline), 0) {
                    changes.push(Reverse(Change { time, place, shape: at, slots }));
                }
            }
            self.unread.push(unread);
        }
        if before.0 < changes.len() {
            self.nodes.push((id, timeline, group));
        } else {
            self.unread.truncate(before.1);
        }
    }

    /// The first start before a time.
    pub(super) fn run(mut self, before: i64, work: &mut Work) -> Option<Planned> {
        work.visited += self.nodes.len() as u64;
        while let Some(Reverse(Change { time, .. })) = self.changes.peek().copied()
            && time < before
        {
            while let Some(Reverse(change)) = self.changes.peek().copied()
                && change.time == time
            {
                let then = self.after(change);
                if let Some(mut first) = self.changes.peek_mut() {
                    match then {
                        Some(then) => *first = Reverse(then),
                        None => drop(PeekMut::pop(first)),
                    }
                }
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

    /// The next change of the node's room for the shape.
    fn after(&mut self, change: Change) -> Option<Change> {
        let (place, shape) = (change.place as usize, change.shape as usize);
        let (id, timeline, _) = self.nodes[place];
        let unread = &mut self.unread[place * self.counted + shape];
        let plan = self.asked.plan;
        let (time, slots) =
            unread.next(&mut self.asked, &plan.shapes[shape], (id, timeline), change.slots)?;
        Some(Change { time, slots, ..change })
    }

    fn apply(&mut self, change: Change) {
        let (place, shape) = (change.place as usize, change.shape as usize);
        let (.., group) = self.nodes[place];
        let before = std::mem::replace(&mut self.slots[place * self.counted + shape], change.slots);
        let sum = &mut self.sums[group][shape];
        *sum = *sum - u64::from(before) + u64::from(change.slots);
        self.changed.insert(group);
    }

    /// Whether the total room of a list, checked by shape, may suffice.
    fn enough(&self, group: usize) -> bool {
        let shapes = &self.asked.plan.shapes;
        let mut sums = shapes.iter().zip(&self.sums[group]);
        let Some(minimum) = self.asked.plan.minimum else {
            return sums.all(|(shape, sum)| u64::from(shape.count) <= *sum);
        };
        let counted: u64 = sums.map(|(shape, sum)| u64::from(shape.count).min(*sum)).sum();
        let others: u64 = shapes[self.counted..].iter().map(|shape| u64::from(shape.count)).sum();
        u64::from(minimum) <= counted + others
    }

    /// An exact search in the changed lists that may suffice.
    fn attempt(&mut self, time: i64, work: &mut Work) -> Option<Planned> {
        let mut groups: Vec<usize> =
            std::mem::take(&mut self.changed).into_iter().filter(|group| self.enough(*group)).collect();
        let plan = self.asked.plan;
        if plan.policy == NodePolicy::High {
            groups.reverse();
        }
        let first = *groups.first()?;
        let found = if plan.shapes.len() == 1 && plan.minimum.is_none() {
            Some(self.first_fit(first, time, work))
        } else {
            place_in(plan, &self.asked.availability(time), groups.into_iter(), work)
        };
        if found.is_none() {
            self.failed += 1;
            self.pass_over = (1 << self.failed.saturating_sub(SEARCHES).min(20)) - 1;
        }
        let end = self.asked.request.end(time);
        Some(Planned { start: time, end, placement: found?, assumed: false })
    }

    /// Slots of the only shape on nodes of a list that take enough: on those that become free last.
    fn first_fit(&self, group: usize, time: i64, work: &mut Work) -> Placement {
        let plan = self.asked.plan;
        let mut wanted = plan.shapes.first().map_or(0, |shape| shape.count);
        let mut free: BinaryHeap<_> = (self.lists[group].clone())
            .filter(|place| self.slots[*place] > 0)
            .map(|place| {
                let (id, timeline, _) = self.nodes[place];
                Reverse((
                    in_time(plan, timeline, time, self.asked.now),
                    rank(plan.inventory, plan.policy, id),
                    place,
                ))
            })
            .collect();
        work.visited += free.len() as u64;
        let mut taken = Taken::new();
        while wanted > 0
            && let Some(Reverse((.., place))) = free.pop()
        {
            let count = self.slots[place].min(wanted);
            wanted -= count;
            taken.push((self.nodes[place].0, vec![count]));
        }
        placement(plan, group, taken)
    }
}
