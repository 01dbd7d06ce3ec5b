//! What visits to nodes came to, kept from match to match.
//!
//! What is found below a node for one list of entries depends on the graph below it, on what is booked
//! there during the time looked at, and on nothing else. So it is found once for a node of which nothing
//! is booked then, whenever that is, and once per state of a node that is partly booked. Only a summary
//! is kept; the few nodes that are chosen in the end are visited again.
//!
//! An [`Index`] adds these summaries up from the nodes to the root, so that a walk need not look at all of
//! them again: it follows the allocations unit by unit.

use std::collections::BTreeSet;

use super::allocations::Allocations;
use super::exact::Collector;
use super::request::{EntryId, Request};
use super::sums::Sum;
use super::units::{NONE, UnitKind, Units};
use crate::errno::Errno;
use crate::flux_constraint::Constraint;
use crate::graph::{Graph, Subsystem, TypeId, VertexId};

/// In how many homes all that was found is kept, not only the sums.
const MAX_KEPT: u32 = 4096;

/// How many kinds of visits are remembered at the same time.
const MAX_CONTEXTS: usize = 8;

/// What a visit came to.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// Available amount, score and exclusiveness; none when the vertex can't be used.
    pub usable: Option<(u64, i64, bool)>,
    /// The last error number met on the way.
    pub errno: Option<Errno>,
    /// How many vertices were entered and left.
    pub preorder: u32,
    pub postorder: u32,
    /// Candidates handed to the parent: score and count.
    pub offered: Box<[Offered]>,
}

/// Candidates of one type.
#[derive(Clone, Debug)]
pub(super) struct Offered {
    pub type_id: TypeId,
    pub groups: Box<[(i64, u64)]>,
}

/// A visit at a certain time to a node in a certain state.
#[derive(Clone, Debug)]
struct Timed {
    stamp: u32,
    at: i64,
    duration: i64,
    outcome: Outcome,
    /// All that was found, where the visit did nothing else than find it.
    found: Option<Box<Collector>>,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    idle: Option<Box<Outcome>>,
    timed: Option<Box<Timed>>,
}

/// What a visit depends on besides the node and its allocations.
#[derive(Clone, Debug, PartialEq)]
struct Key {
    shape: Vec<u32>,
    constraint: Option<Constraint>,
}

/// A list of entries with which a vertex is visited.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub list: Vec<EntryId>,
    pub pristine: bool,
    pub exclusive_above: bool,
    pub depth: usize,
}

/// What idle homes of one class have in common.
#[derive(Clone, Debug)]
pub(super) struct Alike {
    /// With scores as they are without the factor of the node.
    pub outcome: Outcome,
    /// Per type offered: how often the factor is part of each score.
    pub factors: Vec<i64>,
    /// The sum of the outcome, without the topmost vertex itself.
    pub sum: Sum,
}

/// Summaries of all units for one kind of request, at one time.
#[derive(Clone, Debug)]
pub(super) struct Index {
    /// The time they are for; none as long as nothing is summed up.
    pub window: Option<(i64, i64)>,
    /// Units to be looked at again.
    pub dirty: Vec<u32>,
    pub plans: Vec<Plan>,
    /// Per unit: the plan by which it is visited, or [`NONE`].
    pub plan_of: Vec<u32>,
    /// Per unit: what the visit came to.
    pub sums: Vec<Sum>,
    /// Per class and plan: what its idle homes have in common; an empty one when they are not alike after all.
    pub alike: Vec<Option<Option<Alike>>>,
    /// For so many more choices it is taken for granted that equals are at the border.
    pub tied: u32,
}

impl Index {
    /// Where what is common to idle homes of a class stands that are visited like this one.
    pub(super) fn alike_at(&self, unit: u32, class: u32) -> usize {
        class as usize * self.plans.len() + self.plan_of[unit as usize] as usize
    }
}

#[derive(Clone, Debug)]
struct Context {
    key: Key,
    used: u64,
    /// Whether jobs count that should have ended.
    overrun: bool,
    /// In how many homes all that was found is kept.
    kept: u32,
    slots: Vec<Slot>,
    index: Option<Box<Index>>,
}

/// When anything is booked in a unit.
#[derive(Clone, Copy, Debug)]
struct Booked {
    /// State of the allocations that this was read from.
    stamp: u32,
    first: i64,
    last: i64,
    /// A job formally holds something, even if its time is over.
    allocated: bool,
}

/// All that is remembered.
#[derive(Clone, Debug, Default)]
pub(super) struct Memo {
    /// Whether anything may be remembered: the dominant subsystem is a tree.
    enabled: bool,
    pub units: Units,
    booked: Vec<Booked>,
    /// Units in which anything is booked, and such in which something was when that was last read.
    busy: BTreeSet<u32>,
    contexts: Vec<Context>,
    clock: u64,
}

impl Memo {
    /// Forgets everything, and looks at the graph anew.
    pub(super) fn reset(
        &mut self,
        graph: &Graph,
        allocations: &mut Allocations,
        dominant: Subsystem,
        node_type: TypeId,
    ) {
        *self = Self::default();
        allocations.follow(std::sync::Arc::from([]), 0);
        let Some(units) = Units::new(graph, dominant, node_type) else { return };
        allocations.follow(units.by_vertex(), units.len());
        // Other than what the allocations start with, so that all of them are looked at.
        let unread = Booked { stamp: NONE, first: 0, last: 0, allocated: false };
        self.booked = vec![unread; units.len()];
        self.units = units;
        self.enabled = true;
        for unit in (0..self.units.len()).filter_map(|unit| u32::try_from(unit).ok()) {
            self.read(allocations, unit);
        }
    }

    /// Notes which units' allocations have changed since the last call.
    pub(super) fn catch_up(&mut self, allocations: &mut Allocations) {
        for unit in allocations.take_touched() {
            // What is busy is read again only when somebody wants to know when.
            if !self.busy.contains(&unit) {
                self.read(allocations, unit);
            }
            for index in self.contexts.iter_mut().filter_map(|context| context.index.as_deref_mut()) {
                index.dirty.push(unit);
                if index.dirty.len() > 2 * self.units.len() {
                    index.dirty.sort_unstable();
                    index.dirty.dedup();
                }
            }
        }
    }

    /// Units in which something is booked, or was when somebody last wanted to know when.
    pub(super) fn busy(&self) -> impl Iterator<Item = u32> + '_ {
        self.busy.iter().copied()
    }

    /// Forgets what visits came to: states or properties of vertices have changed.
    pub(super) fn forget(&mut self) {
        self.contexts.clear();
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// The number of a home, if the vertex is the topmost one of it.
    pub(super) fn node(&self, id: VertexId) -> Option<u32> {
        self.units.topped_by(id).filter(|&unit| self.units.get(unit).kind == UnitKind::Home)
    }

    /// Status or properties of a vertex have changed.
    pub(super) fn tell_apart(&mut self, id: VertexId) {
        self.units.tell_apart(id);
    }

    /// The allocations of a vertex are not as they would be if nobody had used it.
    pub(super) fn single_out(&mut self, id: VertexId) {
        self.units.single_out(id);
    }

    /// The index of a context, to be given back with [`Memo::put_index`].
    pub(super) fn take_index(&mut self, context: u32) -> Option<Box<Index>> {
        self.contexts[context as usize].index.take()
    }

    pub(super) fn put_index(&mut self, context: u32, index: Box<Index>) {
        self.contexts[context as usize].index = Some(index);
    }

    /// The number for visits that depend on the same things: the entries, and `flags` (pristine, taken
    /// exclusively from above, ever rather than at a time, overrun jobs count, an index is kept).
    pub(super) fn context(&mut self, request: &Request, list: &[EntryId], flags: [bool; 5]) -> u32 {
        let mut shape: Vec<u32> = flags.iter().map(|&flag| u32::from(flag)).collect();
        for &entry in list {
            describe(request, entry, &mut shape);
        }
        let key = Key { shape, constraint: request.constraint.clone() };
        self.clock += 1;
        let known = self.contexts.iter().position(|context| context.key == key);
        let at = known.unwrap_or_else(|| {
            let slots = vec![Slot::default(); self.units.len()];
            let context = Context { key, used: 0, overrun: flags[3], kept: 0, slots, index: None };
            if self.contexts.len() < MAX_CONTEXTS {
                self.contexts.push(context);
                return self.contexts.len() - 1;
            }
            let oldest = self.contexts.iter().enumerate().min_by_key(|(_, context)| context.used);
            let oldest = oldest.map_or(0, |(at, _)| at);
            self.contexts[oldest] = context;
            oldest
        });
        self.contexts[at].used = self.clock;
        u32::try_from(at).unwrap_or(0)
    }

    /// What a visit in this context at this time came to, if that is known.
    #[inline]
    pub(super) fn recall(
        &mut self,
        allocations: &Allocations,
        context: u32,
        node: u32,
        window: (i64, i64),
    ) -> Option<&Outcome> {
        let idle = self.is_idle(allocations, context, node, window);
        let slot = &self.contexts[context as usize].slots[node as usize];
        if idle {
            return slot.idle.as_deref();
        }
        let timed = slot.timed.as_deref()?;
        let same = timed.stamp == allocations.stamp(node) && (timed.at, timed.duration) == window;
        same.then_some(&timed.outcome)
    }

    /// Remembers what a visit came to.
    pub(super) fn note(
        &mut self,
        allocations: &Allocations,
        context: u32,
        node: u32,
        window: (i64, i64),
        (outcome, found): (Outcome, Option<Collector>),
    ) {
        let idle = self.is_idle(allocations, context, node, window);
        let context = &mut self.contexts[context as usize];
        let slot = &mut context.slots[node as usize];
        if idle {
            slot.idle = Some(Box::new(outcome));
        } else {
            let (at, duration) = window;
            let before = slot.timed.as_ref().and_then(|timed| timed.found.as_ref());
            context.kept -= u32::from(before.is_some());
            let found = found.filter(|_| context.kept < MAX_KEPT).map(Box::new);
            context.kept += u32::from(found.is_some());
            let timed = Timed { stamp: allocations.stamp(node), at, duration, outcome, found };
            slot.timed = Some(Box::new(timed));
        }
    }

    /// All that was found in a home, if that was kept; it is not known any more afterwards.
    pub(super) fn take_found(
        &mut self,
        allocations: &Allocations,
        context: u32,
        node: u32,
        window: (i64, i64),
    ) -> Option<Collector> {
        if self.is_idle(allocations, context, node, window) {
            return None;
        }
        let context = &mut self.contexts[context as usize];
        let timed = context.slots[node as usize].timed.as_deref_mut()?;
        let same = timed.stamp == allocations.stamp(node) && (timed.at, timed.duration) == window;
        let found = timed.found.take_if(|_| same)?;
        context.kept -= 1;
        Some(*found)
    }

    /// Whether nothing is booked in a home during a stretch of time: start and duration.
    #[inline]
    pub(super) fn is_idle(
        &mut self,
        allocations: &Allocations,
        context: u32,
        node: u32,
        window: (i64, i64),
    ) -> bool {
        if self.booked[node as usize].stamp != allocations.stamp(node) {
            self.read(allocations, node);
        }
        let booked = self.booked[node as usize];
        let overrun = booked.allocated && self.contexts[context as usize].overrun;
        !overrun && (window.0 >= booked.last || window.0.saturating_add(window.1) <= booked.first)
    }

    /// Reads when anything is booked in a unit.
    fn read(&mut self, allocations: &Allocations, unit: u32) {
        let mut booked =
            Booked { stamp: allocations.stamp(unit), first: i64::MAX, last: i64::MIN, allocated: false };
        for account in self.units.members(unit).iter().filter_map(|&id| allocations.get(id)) {
            if let Some((first, last)) = account.hull() {
                booked.first = booked.first.min(first);
                booked.last = booked.last.max(last);
            }
            booked.allocated |= account.is_allocated();
        }
        self.booked[unit as usize] = booked;
        if booked.last != i64::MIN || booked.allocated {
            self.busy.insert(unit);
        } else {
            self.busy.remove(&unit);
        }
    }
}

/// What matters of an entry for what is found below one vertex: everything but how many there must be.
/// The number of the entry is part of it, so that plans can be kept.
fn describe(request: &Request, id: EntryId, out: &mut Vec<u32>) {
    let entry = request.entry(id);
    let exclusive = match entry.exclusive {
        None => 0,
        Some(false) => 1,
        Some(true) => 2,
    };
    out.extend([
        id,
        entry.type_id.0,
        exclusive,
        u32::from(entry.is_slot),
        u32::try_from(entry.with.len()).unwrap_or(u32::MAX),
    ]);
    for &child in &entry.with {
        let count = request.entry(child).count;
        out.extend([count.min, count.max, count.operator as u32, count.operand]);
        describe(request, child, out);
    }
}
