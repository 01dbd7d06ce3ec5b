//! The times at which the capacity of a node for a shape changes, read lazily from its timeline: most searches end
//! long before the timelines do.

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::availability::Availability;
use super::plan::{Plan, PlannedShape};
use crate::inventory::{KindId, NodeId, Timeline};
use crate::request::Request;

/// The parameters shared by all nodes.
pub(super) struct SweepQuery<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) request: &'a Request,
    pub(super) now: i64,
    /// The first time examined; later than now.
    pub(super) from: i64,
    /// Of the last timeline read: its kinds, and the positions of the plan's kinds among them. They are the same for
    /// most nodes.
    kinds: SmallVec<[KindId; 8]>,
    columns: SmallVec<[Option<usize>; 8]>,
}

/// The read position in one node's timeline for one shape. Each change is returned once, the first one at the first
/// time with room for a slot.
pub(super) struct Changes {
    /// Also return changes of the remaining amounts, for shapes that have to fit together.
    all: bool,
    read: Read,
}

enum Read {
    /// Nothing to read, or everything was read.
    End,
    /// Amounts only increase from here on, so a start can use what is available at its beginning; the next row.
    Rising { row: usize },
    /// A start can use the minimum over its duration.
    Window(Window),
    /// Host ports are checked for each time; the next time.
    Ports { next: Option<i64> },
}

/// The rows covered by a start at some time.
struct Window {
    time: i64,
    /// The row in force at that time.
    first: usize,
    /// The first row after these.
    next: usize,
    /// Those of these rows with less room than all later ones, and their room.
    least: VecDeque<(usize, u32)>,
    /// The time was already returned.
    told: bool,
}

impl<'a> SweepQuery<'a> {
    pub(super) fn new(plan: &'a Plan<'a>, request: &'a Request, now: i64, from: i64) -> Self {
        Self { plan, request, now, from, kinds: SmallVec::new(), columns: SmallVec::new() }
    }

    fn end(&self, start: i64) -> i64 {
        self.request.end(start).unwrap_or(i64::MAX)
    }

    /// Availability for a start at this time.
    pub(super) fn availability(&self, start: i64) -> Availability<'a> {
        Availability::window(self.plan.inventory, self.now, start, self.end(start))
    }

    /// Prepares for reading this timeline.
    fn turn_to(&mut self, timeline: &Timeline) {
        let wanted = &self.plan.kinds;
        if self.columns.len() != wanted.len() || *self.kinds != *timeline.kinds() {
            self.kinds = timeline.kinds().into();
            self.columns = timeline.columns(wanted).collect();
        }
    }

    /// The node's room according to one row.
    fn fits(&self, shape: &PlannedShape<'_>, timeline: &Timeline, row: usize) -> u32 {
        let left = timeline.left(row);
        shape.fits_into(|at| self.columns[at].map_or(0, |column| left.of(column)), shape.count)
    }
}

impl Changes {
    /// No changes.
    pub(super) fn none() -> Self {
        Self { all: false, read: Read::End }
    }

    /// The changes of a node that is eligible for the shape.
    pub(super) fn new(
        query: &SweepQuery<'_>,
        shape: &PlannedShape<'_>,
        timeline: &Timeline,
        all: bool,
    ) -> Self {
        let time = query.from;
        let read = if !shape.ports.is_empty() {
            Read::Ports { next: Some(time) }
        } else if !all && timeline.only_rises(time) {
            Read::Rising { row: timeline.row_at(time) }
        } else {
            let first = timeline.row_at(time);
            Read::Window(Window { time, first, next: first, least: VecDeque::new(), told: false })
        };
        Self { all, read }
    }

    /// When the node's room next differs from `told`, and the new room.
    pub(super) fn next(
        &mut self,
        query: &mut SweepQuery<'_>,
        shape: &PlannedShape<'_>,
        (id, timeline): (NodeId, &Timeline),
        told: u32,
    ) -> Option<(i64, u32)> {
        query.turn_to(timeline);
        let found = match &mut self.read {
            Read::End => None,
            Read::Rising { row } => loop {
                let Some(begin) = timeline.begin(*row) else { break None };
                let slots = query.fits(shape, timeline, *row);
                *row += 1;
                if slots != told {
                    break Some((begin.max(query.from), slots));
                }
            },
            Read::Window(window) => loop {
                if !window.go_on(query, timeline) {
                    break None;
                }
                let slots = window.slots(query, shape, timeline);
                if self.all || slots != told {
                    break Some((window.time, slots));
                }
            },
            Read::Ports { next } => {
                let mut available = Vec::new();
                loop {
                    let Some(time) = *next else { break None };
                    let availability = query.availability(time);
                    availability.available(id, &query.plan.kinds, &mut available);
                    let slots = availability.capacity(shape, id, &available);
                    let length = query.request.end(time).map(|end| end.saturating_sub(time));
                    *next = timeline.next_change(time, length);
                    if self.all || slots != told {
                        break Some((time, slots));
                    }
                }
            }
        };
        if found.is_none() {
            self.read = Read::End;
        }
        found
    }
}

impl Window {
    /// Advances to the next time at which other rows are covered; returns whether there is one.
    fn go_on(&mut self, query: &SweepQuery<'_>, timeline: &Timeline) -> bool {
        if !std::mem::replace(&mut self.told, true) {
            return true;
        }
        let leaves = timeline.begin(self.first + 1);
        // The first start that is still running when the next row begins.
        let meets = timeline.begin(self.next).map(|begin| self.time + (begin - query.end(self.time)) + 1);
        let Some(then) = [leaves, meets].into_iter().flatten().min() else { return false };
        self.first += usize::from(leaves == Some(then));
        self.time = then;
        true
    }

    fn slots(&mut self, query: &SweepQuery<'_>, shape: &PlannedShape<'_>, timeline: &Timeline) -> u32 {
        let end = query.end(self.time);
        while timeline.begin(self.next).is_some_and(|begin| begin < end) {
            let slots = query.fits(shape, timeline, self.next);
            while self.least.pop_back_if(|(_, before)| slots <= *before).is_some() {}
            self.least.push_back((self.next, slots));
            self.next += 1;
        }
        while self.least.pop_front_if(|(row, _)| *row < self.first).is_some() {}
        self.least.front().map_or(0, |(_, slots)| *slots)
    }
}
