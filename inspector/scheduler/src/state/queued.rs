//! Jobs (and `JobSet`s, and others) that were suspended when they were created, to be queued before they have Pods: a job of
//! the shapes of their templates. Starting one resumes it; until its Pods exist and are placed like any gang, its resources are reserved.
//!
//! The reservation is not stored anywhere. After a restart, the Pods are scheduled without it: they wait at our gate, so
//! nothing starts in part.

use std::sync::Arc;

use fluxion_api::reason::Fact;

use crate::event::{BindOutcome, Effect};
use crate::inventory::{Allocation, AllocationKind};
use crate::job::{Job, JobId, JobState, Places, Reason, ReasonClass};
use crate::marks::{ADMISSION, RESUMED, SUSPENDED};
use crate::model::{OwnerDetail, OwnerSpec, PodSet, PodSpec, SharedStr};
use crate::placement;
use crate::request::{Placement, Shape};
use crate::state::State;
use crate::state::membership::{Membership, OWNERS_DEEP, Size, owner_key};
use crate::state::pod::{avoiding, share};
use crate::state::summary::MemberSummary;

/// Seconds until a job that could not be resumed is tried again.
const PAUSE: i64 = 30;
/// Maximum length of the API server's response in a reason, in characters.
const ANSWER_MAX: usize = 300;

impl OwnerSpec {
    /// Whether we are to resume it.
    fn is_ours_to_resume(&self) -> bool {
        let ours = self.annotations.get(ADMISSION).is_some_and(|mode| &**mode == SUSPENDED);
        ours && !self.deleting && self.detail.suspended() && self.detail.ended().is_none()
    }

    /// It was queued as a whole, so its Pods are one gang.
    pub(super) fn admitted_whole(&self) -> bool {
        let mode = self.annotations.get(ADMISSION).map(|mode| &**mode);
        let is_whole = matches!(
            self.detail,
            OwnerDetail::Job { .. } | OwnerDetail::Sets { .. } | OwnerDetail::Delegating { .. }
        );
        is_whole && matches!(mode, Some(SUSPENDED | RESUMED))
    }
}

impl State {
    /// The owner that describes the Pods of this one: itself, unless these are the Pods of one that it controls.
    pub(super) fn described_by<'a>(&'a self, owner: &'a OwnerSpec) -> Option<&'a OwnerSpec> {
        let mut one = owner;
        for _ in 0..OWNERS_DEEP {
            if !matches!(one.detail, OwnerDetail::Delegating { .. }) {
                return Some(one);
            }
            let mut below =
                self.delivered.owners_of_owner(&one.uid).filter_map(|uid| self.delivered.owner(uid));
            one = below.find(|below| below.namespace == owner.namespace && !below.deleting)?;
        }
        None
    }

    /// The Pods that an owner will have once it is resumed, if we are to resume it; the first of them.
    fn queued_template(&self, owner: &OwnerSpec) -> Option<Arc<PodSpec>> {
        match &self.described_by(owner).filter(|_| owner.is_ours_to_resume())?.detail {
            OwnerDetail::Job { template, .. } => template.clone(),
            OwnerDetail::Sets { sets, .. } => sets.iter().find_map(|set| set.template.clone()),
            _ => None,
        }
    }

    /// Notes that this owner was added or changed: it may be one to queue, or describe the Pods of one.
    pub(super) fn note_queued(&mut self, uid: &SharedStr) {
        let Some(owner) = self.delivered.owner(uid).cloned() else { return };
        let above = self.controllers_of(&owner).into_iter();
        let delegating = above.filter(|one| matches!(one.detail, OwnerDetail::Delegating { .. }));
        let concerned = std::iter::once(owner.as_ref()).chain(delegating);
        let concerned: Vec<_> = concerned
            .map(|one| (one.uid.clone(), owner_key(one), self.queued_template(one).is_some()))
            .collect();
        for (uid, key, queued) in concerned {
            self.work.dirty.extend(self.belonging.active(&key));
            if queued {
                self.work.queued.insert(uid);
            }
        }
    }

    /// Makes jobs of the queued ones among these owners.
    pub(super) fn enter_queued(&mut self) {
        for uid in std::mem::take(&mut self.work.queued) {
            let Some(owner) = self.delivered.owner(&uid).cloned() else { continue };
            let Some(template) = self.queued_template(&owner) else { continue };
            let key = owner_key(&owner);
            if self.belonging.active(&key).is_some() {
                continue;
            }
            let size = Size::OwnerNeeds { owner: uid };
            let membership = Membership { key, size, object: Some(owner.object()), group: None };
            let id = self.create_job(&template, &membership);
            self.go_on(id);
            self.work.dirty.insert(id);
        }
    }

    /// The templates of a job that is queued without Pods, with the numbers of their Pods.
    pub(super) fn queued(&self, job: &Job) -> Option<Vec<(Arc<PodSpec>, u32)>> {
        if job.awaited.is_some() || !job.pods.is_empty() {
            return None;
        }
        let owner = self.delivered.owner(&job.object.as_ref()?.uid)?;
        let first = self.queued_template(owner)?;
        Some(match &self.described_by(owner)?.detail {
            OwnerDetail::Sets { sets, .. } => {
                let count = |set: &PodSet| u32::try_from(set.count).unwrap_or(0);
                let of = |set: &PodSet| Some((set.template.clone()?, count(set)));
                sets.iter().filter_map(of).filter(|(_, count)| *count > 0).collect()
            }
            _ => vec![(first, self.owner_needs(&owner.uid).unwrap_or(0))],
        })
    }

    /// Counts its future Pods as members.
    pub(super) fn count_queued(&self, job: &Job, sets: &[(Arc<PodSpec>, u32)], summary: &mut MemberSummary) {
        let Some(object) = &job.object else { return };
        match self.owner_needs(&object.uid) {
            Ok(count) => {
                summary.members.seen = count;
                summary.members.wanted = Some(count);
                summary.live = count;
                let pods = sets.iter();
                summary.waiting =
                    pods.flat_map(|(pod, count)| std::iter::repeat_n(pod.clone(), *count as usize)).collect();
            }
            Err(text) => {
                summary.live = 1;
                summary.problem = Some((ReasonClass::InvalidRequest, text));
            }
        }
        summary.priority = sets.iter().map(|(pod, _)| pod.priority).max().unwrap_or(0);
    }

    /// Resumes a queued job, and reserves its nodes for the Pods that its controller will create.
    pub(super) fn resume(&mut self, id: JobId, placement: &Placement) {
        let Some(job) = self.jobs.get(id).cloned() else { return };
        let (Some(sets), Some(object)) = (self.queued(&job), job.object.clone()) else { return };
        self.dequeue(&job);
        let planned_end = job.end_when_started_at(self.now);
        let release = self.release_of_member(&job, self.now, planned_end);
        let mut holders = Vec::new();
        let shapes = job.request.as_ref().map(|request| request.shapes.as_slice()).unwrap_or_default();
        // Pods of several sets may be of one shape.
        let templates: Vec<_> = shapes.iter().map(|shape| self.template_of(&sets, shape)).collect();
        let slots = placement.slots.iter().flat_map(|slot| std::iter::repeat_n(slot, slot.count as usize));
        for (index, slot) in slots.enumerate() {
            let Some(Some(template)) = templates.get(slot.shape as usize) else { continue };
            let holder: SharedStr = format!("place/{}/{index}", object.uid).into();
            let hold = Allocation { kind: AllocationKind::Kept, ..share(template, id, self.now, release) };
            self.inventory.hold(holder.clone(), &slot.node, hold);
            holders.push(holder);
        }
        let until = self.now.saturating_add(self.bind_deadline(&job));
        if let Some(job) = self.jobs.get_mut(id) {
            job.awaited = Some(Places { holders: holders.into(), until });
            job.waits_for.clear();
        }
        self.work.effects.push(Effect::Resume { object });
        let wanted = job.members.wanted.unwrap_or(0);
        let fact =
            Fact::WaitingForMembers { created: 0, wanted, gated: 0, gates: Vec::new(), joining: false };
        self.settle(id, JobState::Binding, Some(Reason::new(ReasonClass::Gathering, fact)), false);
        self.waiting.resumed.insert(id);
        self.waiting.look_at(until, id);
        self.work.dirty.insert(id);
    }

    /// A template of this shape.
    fn template_of(&self, sets: &[(Arc<PodSpec>, u32)], shape: &Shape) -> Option<Arc<PodSpec>> {
        let same = |(pod, _): &&(Arc<PodSpec>, u32)| {
            let shapes = avoiding(self.shapes(std::slice::from_ref(pod)), &shape.constraint.avoided);
            shapes.first().is_some_and(|own| Shape { count: shape.count, ..own.clone() } == *shape)
        };
        sets.iter().find(same).or(sets.first()).map(|(pod, _)| pod.clone())
    }

    /// State and reason of a resumed job whose Pods are still being created.
    pub(super) fn resuming(&self, job: &Job, summary: &MemberSummary) -> Option<(JobState, Option<Reason>)> {
        let incomplete = summary.members.seen < summary.start_size().unwrap_or(u32::MAX);
        let owner = self.delivered.owner(&job.object.as_ref()?.uid).filter(|owner| !owner.deleting)?;
        let ended = owner.detail.ended().is_some();
        if job.awaited.is_none() || !incomplete || ended {
            return None;
        }
        let wanted = job.members.wanted.unwrap_or(0);
        let created = summary.members.seen;
        let fact = Fact::WaitingForMembers {
            created,
            wanted,
            gated: summary.members.gated,
            gates: Vec::new(),
            joining: false,
        };
        Some((JobState::Binding, Some(Reason::new(ReasonClass::Gathering, fact))))
    }

    /// Ends reservations that are no longer needed, or too old.
    pub(super) fn check_places(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(id) else { return };
        let Some(places) = &job.awaited else { return };
        let owner = job.object.as_ref().and_then(|object| self.delivered.owner(&object.uid));
        let creates = owner.is_some_and(|owner| {
            let suspended = owner.detail.suspended();
            // Not resumed yet, rather than suspended again by its user.
            !owner.deleting && (!suspended || owner.is_ours_to_resume())
        });
        if places.until <= self.now || !creates || job.members.bound > 0 {
            self.leave_places(id);
            self.work.dirty.insert(id);
        }
    }

    /// Frees what is reserved for the Pods of a resumed job.
    pub(super) fn leave_places(&mut self, id: JobId) {
        self.waiting.resumed.remove(&id);
        let Some(places) = self.jobs.get_mut(id).and_then(|job| job.awaited.take()) else { return };
        for holder in places.holders.iter() {
            self.inventory.release(holder);
        }
    }

    /// Places resumed jobs whose Pods are complete, before any other job can take the resources reserved for them.
    pub(super) fn place_resumed(&mut self) {
        let complete =
            |id: &JobId| self.jobs.get(*id).is_some_and(|job| job.request.is_some() && !job.pods.is_empty());
        let ids: Vec<JobId> = self.waiting.resumed.iter().copied().filter(complete).collect();
        for id in ids {
            self.leave_places(id);
            let Some(job) = self.jobs.get(id).cloned() else { continue };
            let Some(request) = job.request.clone().filter(|_| self.is_queued(id)) else { continue };
            self.inventory.clear_reservations();
            self.pass.wanted = true;
            if let Ok(placement) =
                placement::place_now(&self.inventory, &request, self.now, self.node_policy(&job))
            {
                self.start(id, &placement);
            }
        }
    }

    /// The API server's response to resuming the job with this UID.
    pub(super) fn resume_answered(&mut self, uid: &SharedStr, outcome: BindOutcome) {
        let why = match outcome {
            BindOutcome::Transient(why) | BindOutcome::Refused(why) => why,
            BindOutcome::Done | BindOutcome::Gone(_) | BindOutcome::Elsewhere(_) => return,
        };
        let Some(owner) = self.delivered.owner(uid) else { return };
        let Some(id) = self.belonging.active(&owner_key(owner)) else { return };
        if !owner.is_ours_to_resume() || self.jobs.get(id).is_none_or(|job| job.awaited.is_none()) {
            return;
        }
        let kind = owner.kind.clone();
        self.leave_places(id);
        let until = self.now.saturating_add(PAUSE);
        let answer = fluxion_text::shorten(&why, ANSWER_MAX).into_owned();
        let text = format!("the {kind} could not be resumed: {answer}");
        if let Some(job) = self.jobs.get_mut(id) {
            job.binds.why = Some(Fact::Message { text });
            job.binds.paused_until = Some(until);
        }
        self.waiting.look_at(until, id);
        self.work.dirty.insert(id);
    }
}
