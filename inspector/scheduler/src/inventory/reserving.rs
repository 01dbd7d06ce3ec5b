//! Reservations of waiting jobs, from start to end.

use std::sync::Arc;

use super::Inventory;
use super::hold::planned_or_assumed;
use super::id::NodeId;
use super::reservation::{NodeReservation, Promise};
use super::reserved::Reserved;
use crate::request::{Placement, Planned, Request};

impl Inventory {
    /// Reserves a placement of the request for a job, replacing its previous reservation.
    pub fn reserve(
        &mut self,
        job: u32,
        request: &Request,
        placement: Placement,
        start: i64,
        end: Option<i64>,
    ) {
        self.promise(job, request, &Planned { start, end, placement, assumed: false }, None);
    }

    /// Makes the planned reservation for a job, replacing its previous one. A job without an end is assumed to take
    /// `length` seconds.
    pub fn promise(&mut self, job: u32, request: &Request, planned: &Planned, length: Option<i64>) {
        self.clear_reservation(job);
        let start = planned.start;
        let (end, assumed) = planned_or_assumed(planned.end, start, length, start);
        let end_assumed = end.is_some() && (assumed || planned.assumed);
        let mut nodes = Vec::new();
        for slot in &planned.placement.slots {
            let (Some(id), Some(shape)) = (self.id(&slot.node), request.shapes.get(slot.shape as usize))
            else {
                continue;
            };
            let times = |quantity: u64| quantity.saturating_mul(u64::from(slot.count));
            let mut needs: Vec<_> = shape
                .needs
                .iter()
                .filter(|(_, quantity)| *quantity > 0)
                .map(|(resource, quantity)| (self.columns.intern(resource), times(quantity)))
                .collect();
            needs.sort_unstable_by_key(|(kind, _)| *kind);
            let entry = NodeReservation {
                job,
                start,
                end: end.unwrap_or(i64::MAX),
                needs: needs.into(),
                ports: shape.ports.to_vec(),
                assumed: end_assumed,
                peer: shape.peer.clone(),
                count: slot.count,
            };
            self.touch(id);
            self.totals.reserve(&entry, 1);
            let reserved = Arc::make_mut(self.reserved.slot(id).get_or_insert_default());
            let before = reserved.next();
            if let Some(timeline) = reserved.timeline.get_mut() {
                Arc::make_mut(timeline).reserve(&entry);
            }
            reserved.entries.push(entry);
            if before.is_none_or(|before| start < before) {
                before.and_then(|before| self.promised.remove(&(before, id)));
                self.promised.insert((start, id));
            }
            nodes.push(id);
        }
        nodes.dedup();
        let reservation = Promise {
            placement: planned.placement.clone(),
            start,
            end,
            start_assumed: planned.assumed,
            end_assumed,
            nodes,
        };
        self.reservations.insert(job, Arc::new(reservation));
    }

    /// Removes the job's reservation.
    pub fn clear_reservation(&mut self, job: u32) {
        let Some(reservation) = self.reservations.remove(&job) else { return };
        for id in &reservation.nodes {
            self.touch(*id);
            let slot = self.reserved.slot(*id);
            if let Some(reserved) = slot {
                let reserved = Arc::make_mut(reserved);
                reserved.next().and_then(|next| self.promised.remove(&(next, *id)));
                let Reserved { entries, timeline } = reserved;
                for entry in entries.iter().filter(|entry| entry.job == job) {
                    self.totals.reserve(entry, -1);
                    if let Some(known) = timeline.get_mut()
                        && !Arc::make_mut(known).unreserve(entry)
                    {
                        timeline.take();
                    }
                }
                reserved.entries.retain(|entry| entry.job != job);
                match reserved.next() {
                    Some(next) => drop(self.promised.insert((next, *id))),
                    None => *slot = None,
                }
            }
        }
    }

    /// Removes all reservations.
    pub fn clear_reservations(&mut self) {
        let jobs: Vec<u32> = self.reservations.keys().copied().collect();
        for job in jobs {
            self.clear_reservation(job);
        }
        self.totals.overlaid = false;
    }

    /// All reservations, by job.
    pub fn reservations(&self) -> impl Iterator<Item = (u32, &Promise)> {
        self.reservations.iter().map(|(job, reservation)| (*job, reservation.as_ref()))
    }

    /// The job's reservation.
    pub fn reservation(&self, job: u32) -> Option<&Promise> {
        self.reservations.get(&job).map(AsRef::as_ref)
    }

    /// The jobs with a reservation on the node, and its end (`i64::MAX` for none).
    pub fn planned_on(&self, name: &str) -> impl Iterator<Item = (u32, i64)> {
        let entries = self.id(name).map_or(&[][..], |id| self.reserved_on(id));
        entries.iter().map(|entry| (entry.job, entry.end))
    }

    /// Nodes on which something is promised, those whose first promise comes soonest first.
    pub(crate) fn promised(&self) -> impl Iterator<Item = (i64, NodeId)> {
        self.promised.iter().copied()
    }

    /// Whether anything is promised.
    pub(crate) fn promises(&self) -> bool {
        !self.promised.is_empty()
    }

    /// When the node's first promise begins, epoch seconds.
    pub(crate) fn next_promise(&self, id: NodeId) -> Option<i64> {
        self.reserved.get(id)?.as_ref()?.next()
    }

    pub(crate) fn reserved_on(&self, id: NodeId) -> &[NodeReservation] {
        self.reserved.get(id).and_then(Option::as_ref).map_or(&[], |reserved| reserved.entries.as_slice())
    }
}
