//! Nodes on which slots are placed one by one, under the rules between Pods; any of them can be taken back.

use std::collections::BTreeMap;

use super::availability::Availability;
use super::filling::{Filling, Taken, clash};
use super::plan::Plan;
use super::rules::Rules;
use crate::constraint::HostPort;
use crate::inventory::NodeId;

/// Whether a slot can be placed on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// It can.
    Yes,
    /// Not now, but perhaps after other slots were placed.
    NotYet,
    /// Not unless slots are taken back.
    No,
}

/// Room that was not read yet; what is read is less.
const UNREAD: u32 = u32::MAX;

/// See the module documentation.
pub(super) struct Board<'a> {
    pub(super) plan: &'a Plan<'a>,
    availability: &'a Availability<'a>,
    pub(super) rules: Rules,
    pub(super) nodes: &'a [NodeId],
    /// Free amounts of the plan's kinds by position, once read.
    free: Vec<u64>,
    /// Room for each shape by position, ignoring rules and other slots; [`UNREAD`] before it is read.
    room: Vec<u32>,
    /// Slots placed at each position.
    pub(super) placed: BTreeMap<usize, Filling>,
    /// Slots left to place.
    pub(super) wanted: Filling,
    scratch: Vec<u64>,
    /// Number of nodes looked at, once per shape.
    pub(super) looked: u64,
}

impl<'a> Board<'a> {
    pub(super) fn new(
        plan: &'a Plan<'a>,
        availability: &'a Availability<'a>,
        rules: Rules,
        nodes: &'a [NodeId],
    ) -> Self {
        Self {
            plan,
            availability,
            rules,
            nodes,
            free: vec![0; nodes.len() * plan.kinds.len()],
            room: vec![UNREAD; nodes.len() * plan.shapes.len()],
            placed: BTreeMap::new(),
            wanted: plan.shapes.iter().map(|shape| shape.count).collect(),
            scratch: Vec::new(),
            looked: 0,
        }
    }

    /// Number of slots placed.
    pub(super) fn count(&self) -> u64 {
        self.placed.values().flatten().copied().map(u64::from).sum()
    }

    /// Room of the node at this position for the shape, ignoring rules and other slots.
    pub(super) fn room(&mut self, position: usize, shape: usize) -> u32 {
        let plan = self.plan;
        let shapes = plan.shapes.len();
        if self.room[position * shapes + shape] != UNREAD {
            return self.room[position * shapes + shape];
        }
        let id = self.nodes[position];
        let room = &mut self.room[position * shapes..(position + 1) * shapes];
        room.fill(0);
        if plan.shapes.iter().any(|shape| self.availability.admits(shape, id)) {
            self.availability.available(id, &plan.kinds, &mut self.scratch);
            for (room, shape) in room.iter_mut().zip(&plan.shapes) {
                *room = self.availability.capacity(shape, id, &self.scratch).min(UNREAD - 1);
            }
            let kinds = plan.kinds.len();
            self.free[position * kinds..(position + 1) * kinds].copy_from_slice(&self.scratch);
        }
        self.room[position * shapes + shape]
    }

    /// Free amounts of the plan's kinds at a position whose room was read.
    pub(super) fn free(&self, position: usize) -> &[u64] {
        let kinds = self.plan.kinds.len();
        &self.free[position * kinds..(position + 1) * kinds]
    }

    fn free_at(&mut self, position: usize) -> &mut [u64] {
        let kinds = self.plan.kinds.len();
        &mut self.free[position * kinds..(position + 1) * kinds]
    }

    /// Whether one more slot of the shape fits there.
    pub(super) fn fits(&mut self, position: usize, shape: usize) -> Fit {
        self.looked += 1;
        if self.room(position, shape) == 0 {
            return Fit::No;
        }
        let plan = self.plan;
        let kinds = plan.kinds.len();
        let free = &self.free[position * kinds..(position + 1) * kinds];
        if plan.shapes[shape].fits(free, 1) == 0 || self.port_taken(position, shape) {
            return Fit::No;
        }
        match self.rules.check(shape, self.nodes[position]) {
            Ok(()) => Fit::Yes,
            Err(denied) if Rules::is_final(&denied) => Fit::No,
            Err(_) => Fit::NotYet,
        }
    }

    fn port_taken(&self, position: usize, shape: usize) -> bool {
        let shapes = &self.plan.shapes;
        if shapes[shape].ports.is_empty() {
            return false;
        }
        let Some(placed) = self.placed.get(&position) else { return false };
        let there = placed.iter().zip(shapes).filter(|(count, _)| **count > 0);
        let ports: Vec<&HostPort> = there.flat_map(|(_, shape)| shape.ports).collect();
        clash(&ports, shapes[shape].ports)
    }

    /// Places a slot that fits.
    pub(super) fn place(&mut self, position: usize, shape: usize) {
        let plan = self.plan;
        for (kind, need) in &plan.shapes[shape].needs {
            self.free_at(position)[*kind] -= need;
        }
        let shapes = plan.shapes.len();
        self.placed.entry(position).or_insert_with(|| vec![0; shapes])[shape] += 1;
        self.wanted[shape] -= 1;
        self.rules.add(shape, self.nodes[position]);
    }

    /// Takes a slot back.
    pub(super) fn take_back(&mut self, position: usize, shape: usize) {
        let plan = self.plan;
        for (kind, need) in &plan.shapes[shape].needs {
            self.free_at(position)[*kind] += need;
        }
        if let Some(filling) = self.placed.get_mut(&position) {
            filling[shape] -= 1;
            if filling.iter().all(|count| *count == 0) {
                self.placed.remove(&position);
            }
        }
        self.wanted[shape] += 1;
        self.rules.remove(shape, self.nodes[position]);
    }

    /// Takes all slots back.
    pub(super) fn clear(&mut self) {
        for (position, filling) in self.placed.clone() {
            for (shape, count) in filling.into_iter().enumerate() {
                for _ in 0..count {
                    self.take_back(position, shape);
                }
            }
        }
    }

    /// The nodes with their slots.
    pub(super) fn taken(&self) -> Taken {
        self.placed.iter().map(|(position, filling)| (self.nodes[*position], filling.clone())).collect()
    }

    /// Places slots on the first nodes that take them, earlier shapes first, until none fits, all are placed, or so many
    /// nodes were looked at.
    pub(super) fn fill(&mut self, limit: u64) {
        let shapes = self.plan.shapes.len();
        // Before these positions nothing fits any more, whatever is added.
        let mut first = vec![0; shapes];
        let mut progress = true;
        while progress {
            progress = false;
            for (shape, first) in first.iter_mut().enumerate() {
                while self.wanted[shape] > 0 && self.looked < limit {
                    let Some(position) = self.first_fit(shape, first) else { break };
                    self.place(position, shape);
                    progress = true;
                }
            }
        }
    }

    fn first_fit(&mut self, shape: usize, first: &mut usize) -> Option<usize> {
        let mut dead = true;
        for position in *first..self.nodes.len() {
            match self.fits(position, shape) {
                Fit::Yes => return Some(position),
                Fit::No if dead => *first = position + 1,
                Fit::No => {}
                Fit::NotYet => dead = false,
            }
        }
        None
    }
}
