//! Resources reserved for a started gang: for each lost member that can still be replaced.
//!
//! They are on the lost member's node or, if that is no longer eligible, on the first node with room, before any
//! waiting job gets it. Only members of that gang can use them. They are released after a deadline, and immediately if
//! no member is missing any more, if no member of the gang is assigned, or if the owner of its Pods is being deleted.

use std::sync::Arc;

use crate::event::Effect;
use crate::inventory::{Allocation, AllocationKind};
use crate::job::{Job, JobId, LostMember};
use crate::model::{PodSpec, SharedStr};
use crate::placement::{self, NodePolicy};
use crate::request::{Request, Shape};
use crate::state::State;
use crate::state::pod::avoiding;
use crate::state::summary::MemberSummary;

impl State {
    /// A member that had not finished has finished or was deleted; `node` is where it was, or was being bound to.
    pub(super) fn note_loss(&mut self, id: JobId, pod: &PodSpec, node: Option<SharedStr>) {
        let (now, deadline) = (self.now, self.settings.lost_member_deadline);
        // We released it ourselves: that says nothing about how its gang ends.
        let let_go = self.bindings.let_go(&pod.uid).is_some();
        let Some(job) = self.jobs.get_mut(id).filter(|job| !job.state.ended() && !let_go) else { return };
        job.losses.note(now, pod);
        if job.started_at.is_none() || node.is_none() {
            return;
        }
        let shape = self.shapes(&[Arc::new(pod.clone())]).pop();
        let (Some(shape), Some(job)) = (shape, self.jobs.get_mut(id)) else { return };
        let lost = job.lost_member(shape, node, now.saturating_add(deadline));
        job.lost.push(LostMember { succeeded: pod.phase == crate::model::Phase::Succeeded, ..lost });
    }

    /// Adjusts the number of reservations for lost members of the job to what it should have.
    pub(super) fn keep_places(&mut self, id: JobId, summary: &MemberSummary) {
        self.give_up_places(id, summary);
        let now = self.now;
        let deadline = self.settings.lost_member_deadline;
        let Some(job) = self.jobs.get_mut(id) else { return };
        let missing = summary.missing();
        job.given_up = job.given_up.min(missing);
        let owed = if summary.replaceable() && deadline > 0 {
            missing.saturating_sub(summary.leaving_in_place).saturating_sub(job.given_up) as usize
        } else {
            0
        };
        let mut dropped = Vec::new();
        if job.lost.len() > owed {
            // Successful members need a replacement last; a reservation with a node is better than one without; among
            // equal ones, the newest is removed.
            job.lost.sort_by_key(|lost| (lost.succeeded, lost.kept_on.is_none()));
            dropped.extend(job.lost.drain(owed..).map(|lost| lost.holder(id)));
        }
        // Their Pods still exist, on nodes that are not eligible; or a restarted engine never observed them.
        let known = summary.displaced.iter().chain(summary.sibling.iter().cycle());
        let short = owed.saturating_sub(job.lost.len());
        let shapes: Vec<Shape> =
            known.take(short).filter_map(|pod| self.shapes(std::slice::from_ref(pod)).pop()).collect();
        let Some(job) = self.jobs.get_mut(id) else { return };
        for shape in shapes {
            let lost = job.lost_member(shape, None, now.saturating_add(deadline));
            job.lost.push(lost);
        }
        let placed: Vec<LostMember> =
            job.lost.iter().filter(|lost| lost.kept_on.is_none()).cloned().collect();
        if let Some(at) = job.lost.iter().map(|lost| lost.until).min() {
            self.waiting.look_at(at, id);
        }
        for holder in dropped {
            self.inventory.release(&holder);
        }
        for lost in placed {
            if let Some(node) = lost.ran_on.clone().filter(|node| self.inventory.fits(node, &lost.shape)) {
                self.keep_on(id, &lost, node);
            }
        }
        self.note_owed(id);
    }

    /// Releases all resources reserved for lost members of the job.
    pub(super) fn drop_places(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(id) else { return };
        let lost = std::mem::take(&mut job.lost);
        for lost in lost {
            self.inventory.release(&lost.holder(id));
        }
        self.note_owed(id);
    }

    /// Releases the resources reserved for the job, for a member that fits none of them; they are reserved again as
    /// needed when the job is evaluated. Returns whether there were any.
    pub(super) fn open_places(&mut self, id: JobId) -> bool {
        let Some(job) = self.jobs.get_mut(id) else { return false };
        let mut holders = Vec::new();
        for lost in &mut job.lost {
            if let Some(node) = lost.kept_on.take() {
                lost.ran_on = Some(node);
                holders.push(lost.holder(id));
            }
        }
        for holder in &holders {
            self.inventory.release(holder);
        }
        !holders.is_empty()
    }

    /// Releases reservations that were not used in time.
    fn give_up_places(&mut self, id: JobId, summary: &MemberSummary) {
        let (now, deadline) = (self.now, self.settings.lost_member_deadline);
        if summary.missing() == 0 || !summary.replaceable() {
            return;
        }
        let Some(job) = self.jobs.get_mut(id) else { return };
        let (late, lost): (Vec<_>, Vec<_>) =
            std::mem::take(&mut job.lost).into_iter().partition(|lost| lost.until <= now);
        job.lost = lost;
        if late.is_empty() {
            return;
        }
        job.given_up = job.given_up.saturating_add(u32::try_from(late.len()).unwrap_or(u32::MAX));
        let regarding = job.object.clone().or_else(|| summary.sibling.as_ref().map(|pod| pod.object()));
        for lost in &late {
            self.inventory.release(&lost.holder(id));
        }
        if let Some(regarding) = regarding {
            let (places, are) = if late.len() == 1 { ("reservation", "is") } else { ("reservations", "are") };
            let note = format!(
                "No replacement was created within {deadline} s: {} {places} for lost members {are} no longer held",
                late.len()
            );
            self.work.effects.push(Effect::Note {
                regarding,
                warning: true,
                reason: "LostMemberGivenUp",
                action: "Scheduling",
                note,
            });
        }
    }

    fn keep_on(&mut self, id: JobId, lost: &LostMember, node: SharedStr) {
        let now = self.now;
        let Some(job) = self.jobs.get_mut(id) else { return };
        let until = job.planned_end.map_or(lost.until, |end| end.min(lost.until));
        let Some(entry) = job.lost.iter_mut().find(|entry| entry.number == lost.number) else { return };
        entry.kept_on = Some(node.clone());
        let hold = Allocation {
            needs: lost.shape.needs.clone(),
            ports: lost.shape.ports.clone(),
            from: now,
            until: Some(until),
            end_assumed: false,
            kind: AllocationKind::Kept,
            permanent: false,
            job: Some(id.0),
            peer: lost.shape.peer.clone(),
        };
        self.inventory.hold(lost.holder(id), &node, hold);
    }

    fn note_owed(&mut self, id: JobId) {
        let lost = self.jobs.get(id).map(|job| job.lost.as_slice()).unwrap_or_default();
        if lost.iter().any(|lost| lost.kept_on.is_none()) {
            self.pass.wanted = true;
        }
        if lost.is_empty() {
            self.waiting.owed.remove(&id);
        } else {
            self.waiting.owed.insert(id);
        }
    }

    /// Moves reservations away from nodes that are no longer eligible, and finds room for those without a node.
    pub(super) fn secure_places(&mut self) {
        for id in self.waiting.owed.iter().copied().collect::<Vec<_>>() {
            let Some(job) = self.jobs.get(id).cloned() else { continue };
            let mut nowhere: Option<&Shape> = None;
            for lost in &job.lost {
                if let Some(node) = &lost.kept_on {
                    if self.inventory.still_fits(node, &lost.shape) {
                        continue;
                    }
                    self.inventory.release(&lost.holder(id));
                    if let Some(job) = self.jobs.get_mut(id)
                        && let Some(entry) = job.lost.iter_mut().find(|entry| entry.number == lost.number)
                    {
                        entry.kept_on = None;
                    }
                }
                if nowhere == Some(&lost.shape) {
                    continue;
                }
                match self.room_for(&job, &lost.shape) {
                    Some(node) => self.keep_on(id, lost, node),
                    None => nowhere = Some(&lost.shape),
                }
            }
            self.work.dirty.insert(id);
        }
    }

    /// The first node with room for one more slot of a started gang now.
    fn room_for(&self, job: &Job, shape: &Shape) -> Option<SharedStr> {
        let level = self.summary(job).level;
        let domain = level.as_ref().and_then(|level| self.domain_of(job, level));
        let duration = job.planned_end.map(|end| end.saturating_sub(self.now).max(1));
        let shapes = avoiding(vec![shape.clone()], &self.avoided(job));
        let request = Request { shapes, minimum: None, level, domain, duration };
        let placement =
            placement::place_now(&self.inventory, &request, self.now, self.node_policy(job)).ok()?;
        placement.slots.first().map(|slot| slot.node.clone())
    }

    /// The node policy of the job's queue.
    pub(super) fn node_policy(&self, job: &Job) -> NodePolicy {
        let queue = self.settings.queues.iter().find(|queue| queue.name == job.queue);
        queue.map(|queue| queue.node_policy).unwrap_or_default()
    }

    /// Passes a reservation for members of this shape to one of them: its resources are free afterwards.
    pub(super) fn take_place(&mut self, id: JobId, shape: &Shape) -> Option<SharedStr> {
        let job = self.jobs.get_mut(id)?;
        let at = job.lost.iter().position(|lost| lost.shape == *shape && lost.kept_on.is_some())?;
        let lost = job.lost.remove(at);
        self.inventory.release(&lost.holder(id));
        self.note_owed(id);
        let (inventory, now) = (&self.inventory, self.now);
        lost.kept_on
            .filter(|node| inventory.fits(node, shape) && placement::allows(inventory, node, shape, now))
    }
}

impl Job {
    fn lost_member(&mut self, shape: Shape, ran_on: Option<SharedStr>, until: i64) -> LostMember {
        self.places = self.places.wrapping_add(1);
        LostMember { shape, ran_on, kept_on: None, succeeded: false, until, number: self.places }
    }
}
