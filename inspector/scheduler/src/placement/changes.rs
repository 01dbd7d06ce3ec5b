//! The times at which one node takes more or fewer slots of one shape, read off its timeline as far as they are asked
//! for: most searches end long before the timelines do.

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::availability::Availability;
use super::plan::{Plan, PlannedShape};
use crate::inventory::{KindId, NodeId, Timeline};
use crate::request::Request;

/// What is asked of every node.
pub(super) struct SweepQuery<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) request: &'a Request,
    pub(super) now: i64,
    /// The first time that is looked at; later than now.
    pub(super) from: i64,
    /// Of the timeline that was read last: its kinds, and where the plan's kinds stand among them. Most nodes have the
    /// same.
    kinds: SmallVec<[KindId; 8]>,
    columns: SmallVec<[Option<usize>; 8]>,
}

/// How far one node's timeline was read for one shape. Each change is handed over once, the first at the first time at
/// which a slot is taken.
pub(super) struct Changes {
    /// Changes of what is left beside the slots are told too, for shapes that have to fit together.
    all: bool,
    read: Read,
}

enum Read {
    /// Nothing is to be read, or everything was.
    End,
    /// Something is only given back from here on, so a start has what there is at its beginning; the next row.
    Rising { row: usize },
    /// A start has the least over the time that it runs.
    Window(Window),
    /// Host ports are asked about time by time; the next time.
    Ports { next: Option<i64> },
}

/// The rows that a start at some time runs through.
struct Window {
    time: i64,
    /// The row in force at that time.
    first: usize,
    /// The first row behind them.
    next: usize,
    /// Of these rows, those that take less than all behind them, with what they take.
    least: VecDeque<(usize, u32)>,
    /// The time was told already.
    told: bool,
}

impl<'a> SweepQuery<'a> {
    pub(super) fn new(plan: &'a Plan<'a>, request: &'a Request, now: i64, from: i64) -> Self {
        Self { plan, request, now, from, kinds: SmallVec::new(), columns: SmallVec::new() }
    }

    fn end(&self, start: i64) -> i64 {
        self.request.end(start).unwrap_or(i64::MAX)
    }

    /// What a start at this time has.
    pub(super) fn availability(&self, start: i64) -> Availability<'a> {
        Availability::window(self.plan.inventory, self.now, start, self.end(start))
    }

    /// Makes ready for reading this timeline.
    fn turn_to(&mut self, timeline: &Timeline) {
        let wanted = &self.plan.kinds;
        if self.columns.len() != wanted.len() || *self.kinds != *timeline.kinds() {
            self.kinds = timeline.kinds().into();
            self.columns = timeline.columns(wanted).collect();
        }
    }

    /// What the node takes by what there is in one row.
    fn fits(&self, shape: &PlannedShape<'_>, timeline: &Timeline, row: usize) -> u32 {
        let left = timeline.left(row);
        shape.fits_into(|at| self.columns[at].map_or(0, |column| left.of(column)), shape.count)
    }
}

impl Changes {
    /// None at all.
    pub(super) fn none() -> Self {
        Self { all: false, read: Read::End }
    }

    /// Those of a node that admits the shape.
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

    /// When the node next takes another number of slots than `told`, and how many.
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
                    let lens = query.availability(time);
                    lens.available(id, &query.plan.kinds, &mut available);
                    let slots = lens.capacity(shape, id, &available);
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
    /// To the next time at which other rows are run through; whether there is one.
    fn go_on(&mut self, query: &SweepQuery<'_>, timeline: &Timeline) -> bool {
        if !std::mem::replace(&mut self.told, true) {
            return true;
        }
        let leaves = timeline.begin(self.first + 1);
        // The first start that still runs when the next row begins.
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
